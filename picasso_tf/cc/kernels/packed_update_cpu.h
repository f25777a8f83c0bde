// CPU side of the packed update. First the ids of each table are sorted by row,
// which also checks them; then tasks of about equal size, over all tables, update
// ranges of rows. No two tasks share a row, and each row is computed alone, so the
// result does not depend on the number of threads.

#ifndef PICASSO_TF_CC_KERNELS_PACKED_UPDATE_CPU_H_
#define PICASSO_TF_CC_KERNELS_PACKED_UPDATE_CPU_H_

#include <algorithm>
#include <type_traits>
#include <vector>

#include "picasso_tf/cc/kernels/packed_update.h"
#include "picasso_tf/cc/kernels/row_sort.h"
#include "picasso_tf/cc/kernels/update_plan.h"
#include "picasso_tf/cc/kernels/update_tile_runner.h"

namespace picasso {
namespace packed_update {

constexpr int64_t kTaskBytes = 1 << 20;  // of memory traffic

// A table is crowded if it has at least one id for so many rows. The ids that fill empty
// rows do not count: all of one segment name the same row.
constexpr int64_t kCrowdedRows = 2;

inline bool IsCrowded(const Table& table) {
  int64_t num_ids = 0;
  for (int64_t i = 0; i < table.num_segments; ++i) num_ids += table.segments[i].num_ids;
  return num_ids * kCrowdedRows >= table.rows;
}

// For SortedIds::Build. A crowded table is updated in groups of rows that follow each
// other, so its ids need not be sorted further, and no row is looked for.
template <typename T>
int GroupBits(const Program& program, const Table& table) {
  if (!IsCrowded(table)) return 0;
  if (PacketEnds<T>::NeedsSortedRows(program, table)) return 0;
  return BitsFor(TileRows(table) + 1) - 1;
}

// For SortedIds::Build: whether the row of its gradient is all that need be known of an
// id. Nothing is computed for single ids, and none but those of one row of the gradient
// may have equal numbers, so that they stay in order.
template <typename T>
bool NumberByPool(const Program& program, const Table& table) {
  if (table.num_segments != 1 || program.counts.row_gradients != 1) return false;
  const Pool* pool = table.segments[0].gradients[0].pool;
  if (pool == nullptr || !pool->in_order || pool->weights != nullptr || pool->mask != nullptr) {
    return false;
  }
  if (BitsFor(pool->num_rows + 1) + BitsFor(table.rows) > 64) return false;
  return !program.ComputesIdValues() && !PacketEnds<T>::NeedsSortedRows(program, table);
}

// Rows [begin, end) of a table, or, where only rows with ids are updated and the ids
// are not grouped, the rows that begin at its keys [begin, end).
struct Task {
  int64_t table;
  int64_t begin;
  int64_t end;
};

// Bytes that one row of the table moves, and one id.
template <typename T>
int64_t RowTraffic(const Program& program, const Table& table, bool all_rows) {
  const Counts& counts = program.counts;
  const int64_t rows = 2 * counts.states + counts.table_gradients +
                       (all_rows ? 0 : counts.row_gradients);
  return rows * std::max<int64_t>(table.row * sizeof(T), all_rows ? 1 : 64);
}

template <typename T>
std::vector<Task> CutTasks(const Program& program, const std::vector<Table>& tables,
                           const std::vector<SortedIds>& ids, bool all_rows) {
  std::vector<Task> tasks;
  for (size_t i = 0; i < tables.size(); ++i) {
    if (tables[i].row == 0) continue;
    const bool of_rows = all_rows || ids[i].grouped();
    const int64_t count = of_rows ? tables[i].rows : ids[i].size();
    const int64_t traffic = RowTraffic<T>(program, tables[i], of_rows);
    int64_t step = std::max<int64_t>(kTaskBytes / traffic, 1);
    if (of_rows) {
      const int64_t unit = ids[i].grouped() ? ids[i].GroupRows() : TileRows(tables[i]);
      step = (step + unit - 1) / unit * unit;
    }
    for (int64_t begin = 0; begin < count; begin += step) {
      tasks.push_back({static_cast<int64_t>(i), begin, std::min(begin + step, count)});
    }
  }
  return tasks;
}

// A program, planned for rows with ids, and for rows without any.
template <typename T>
struct Plans {
  explicit Plans(const Program& program)
      : touched(program, false), untouched(program, std::is_same_v<T, Compute<T>>) {}

