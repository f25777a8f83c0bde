// Where the rows and the gradients of a tile are, found one tile ahead so that they
// can be prefetched.

#ifndef PICASSO_TF_CC_KERNELS_UPDATE_LOCATED_H_
#define PICASSO_TF_CC_KERNELS_UPDATE_LOCATED_H_

#include <algorithm>
#include <memory>
#include <vector>

#include "picasso_tf/cc/kernels/packed_update.h"
#include "picasso_tf/cc/kernels/row_sort.h"
#include "picasso_tf/cc/kernels/update_program.h"
#include "picasso_tf/cc/kernels/update_tiles.h"
#include "picasso_tf/cc/kernels/update_values.h"

namespace picasso {
namespace packed_update {

constexpr int64_t kCacheLine = 64;

// Rows to prefetch, a few at a time.
class Ahead {
 public:
  void Clear() {
    lists_.clear();
    list_ = 0;
    row_ = 0;
    num_rows_ = 0;
    credit_ = 0;
  }

  // `rows` must stay where they are.
  template <typename T>
  void Add(T* const* rows, int64_t count, int64_t bytes) {
    if (count == 0 || bytes == 0) return;
    lists_.push_back({reinterpret_cast<const char* const*>(rows), count, bytes});
    num_rows_ += count;
  }

  // After `work` of `all_work` that there is until the rows are needed.
  void Fetch(int64_t work, int64_t all_work) {
    for (credit_ += work * num_rows_; credit_ >= all_work && list_ < lists_.size();
         credit_ -= all_work) {
      const List& list = lists_[list_];
      const char* row = list.rows[row_];
      for (int64_t at = 0; at < list.bytes; at += kCacheLine) {
        __builtin_prefetch(row + at, 0, 3);
      }
      // It may begin in the middle of a line and end in one more.
      __builtin_prefetch(row + list.bytes - 1, 0, 3);
      if (++row_ < list.count) continue;
      row_ = 0;
      ++list_;
    }
  }

 private:
  struct List {
    const char* const* rows;
    int64_t count;
    int64_t bytes;  // of each row
  };
  std::vector<List> lists_;
  size_t list_ = 0;  // the next row
  int64_t row_ = 0;
  int64_t num_rows_ = 0;  // of all lists
  int64_t credit_ = 0;
};

// The rows of one tile in memory, and its ids: as many as fit a buffer.
template <typename T>
class Located {
 public:
  Located(const Counts& counts, const Table& table, const SortedIds& ids)
      : counts_(counts),
        table_(table),
        ids_(ids),
        most_(TileRows(table)),
        rows_(new T*[most_ * num_values()]),
        gradients_(new const T*[most_ * counts.row_gradients]),
        places_(new int32_t[most_]),
        numbers_(new int64_t[most_]) {
    for (int g = 0; g < counts.row_gradients; ++g) {
      if (IsScaled(table, g)) scales_.resize(most_ * counts.row_gradients, Compute<T>(1));
    }
  }

  // Finds the rows of `tile`, from one of their columns on, and its first ids.
  void Find(const Tile& tile, int64_t column) {
    tile_ = &tile;
    column_ = column;
    num_strips_ = tile.contiguous() ? 1 : tile.num_rows;
    for (int i = 0; i < counts_.states; ++i) FindRows(i, table_.states[i]);
    for (int i = 0; i < counts_.table_gradients; ++i) {
      FindRows(counts_.states + i, const_cast<void*>(table_.table_gradients[i]));
    }
    Rewind();
    NextIds();
    knows_rows_with_ids_ = false;
  }

  // The same tile has moved to another place.
  void Follow(const Tile& tile) { tile_ = &tile; }

  // Rows that follow each other in memory are one strip. Value `i` is a state or,
  // after those, a table gradient.
  int num_values() const { return counts_.states + counts_.table_gradients; }
  int64_t num_strips() const { return num_strips_; }
  T* const* Strips(int i) const { return rows_.get() + i * most_; }

  void Rewind() {
    touched_ = 0;
    key_ = tile_->contiguous() ? tile_->first_key : 0;
  }

  // Takes as many of the tile's ids as fit a buffer. False: there are none left.
  bool NextIds() {
    num_ids_ = 0;
    if (tile_->contiguous()) {
      NextOfGroup();
    } else {
      NextOfTouched();
    }
    for (int g = 0; g < counts_.row_gradients; ++g) FindGradients(g);
    return num_ids_ > 0;
  }

  // Of these ids: how many there are, the places of their rows in the tile, their
  // numbers in the table, and their gradients.
  int64_t num_ids() const { return num_ids_; }
  const int32_t* places() const { return places_.get(); }
  int64_t Number(int64_t i) const { return numbers_[i]; }
  const T* const* Gradients(int g) const { return gradients_.get() + g * most_; }

  // What each id multiplies its gradient by; nullptr: nothing.
  const Compute<T>* Scales(int g) const {
    return scales_.empty() ? nullptr : scales_.data() + g * most_;
  }

  // For each row of a group, whether it has an id.
  const std::vector<bool>& RowsWithIds() {
    if (!knows_rows_with_ids_) {
      has_ids_.assign(tile_->num_rows, false);
      for (int64_t i = 0; i < tile_->num_ids; ++i) {
        has_ids_[ids_.Row(tile_->first_key + i) - tile_->first_row] = true;
      }
      knows_rows_with_ids_ = true;
    }
    return has_ids_;
  }

