// Runs an update program on one tile after another: each instruction is one loop
// over the tile, in buffers that stay in the L1 cache. Between the instructions the
// rows of the next tile are prefetched.

#ifndef PICASSO_TF_CC_KERNELS_UPDATE_TILE_RUNNER_H_
#define PICASSO_TF_CC_KERNELS_UPDATE_TILE_RUNNER_H_

#include <algorithm>
#include <memory>
#include <type_traits>
#include <vector>

#include "picasso_tf/cc/kernels/packed_update.h"
#include "picasso_tf/cc/kernels/row_sort.h"
#include "picasso_tf/cc/kernels/update_ends.h"
#include "picasso_tf/cc/kernels/update_located.h"
#include "picasso_tf/cc/kernels/update_loops.h"
#include "picasso_tf/cc/kernels/update_mapper.h"
#include "picasso_tf/cc/kernels/update_plan.h"
#include "picasso_tf/cc/kernels/update_tiles.h"

namespace picasso {
namespace packed_update {

// For the tiles of one table. The states in memory are of type T.
template <typename T>
class TileRunner {
 public:
  using C = Compute<T>;

  TileRunner(const Plan& plan, const Table& table, const SortedIds& ids)
      : plan_(plan),
        program_(plan.program()),
        counts_(program_.counts),
        table_(table),
        is_stored_(plan.in_place() && plan.WritesInPlace()),
        loops_(Loops<T>::OfThisMachine()),
        memory_(new Line[(plan.NumSlots() + kSpareBuffers) * kBufferLines]),
        values_(program_.NumValues()),
        located_{{counts_, table, ids}, {counts_, table, ids}} {
    std::fill_n(Buffer(ZeroBuffer()), kTileElements, C(0));
    EvaluateScalars();
    for (const Instruction& instruction : program_.instructions) {
      if (instruction.opcode != Opcode::kUniqueRsqrt) continue;
      end_of_distinct_ = EndOfDistinctRows(table, ids, kPacket);
      break;
    }
  }

  // Updates the rows of a tile; `next` is the tile after it, or nullptr.
  void Run(const Tile& tile, const Tile* next) {
    Turn(tile, next);
    // A row longer than a buffer is done in parts.
    for (int64_t column = 0; column < table_.row; column += width_) {
      if (column > 0) here_->Find(tile, column);
      ComputePart(column);
      StorePart();
    }
  }

  // The same in two steps, for rows that are not longer than a buffer. In between
  // the rows in memory may change.
  void Prepare(const Tile& tile) {
    Turn(tile, nullptr);
    ComputePart(0);
  }
  void Store() {
    mapper_.ahead()->Clear();
    here_->ListStrips(mapper_.ahead());
    mapper_.ahead()->FetchAll();
    StorePart();
  }

 private:
  // Beside those of the plan: three to repeat rows for their ids, one of zeros.
  static constexpr int kSpareBuffers = 4;
  static constexpr int64_t kPacket = 32 / sizeof(C);  // TensorFlow is built for AVX
  struct alignas(64) Line {
    C elements[64 / sizeof(C)];
  };
  // Buffers that are a power of two apart would fall into the same sets of the cache.
  static constexpr int64_t kBufferLines = kTileElements * sizeof(C) / sizeof(Line) + 5;

  C* Buffer(int slot) const { return memory_[slot * kBufferLines].elements; }
  C* Spare(int i) const { return Buffer(plan_.NumSlots() + i); }
  int ZeroBuffer() const { return plan_.NumSlots() + kSpareBuffers - 1; }
  int Result(int at) const { return counts_.FirstResult() + at; }
  const Operand<C>& In(const Instruction& instruction, int i) const {
    return values_[instruction.operands[i]];
  }

