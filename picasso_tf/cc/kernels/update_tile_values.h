// The values of an update program on one tile: where they are, in memory or in
// buffers that stay in the L1 cache, and how they get there and back.

#ifndef PICASSO_TF_CC_KERNELS_UPDATE_TILE_VALUES_H_
#define PICASSO_TF_CC_KERNELS_UPDATE_TILE_VALUES_H_

#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

#include "picasso_tf/cc/kernels/packed_update.h"
#include "picasso_tf/cc/kernels/row_sort.h"
#include "picasso_tf/cc/kernels/update_buffers.h"
#include "picasso_tf/cc/kernels/update_located.h"
#include "picasso_tf/cc/kernels/update_loops.h"
#include "picasso_tf/cc/kernels/update_plan.h"
#include "picasso_tf/cc/kernels/update_tiles.h"

namespace picasso {
namespace packed_update {

// For one tile after another of one table. The states in memory are of type T.
template <typename T>
class TileValues {
 public:
  using C = Compute<T>;

  TileValues(const Plan& plan, const Table& table, const SortedIds& ids)
      : plan_(plan),
        program_(plan.program()),
        counts_(program_.counts),
        table_(table),
        is_stored_(plan.in_place() && plan.WritesInPlace()),
        loops_(Loops<T>::OfThisMachine()),
        buffers_(plan.NumSlots() + kSpareBuffers),
        scalars_(EvaluateScalars<T>(program_, table)),
        values_(program_.NumValues()),
        located_{{counts_, table, ids}, {counts_, table, ids}} {
    std::fill_n(Zeros(), kTileElements, C(0));
    for (int value = 0; value < program_.NumValues(); ++value) {
      values_[value] = {&scalars_[value], program_.levels[value] == Level::kScalar};
    }
  }

  // Goes to a tile; `next` is the one after it, or nullptr. `ahead`: rows that the
  // next one needs.
  void GoTo(const Tile& tile, const Tile* next, Ahead* ahead) {
    tile_ = &tile;
    if (has_next_) {
      std::swap(here_, next_);
      here_->Follow(tile);
    } else {
      here_->Find(tile, 0);
    }
    has_next_ = next != nullptr;
    if (has_next_) next_->Find(*next, 0);
    if (plan_.in_place()) return;  // the hardware sees streams
    ahead->Clear();
    if (has_next_) {
      next_->ListRows(ahead);
      next_->ListGradients(ahead);
    }
  }

  // Goes to the part of the tile's rows that begins at `column`, and loads them: a row
  // longer than a buffer is done in parts.
  void Load(int64_t column) {
    if (column > 0) here_->Find(*tile_, column);
    column_ = column;
    width_ = std::min(table_.row - column, kTileElements);
    streamed_ = tile_->num_ids > here_->num_ids();
    LoadRows();
    if (tile_->num_ids > 0 && !streamed_) LoadGradients(nullptr);
  }

  // Loads the gradients of the ids at hand, those that are needed, or all; not those that
  // `InPlace` says are reduced from where they are.
  void LoadGradients(const std::vector<bool>* needs) {
    for (int i = 0; i < counts_.row_gradients; ++i) {
      const int value = counts_.FirstRowGradient() + i;
      if (InPlace(value)) continue;
      if (needs != nullptr && !(*needs)[value]) continue;
      C* buffer = buffers_[plan_.Slot(value)];
      loops_.gather(here_->Gradients(i), here_->num_ids(), width_, buffer);
      if (const C* scales = here_->Scales(i)) {
        loops_.scale(scales, here_->num_ids(), width_, buffer);
      }
      values_[value] = {buffer, false};
    }
  }

  // Whether a value is a gradient that is not loaded.
  bool InPlace(int value) const {
    const int gradient = value - counts_.FirstRowGradient();
    return 0 <= gradient && gradient < counts_.row_gradients && plan_.IsOnlyReduced(gradient) &&
           !tile_->unit();
  }

