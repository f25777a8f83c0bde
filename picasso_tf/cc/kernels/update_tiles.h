// Cutting the rows of one table into tiles: as many rows as fit the buffers of the
// CPU kernel, and their ids.

#ifndef PICASSO_TF_CC_KERNELS_UPDATE_TILES_H_
#define PICASSO_TF_CC_KERNELS_UPDATE_TILES_H_

#include <algorithm>
#include <memory>
#include <utility>

#include "picasso_tf/cc/kernels/packed_update.h"
#include "picasso_tf/cc/kernels/row_sort.h"

namespace picasso {
namespace packed_update {

constexpr int64_t kTileElements = 1024;  // of one buffer; a longer row is done in parts

// Rows, or ids, that fit a buffer.
inline int64_t TileRows(const Table& table) {
  return std::max<int64_t>(kTileElements / std::max<int64_t>(table.row, 1), 1);
}

// Either rows that ids name, or rows that follow each other: without their ids, or a
// group of them with all of its ids.
struct Tile {
  struct Touched {
    int64_t row;
    int64_t begin;  // of its keys
    int64_t end;
  };

  int64_t num_rows = 0;
  int64_t first_row = -1;  // -1: the rows are those of `touched`
  int64_t num_ids = 0;
  int64_t first_key = 0;         // of the group
  std::unique_ptr<Touched[]> touched;  // the first num_rows of them, or none

  bool contiguous() const { return first_row >= 0; }
  // Each row has one id: values of rows and of ids have the same form.
  bool unit() const { return num_ids == num_rows && !contiguous(); }
  int64_t Row(int64_t at) const { return contiguous() ? first_row + at : touched[at].row; }

  // For at most `most` rows that ids name.
  void Reserve(int64_t most) {
    if (touched == nullptr) touched.reset(new Touched[most]);
  }

  void Add(const Touched& one, int64_t most) {
    Reserve(most);
    touched[num_rows++] = one;
    num_ids += one.end - one.begin;
  }

  // Removes the last of `touched`, and returns its first key.
  int64_t TakeLast() {
    const Touched& last = touched[--num_rows];
    num_ids -= last.end - last.begin;
    return last.begin;
  }

  void Clear() {
    num_rows = 0;
    num_ids = 0;
  }
};

// Adds rows that keys in [begin, end) name to an empty tile, until it is full.
// Returns the first key that was not taken.
inline int64_t FillTile(const Table& table, const SortedIds& ids, int64_t begin, int64_t end,
                        Tile* tile) {
  const int64_t most = TileRows(table);
  while (begin < end && tile->num_rows < most) {
    const int64_t next = ids.RowEnd(begin);
    if (tile->num_rows > 0 && tile->num_ids + next - begin > most) break;
    tile->Add({ids.Row(begin), begin, next}, most);
    begin = next;
  }
  return begin;
}

// Calls run(tile, next) for each tile, `next` being the one that comes after it, or
// nullptr: what it needs can be fetched in the meantime.
template <typename Run>
class Tiles {
 public:
  Tiles(const Table& table, const SortedIds& ids, Run run)
      : ids_(ids), max_rows_(TileRows(table)), run_(run) {}

  // Every row in [begin, end), without its ids.
  void OfRows(int64_t begin, int64_t end) {
    for (int64_t first = begin; first < end; first += max_rows_) {
      one_.first_row = first;
      one_.num_rows = std::min(max_rows_, end - first);
      Submit(&one_);
    }
    Finish();
  }

  // The rows that keys in [begin, end) name. Those with one id come in tiles of
  // their own: no row of theirs need be repeated or summed.
  void OfKeys(int64_t begin, int64_t end) {
    while (begin < end) {
      begin = TakeAlone(begin, end);
      if (one_.num_rows == max_rows_) {
        Submit(&one_);
        continue;
      }
      if (begin == end) break;
      const int64_t next = ids_.RowEnd(begin);
      if (many_.num_ids + next - begin > max_rows_) Submit(&many_);
      many_.Add({ids_.Row(begin), begin, next}, max_rows_);
      begin = next;
    }
    Submit(&one_);
    Submit(&many_);
    Finish();
  }

 private:
  // Adds rows that have one id each, as long as there are such and the tile has room.
  int64_t TakeAlone(int64_t begin, int64_t end) {
    one_.Reserve(max_rows_);
    int64_t n = one_.num_rows;
    for (; begin < end && n < max_rows_ && ids_.IsAlone(begin); ++begin, ++n) {
      one_.touched[n] = {ids_.Row(begin), begin, begin + 1};
    }
    one_.num_rows = one_.num_ids = n;
    return begin;
  }

  void Submit(Tile* tile) {
    if (tile->num_rows == 0) return;
    if (waiting_.num_rows > 0) run_(waiting_, tile);
    std::swap(waiting_, *tile);
    tile->Clear();
  }

  void Finish() {
    if (waiting_.num_rows > 0) run_(waiting_, nullptr);
    waiting_.Clear();
  }

  const SortedIds& ids_;
  const int64_t max_rows_;
  Run run_;
  Tile one_, many_, waiting_;
};

}  // namespace packed_update
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_UPDATE_TILES_H_