  void EvaluateScalars() {
    scalars_.resize(program_.NumValues());
    for (int i = 0; i < counts_.parameters; ++i) {
      const T* parameter = static_cast<const T*>(table_.parameters[i]);
      scalars_[counts_.FirstParameter() + i] = Value<T>::Load(*parameter);
    }
    for (size_t at = 0; at < program_.instructions.size(); ++at) {
      const Instruction& instruction = program_.instructions[at];
      if (program_.levels[Result(at)] != Level::kScalar) continue;
      const int32_t* from = instruction.operands;
      scalars_[Result(at)] =
          Evaluate<T>(instruction.opcode, scalars_[from[0]], scalars_[from[1]], scalars_[from[2]]);
    }
    for (int value = 0; value < program_.NumValues(); ++value) {
      values_[value] = {&scalars_[value], program_.levels[value] == Level::kScalar};
    }
  }

  // ---- Rows and ids of the tile ----

  void Turn(const Tile& tile, const Tile* next) {
    tile_ = &tile;
    if (has_next_) {
      std::swap(here_, next_);
      here_->Follow(tile);
    } else {
      here_->Find(tile, 0);
    }
    mapper_.ahead()->Clear();
    has_next_ = next != nullptr;
    if (has_next_) {
      next_->Find(*next, 0);
      if (!plan_.in_place()) next_->ListStrips(mapper_.ahead());
    }
    std::vector<C*>& streams = streams_;
    streams.clear();
    if constexpr (std::is_same_v<T, C>) {
      for (int i = 0; i < here_->num_values() && plan_.in_place(); ++i) {
        streams.push_back(here_->Strips(i)[0]);
      }
    }
    mapper_.BeginTile(tile.num_rows * table_.row * program_.instructions.size(), streams);
  }

  void ComputePart(int64_t column) {
    column_ = column;
    width_ = std::min(table_.row - column, kTileElements);
    elements_ = tile_->num_rows * width_;
    streamed_ = tile_->num_ids > here_->num_ids();
    LoadRows();
    if (tile_->num_ids > 0 && !streamed_) LoadGradients(nullptr);
    // Many tiles have the same form: the same chain in the same buffers, or in rows
    // that lie further on.
    const bool may_repeat = is_stored_ || (!plan_.in_place() && tile_->unit());
    if (may_repeat && elements_ == repeatable_) return mapper_.Repeat();
    for (size_t at = 0; at < program_.instructions.size(); ++at) Execute(at);
    mapper_.Flush();
    repeatable_ = may_repeat && mapper_.IsOneChain() ? elements_ : -1;
  }

  int64_t Strip() const { return elements_ / here_->num_strips(); }

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
    loops_.gather(here_->Strips(place), here_->num_strips(), Strip(), Buffer(slot));
    values_[value] = {Buffer(slot), false};
  }

  void StorePart() {
    if (is_stored_) return;
    for (int state = 0; state < counts_.states; ++state) {
      if (!program_.IsWritten(state)) continue;
      Operand<C> result = values_[program_.results[state]];
      T* const* strips = here_->Strips(state);
      if (static_cast<const void*>(result.data) == strips[0]) continue;
      if (result.scalar) result = Filled(result, elements_, Spare(0));
      loops_.scatter(result.data, here_->num_strips(), Strip(), strips);
    }
  }

  // The gradients of the ids: those that are needed, or all.
  void LoadGradients(const std::vector<bool>* needs) {
    for (int i = 0; i < counts_.row_gradients; ++i) {
      const int value = counts_.FirstRowGradient() + i;
      if (needs != nullptr && !(*needs)[value]) continue;
      C* buffer = Buffer(plan_.Slot(value));
      loops_.gather(here_->Gradients(i), here_->num_ids(), width_, buffer);
      values_[value] = {buffer, false};
    }
  }

  // ---- Instructions ----

  C* OutputOf(int at) const {
    if constexpr (std::is_same_v<T, C>) {
      if (plan_.Output(at) >= 0) return here_->Strips(plan_.Output(at))[0];
    }
    return Buffer(plan_.Slot(Result(at)));
  }