  void ListRows(Ahead* ahead) const {
    const int64_t strip_bytes = tile_->num_rows / num_strips_ * table_.row * sizeof(T);
    for (int i = 0; i < num_values(); ++i) {
      ahead->Add(Strips(i), num_strips_, std::min(strip_bytes, kMaxBytes));
    }
  }

  void ListGradients(Ahead* ahead) const {
    const int64_t row_bytes = table_.row * sizeof(T);
    for (int g = 0; g < counts_.row_gradients; ++g) {
      ahead->Add(Gradients(g), num_ids_, std::min(row_bytes, kMaxBytes));
    }
  }

 private:
  static constexpr int64_t kMaxBytes = 1024;  // the hardware sees longer streams

  void NextOfGroup() {
    const int64_t last = tile_->first_key + tile_->num_ids;
    for (; key_ < last && num_ids_ < most_; ++key_) {
      numbers_[num_ids_] = ids_.Id(key_);
      places_[num_ids_++] = static_cast<int32_t>(ids_.Row(key_) - tile_->first_row);
    }
  }

  void NextOfTouched() {
    for (; touched_ < tile_->num_rows && num_ids_ < most_; ++touched_) {
      const Tile::Touched& one = tile_->touched[touched_];
      key_ = std::max(key_, one.begin);
      const int64_t last = std::min(one.end, key_ + most_ - num_ids_);
      for (; key_ < last; ++key_) {
        numbers_[num_ids_] = ids_.Id(key_);
        places_[num_ids_++] = static_cast<int32_t>(touched_);
      }
      if (key_ < one.end) break;
    }
  }

  static bool IsScaled(const Table& table, int gradient) {
    for (int64_t s = 0; s < table.num_segments; ++s) {
      const Pool* pool = table.segments[s].gradients[gradient].pool;
      if (pool != nullptr && pool->IsScaled()) return true;
    }
    return false;
  }

  void FindGradients(int g) {
    const T** gradients = gradients_.get() + g * most_;
    if (num_ids_ == 0) return;
    const GradientRows& rows = table_.segments[0].gradients[g];
    const T* first = static_cast<const T*>(rows.data) + rows.first + column_;
    if (table_.num_segments > 1 || rows.ids_per_row > 1) {
      for (int64_t i = 0; i < num_ids_; ++i) {
        gradients[i] = GradientRow<T>(table_, g, numbers_[i]) + column_;
        if (!scales_.empty()) {
          ScaleOf(g)[i] = static_cast<Compute<T>>(GradientScale(table_, g, numbers_[i]));
        }
      }
    } else if (rows.pool != nullptr) {
      FindPooled(g, *rows.pool, first, rows.pitch);
    } else {
      for (int64_t i = 0; i < num_ids_; ++i) gradients[i] = first + numbers_[i] * rows.pitch;
    }
  }

  // As above, for the one segment of a table, whose ids were pooled.
  void FindPooled(int g, const Pool& pool, const T* first, int64_t pitch) {
    const T** gradients = gradients_.get() + g * most_;
    const int64_t num_listed = table_.segments[0].num_ids;
    for (int64_t i = 0; i < num_ids_; ++i) {
      const int64_t number = numbers_[i];
      if (ids_.by_pool() ? number >= pool.num_rows : pool.IsZero(number, num_listed)) {
        gradients[i] = static_cast<const T*>(pool.zeros) + column_;
        if (!scales_.empty()) ScaleOf(g)[i] = 1;
        continue;
      }
      gradients[i] = first + (ids_.by_pool() ? number : pool.RowOf(number)) * pitch;
      if (scales_.empty()) continue;
      ScaleOf(g)[i] = static_cast<Compute<T>>(ids_.by_pool() ? pool.scales[number]
                                                             : pool.ScaleOf(number));
    }
  }

  Compute<T>* ScaleOf(int g) { return scales_.data() + g * most_; }

  void FindRows(int i, void* data) {
    T** rows = rows_.get() + i * most_;
    for (int64_t k = 0; k < num_strips_; ++k) {
      rows[k] = static_cast<T*>(data) + tile_->Row(k) * table_.row + column_;
    }
  }

  const Counts& counts_;
  const Table& table_;
  const SortedIds& ids_;
  const int64_t most_;  // rows, or ids, that fit a buffer
  const Tile* tile_ = nullptr;
  int64_t column_ = 0;
  int64_t num_strips_ = 0;
  // Not set to anything at first: a task may be short.
  const std::unique_ptr<T*[]> rows_;
  const std::unique_ptr<const T*[]> gradients_;
  const std::unique_ptr<int32_t[]> places_;
  const std::unique_ptr<int64_t[]> numbers_;
  std::vector<Compute<T>> scales_;  // of all gradients, if one is scaled
  std::vector<bool> has_ids_;
  bool knows_rows_with_ids_ = false;
  int64_t num_ids_ = 0;
  int64_t touched_ = 0;  // the next id: of this row, at this key
  int64_t key_ = 0;
};

}  // namespace packed_update
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_UPDATE_LOCATED_H_