  Plan touched;
  Plan untouched;
};

// Rows of a table that follow each other, and as a tile those of them that have ids.
struct Stretch {
  int64_t begin = 0;
  int64_t end = 0;
  Tile tile;
  int64_t next_key = 0;

  // Rows from `begin` on, where `key` is the first one, until the tile is full. If it
  // can the stretch ends with a whole tile of rows: a chain runs on such over and over.
  void Fill(const Table& table, const SortedIds& ids, int64_t begin_row, int64_t key,
            int64_t end_row, int64_t end_key) {
    begin = begin_row;
    tile.Clear();
    next_key = FillTile(table, ids, key, end_key, &tile);
    if (next_key == end_key) {
      end = end_row;
      return;
    }
    const int64_t length = ids.Row(next_key) - begin;
    const int64_t whole = length - length % TileRows(table);
    end = whole > 0 ? begin + whole : tile.Row(tile.num_rows - 1) + 1;
    while (tile.num_rows > 0 && tile.Row(tile.num_rows - 1) >= end) next_key = tile.TakeLast();
  }
};

// All rows in [begin, end). Few rows have ids, as a rule. They are computed first, a
// tile of them at a time; then all rows of the stretch are swept as if none had ids, in
// place and without a gap; then the rows with ids are stored.
template <typename T>
void UpdateAllRows(const Plans<T>& plans, const Table& table, const SortedIds& ids, int64_t begin,
                   int64_t end) {
  TileRunner<T> touched(plans.touched, table, ids);
  TileRunner<T> untouched(plans.untouched, table, ids);
  Tiles tiles(table, ids,
              [&](const Tile& tile, const Tile* next) { untouched.Run(tile, next); });
  const bool in_parts = table.row > kTileElements;  // then a tile is one row
  const int64_t end_key = ids.Find(end);
  Stretch here, next;
  here.Fill(table, ids, begin, ids.Find(begin), end, end_key);
  while (here.begin < end) {
    next.Fill(table, ids, here.end, here.next_key, end, end_key);
    if (here.tile.num_rows == 0) {
      tiles.OfRows(here.begin, here.end);
    } else if (in_parts) {
      const int64_t row = here.tile.Row(0);
      tiles.OfRows(here.begin, row);
      touched.Run(here.tile, nullptr);
      tiles.OfRows(row + 1, here.end);
    } else {
      const Tile* next_tile = next.tile.num_rows > 0 ? &next.tile : nullptr;
      touched.Prepare(here.tile, next_tile, here.end - here.begin, &untouched);
      tiles.OfRows(here.begin, here.end);
      touched.Store();
    }
    std::swap(here, next);
  }
}

// The rows [begin, end) of whole groups.
template <typename T>
void UpdateGroups(const Plans<T>& plans, const Table& table, const SortedIds& ids, bool all_rows,
                  int64_t begin, int64_t end) {
  TileRunner<T> runner(plans.touched, table, ids);
  int64_t key = ids.Find(begin);
  const auto take_group = [&](Tile* group) {
    for (group->num_rows = 0; begin < end && group->num_rows == 0; begin += ids.GroupRows()) {
      group->first_row = begin;
      group->first_key = key;
      key = ids.Find(begin + ids.GroupRows());
      group->num_ids = key - group->first_key;
      if (all_rows || group->num_ids > 0) group->num_rows = std::min(ids.GroupRows(), end - begin);
    }
    return group->num_rows > 0;
  };
  Tile tile, next;
  for (bool more = take_group(&tile); more; std::swap(tile, next)) {
    more = take_group(&next);
    runner.Run(tile, more ? &next : nullptr, all_rows);
  }
}

template <typename T>
void RunTask(const Plans<T>& plans, const Table& table, const SortedIds& ids, bool all_rows,
             const Task& task) {
  if (ids.grouped()) return UpdateGroups(plans, table, ids, all_rows, task.begin, task.end);
  if (all_rows) return UpdateAllRows(plans, table, ids, task.begin, task.end);
  TileRunner<T> runner(plans.touched, table, ids);
  Tiles tiles(table, ids, [&](const Tile& tile, const Tile* next) { runner.Run(tile, next); });
  tiles.OfKeys(ids.RowStart(task.begin), ids.RowStart(task.end));
}

}  // namespace packed_update
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_PACKED_UPDATE_CPU_H_