  void Execute(int at) {
    const Instruction& instruction = program_.instructions[at];
    const Level level = program_.levels[Result(at)];
    if (level == Level::kScalar) return;
    if (level == Level::kId) {
      if (tile_->num_ids > 0 && !streamed_) ExecuteOnIds(at);
      return;
    }
    C* out = OutputOf(at);
    if (IsElementwise(instruction.opcode)) {
      // Operands that it does not have are value 0, and ignored.
      const Operand<C> in[] = {In(instruction, 0), In(instruction, 1), In(instruction, 2)};
      Map(instruction, in, out, elements_, level, plan_.IsBrief(at));
      values_[Result(at)] = {out, false};
    } else if (tile_->num_ids == 0) {
      Keep(instruction, at, out);
    } else {
      if (IsReduction(instruction.opcode) && !tile_->unit()) {
        Begin(instruction, out);
        Reduce(at, out);
      } else {
        Combine(instruction, out, plan_.IsBrief(at));
      }
      values_[Result(at)] = {out, false};
    }
  }

  void ExecuteOnIds(int at) {
    const Instruction& instruction = program_.instructions[at];
    Operand<C> in[3];
    for (int i = 0; i < instruction.num_operands; ++i) {
      const int value = instruction.operands[i];
      in[i] = program_.levels[value] == Level::kRow ? Repeated(values_[value], i) : values_[value];
    }
    C* out = Buffer(plan_.Slot(Result(at)));
    Map(instruction, in, out, here_->num_ids() * width_, Level::kId, !streamed_ && plan_.IsBrief(at));
    values_[Result(at)] = {out, false};
  }

  void Map(const Instruction& instruction, const Operand<C>* in, C* out, int64_t n, Level level,
           bool brief) {
    if (!HasPacketForm<T>(instruction.opcode)) {
      return mapper_.Map(instruction, in, out, n, brief);
    }
    mapper_.Break();
    if (instruction.opcode == Opcode::kMax || instruction.opcode == Opcode::kMin) {
      const Operand<C> swapped[] = {in[1], in[0]};
      loops_.map(instruction, out, swapped, n);
    } else {
      PacketRoots<T>(instruction.opcode, in[0].data, out, n);
    }
    CorrectEnd(instruction, in, out, n, level);
  }

  // Computes again what stands after the last whole packet.
  void CorrectEnd(const Instruction& instruction, const Operand<C>* in, C* out, int64_t n,
                  Level level) const {
    for (int64_t i = 0; i * width_ < n; ++i) {
      const int64_t first = EndOfPackets(instruction.opcode, i, level) - column_;
      for (int64_t k = std::max<int64_t>(first, 0); k < width_; ++k) {
        const int64_t at = i * width_ + k;
        const C a = in[0].data[in[0].scalar ? 0 : at];
        const C b = in[1].data == nullptr ? a : in[1].data[in[1].scalar ? 0 : at];
        out[at] = Evaluate<T>(instruction.opcode, a, b, a);
      }
    }
  }

  // The first column of row or id `i` of the tile that is in no whole packet.
  int64_t EndOfPackets(Opcode opcode, int64_t i, Level level) const {
    const int64_t row = table_.row;
    if (opcode == Opcode::kRowRsqrt) return row - row % kPacket;
    if (opcode == Opcode::kUniqueRsqrt) return end_of_distinct_.FirstColumn(tile_->Row(i), row);
    const bool on_ids = level == Level::kId;
    const int64_t all = (on_ids ? table_.num_ids : table_.rows) * row;
    return all - all % kPacket - (on_ids ? here_->Number(i) : tile_->Row(i)) * row;
  }

  // A row value, with a row for each id.
  Operand<C> Repeated(const Operand<C>& in, int spare) {
    if (tile_->unit() || in.scalar) return in;
    mapper_.Break();
    C* out = Spare(spare);
    for (int64_t i = 0; i < here_->num_ids(); ++i) {
      std::copy_n(in.data + here_->places()[i] * width_, width_, out + i * width_);
    }
    return {out, false};
  }