  // Stores the new rows of the states. `all_rows`: also those of a group's rows that
  // have no id.
  void Store(bool all_rows) {
    if (is_stored_) return;
    for (int state = 0; state < counts_.states; ++state) {
      if (!program_.IsWritten(state)) continue;
      Operand<C> result = values_[program_.results[state]];
      T* const* strips = here_->Strips(state);
      if (static_cast<const void*>(result.data) == strips[0]) continue;
      if (result.scalar) result = Filled(result, elements(), Spare(0));
      if (tile_->contiguous() && !all_rows) {
        StoreTouched(result.data, strips[0]);
      } else {
        loops_.scatter(result.data, here_->num_strips(), Strip(), strips);
      }
    }
  }

  // Whether the instructions themselves write all new rows where they belong.
  bool is_stored() const { return is_stored_; }

  const Tile& tile() const { return *tile_; }
  Located<T>& located() { return *here_; }
  const Located<T>& located() const { return *here_; }
  bool streamed() const { return streamed_; }  // the tile has more ids than fit a buffer
  int64_t column() const { return column_; }
  int64_t width() const { return width_; }  // of the part of the rows
  int64_t elements() const { return tile_->num_rows * width_; }
  int64_t id_elements() const { return here_->num_ids() * width_; }

  const Operand<C>& operator[](int value) const { return values_[value]; }
  void Set(int value, const Operand<C>& operand) { values_[value] = operand; }

  // Where instruction `at` writes its result.
  C* OutputOf(int at) const {
    if constexpr (std::is_same_v<T, C>) {
      if (plan_.Output(at) >= 0) return here_->Strips(plan_.Output(at))[0];
    }
    return buffers_[plan_.Slot(counts_.FirstResult() + at)];
  }

  C* Spare(int i) const { return buffers_[plan_.NumSlots() + i]; }
  C* Zeros() const { return Spare(kSpareBuffers - 1); }

  static Operand<C> Filled(const Operand<C>& in, int64_t n, C* out) {
    std::fill_n(out, n, *in.data);
    return {out, false};
  }

  // A row value, with a row for each id.
  Operand<C> Repeated(const Operand<C>& in, C* out) const {
    loops_.repeat(in.data, here_->places(), here_->num_ids(), width_, out);
    return {out, false};
  }

 private:
  // Beside those of the plan: three to repeat rows for their ids, one of zeros.
  static constexpr int kSpareBuffers = 4;

  void StoreTouched(const C* rows, T* to) {
    const std::vector<bool>& has_ids = here_->RowsWithIds();
    for (int64_t i = 0; i < tile_->num_rows; ++i) {
      T* const row = to + i * width_;
      if (has_ids[i]) loops_.scatter(rows + i * width_, 1, width_, &row);
    }
  }

  int64_t Strip() const { return elements() / here_->num_strips(); }

  void LoadRows() {
    for (int i = 0; i < counts_.states; ++i) LoadRow(i, i);
    for (int i = 0; i < counts_.table_gradients; ++i) {
      LoadRow(counts_.FirstTableGradient() + i, counts_.states + i);
    }
  }

  void LoadRow(int value, int place) {
    const int slot = plan_.Slot(value);
    if (slot < 0) {
      if constexpr (std::is_same_v<T, C>) values_[value] = {here_->Strips(place)[0], false};
      return;
    }
    loops_.gather(here_->Strips(place), here_->num_strips(), Strip(), buffers_[slot]);
    values_[value] = {buffers_[slot], false};
  }

  const Plan& plan_;
  const Program& program_;
  const Counts& counts_;
  const Table& table_;
  const bool is_stored_;
  const Loops<T>& loops_;

  const Buffers<C> buffers_;
  const std::vector<C> scalars_;
  std::vector<Operand<C>> values_;

  const Tile* tile_ = nullptr;
  Located<T> located_[2];
  Located<T>* here_ = &located_[0];
  Located<T>* next_ = &located_[1];
  bool has_next_ = false;
  int64_t column_ = 0;
  int64_t width_ = 0;
  bool streamed_ = false;
};

}  // namespace packed_update
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_UPDATE_TILE_VALUES_H_
