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

// Rows [begin, end) of a table, or, where only rows with ids are updated, the rows
// that begin at its keys [begin, end).
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
    const int64_t count = all_rows ? tables[i].rows : ids[i].size();
    const int64_t traffic = RowTraffic<T>(program, tables[i], all_rows);
    const int64_t step = std::max<int64_t>(kTaskBytes / traffic, 1);
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

// All rows in [begin, end). Few rows have ids, as a rule. They are computed first, a
// tile of them at a time; then all rows up to there are swept as if none had ids, in
// place and without a gap; then the rows with ids are stored.
template <typename T>
void UpdateAllRows(const Plans<T>& plans, const Table& table, const SortedIds& ids, int64_t begin,
                   int64_t end) {
  TileRunner<T> touched(plans.touched, table, ids);
  TileRunner<T> untouched(plans.untouched, table, ids);
  Tiles tiles(table, ids,
              [&](const Tile& tile, const Tile* next) { untouched.Run(tile, next); });
  const bool in_parts = table.row > kTileElements;  // then a tile is one row
  const int64_t last_key = ids.Find(end);
  Tile tile, next;
  int64_t key = FillTile(table, ids, ids.Find(begin), last_key, &tile);
  while (begin < end) {
    next.Clear();
    key = FillTile(table, ids, key, last_key, &next);
    const int64_t last = tile.num_rows > 0 ? tile.Row(tile.num_rows - 1) : end - 1;
    if (tile.num_rows == 0) {
      tiles.OfRows(begin, end);
    } else if (in_parts) {
      tiles.OfRows(begin, last);
      touched.Run(tile, nullptr);
    } else {
      touched.Prepare(tile, next.num_rows > 0 ? &next : nullptr);
      tiles.OfRows(begin, last + 1);
      touched.Store();
    }
    begin = last + 1;
    std::swap(tile, next);
  }
}

template <typename T>
void RunTask(const Plans<T>& plans, const Table& table, const SortedIds& ids, bool all_rows,
             const Task& task) {
  if (all_rows) return UpdateAllRows(plans, table, ids, task.begin, task.end);
  TileRunner<T> runner(plans.touched, table, ids);
  Tiles tiles(table, ids, [&](const Tile& tile, const Tile* next) { runner.Run(tile, next); });
  tiles.OfKeys(ids.RowStart(task.begin), ids.RowStart(task.end));
}

}  // namespace packed_update
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_PACKED_UPDATE_CPU_H_