  static Operand<C> Filled(const Operand<C>& in, int64_t n, C* out) {
    std::fill_n(out, n, *in.data);
    return {out, false};
  }

  // The result for rows without ids, before any is added.
  void Begin(const Instruction& instruction, C* out) {
    mapper_.Break();
    if (instruction.num_operands == 1) {
      std::fill_n(out, elements_, C(0));
    } else if (In(instruction, 0).scalar) {
      Filled(In(instruction, 0), elements_, out);
    } else if (In(instruction, 0).data != out) {
      std::copy_n(In(instruction, 0).data, elements_, out);
    }
  }

  // No row of the tile has an id: the result is there already.
  void Keep(const Instruction& instruction, int at, C* out) {
    const bool is_sum = instruction.num_operands == 1;
    if (plan_.Output(at) >= 0 || (!is_sum && In(instruction, 0).scalar)) {
      Begin(instruction, out);
      values_[Result(at)] = {out, false};
    } else {
      values_[Result(at)] = is_sum ? Operand<C>{Buffer(ZeroBuffer()), false} : In(instruction, 0);
    }
  }

  // Each row has one id, or need not know how many.
  void Combine(const Instruction& instruction, C* out, bool brief) {
    const Operand<C> zero = {Buffer(ZeroBuffer()), true};
    const Operand<C>& x = In(instruction, instruction.num_operands - 1);
    Operand<C> row = instruction.num_operands == 1 ? zero : In(instruction, 0);
    if (Step(instruction.opcode) != Opcode::kSelect) {
      if (row.scalar && x.scalar) {
        mapper_.Break();
        row = Filled(row, elements_, out);
      }
      const Operand<C> in[] = {row, x};
      return mapper_.Map({Step(instruction.opcode), 2, {}}, in, out, elements_, brief);
    }
    mapper_.Break();
    if (x.scalar) {
      Filled(x, elements_, out);
    } else {
      std::copy_n(x.data, elements_, out);
    }
  }

  void Reduce(int at, C* out) {
    if (!streamed_) return Accumulate(at, out);
    here_->Rewind();
    while (here_->NextIds()) {
      LoadGradients(&plan_.Needs(at));
      for (int earlier = 0; earlier < at; ++earlier) {
        if (plan_.Needs(at)[Result(earlier)]) ExecuteOnIds(earlier);
      }
      Accumulate(at, out);
    }
  }

  void Accumulate(int at, C* out) {
    const Instruction& instruction = program_.instructions[at];
    const int value = instruction.operands[instruction.num_operands - 1];
    mapper_.Break();
    Operand<C> in = values_[value];
    if (in.scalar) in = Filled(in, here_->num_ids() * width_, Spare(0));
    if (program_.levels[value] == Level::kRow) in = Repeated(in, 0);
    loops_.accumulate(Step(instruction.opcode), in.data, here_->places(), here_->num_ids(), width_,
                      out);
  }

  const Plan& plan_;
  const Program& program_;
  const Counts& counts_;
  const Table& table_;
  const bool is_stored_;  // once the instructions have run
  const Loops<T>& loops_;

  const std::unique_ptr<Line[]> memory_;  // of all buffers
  std::vector<C> scalars_;
  std::vector<Operand<C>> values_;
  Mapper<T> mapper_;

  EndOfDistinctRows end_of_distinct_;
  const Tile* tile_ = nullptr;
  Located<T> located_[2];
  Located<T>* here_ = &located_[0];
  Located<T>* next_ = &located_[1];
  bool has_next_ = false;
  int64_t column_ = 0;  // of the part of the rows that is being done
  int64_t width_ = 0;
  int64_t elements_ = 0;
  std::vector<C*> streams_;
  int64_t repeatable_ = -1;  // elements of the tile before, if its chain may be repeated
  bool streamed_ = false;  // the tile has more ids than fit a buffer
};

}  // namespace packed_update
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_UPDATE_TILE_RUNNER_H_
