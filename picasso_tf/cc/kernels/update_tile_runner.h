// Runs an update program on one tile after another: each instruction, or chain of
// them, is one loop over the tile.

#ifndef PICASSO_TF_CC_KERNELS_UPDATE_TILE_RUNNER_H_
#define PICASSO_TF_CC_KERNELS_UPDATE_TILE_RUNNER_H_

#include <algorithm>
#include <type_traits>
#include <vector>

#include "picasso_tf/cc/kernels/packed_update.h"
#include "picasso_tf/cc/kernels/row_sort.h"
#include "picasso_tf/cc/kernels/update_ends.h"
#include "picasso_tf/cc/kernels/update_loops.h"
#include "picasso_tf/cc/kernels/update_mapper.h"
#include "picasso_tf/cc/kernels/update_plan.h"
#include "picasso_tf/cc/kernels/update_tile_values.h"
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
        loops_(Loops<T>::OfThisMachine()),
        values_(plan, table, ids),
        ends_(program_, table, ids) {}

  // Updates the rows of a tile; `next` is the tile after it, or nullptr. `all_rows`:
  // also those of a group's rows that have no id.
  void Run(const Tile& tile, const Tile* next, bool all_rows = true) {
    values_.GoTo(tile, next, mapper_.ahead());
    for (int64_t column = 0; column < table_.row; column += values_.width()) {
      ComputePart(column);
      values_.Store(all_rows);
    }
  }

  // The same in two steps, for rows that are not longer than a buffer. In between
  // `sweeper` changes `num_rows` rows in memory, and fetches what `next` needs.
  void Prepare(const Tile& tile, const Tile* next, int64_t num_rows, TileRunner* sweeper) {
    values_.GoTo(tile, next, sweeper->mapper_.ahead());
    sweeper->rows_until_next_ = num_rows;
    ComputePart(0);
  }
  void Store() { values_.Store(/*all_rows=*/true); }

 private:
  int Result(int at) const { return counts_.FirstResult() + at; }
  const Operand<C>& In(const Instruction& instruction, int i) const {
    return values_[instruction.operands[i]];
  }

  void ComputePart(int64_t column) {
    values_.Load(column);
    streams_.clear();
    if constexpr (std::is_same_v<T, C>) {
      const Located<T>& located = values_.located();
      for (int i = 0; i < located.num_values() && plan_.in_place(); ++i) {
        streams_.push_back(located.Strips(i)[0]);
      }
    }
    const int64_t elements = std::max(values_.elements(), rows_until_next_ * values_.width());
    mapper_.BeginTile(elements * program_.instructions.size(), streams_);
    // Many tiles have the same form: the same chain in the same buffers, or in rows
    // that lie further on.
    const bool may_repeat = plan_.in_place() ? values_.is_stored() : values_.tile().unit();
    if (may_repeat && values_.elements() == repeatable_) return mapper_.Repeat();
    for (size_t at = 0; at < program_.instructions.size(); ++at) Execute(at);
    mapper_.Flush();
    repeatable_ = may_repeat && mapper_.IsOneChain() ? values_.elements() : -1;
  }

  void Execute(int at) {
    const Instruction& instruction = program_.instructions[at];
    const Level level = program_.levels[Result(at)];
    const Tile& tile = values_.tile();
    if (level == Level::kScalar) return;
    if (level == Level::kId) {
      if (tile.num_ids > 0 && !values_.streamed()) ExecuteOnIds(at);
      return;
    }
    C* out = values_.OutputOf(at);
    if (!IsElementwise(instruction.opcode) && tile.num_ids == 0) return Keep(instruction, at, out);
    if (IsElementwise(instruction.opcode)) {
      // Operands that it does not have are value 0, and ignored.
      const Operand<C> in[] = {In(instruction, 0), In(instruction, 1), In(instruction, 2)};
      Map(instruction, in, out, values_.elements(), level, plan_.IsBrief(at));
    } else if (IsReduction(instruction.opcode) && !tile.unit()) {
      Reduce(at, out);
    } else {
      Combine(instruction, out, plan_.IsBrief(at));
      if (tile.contiguous()) Restore(In(instruction, 0), out);
    }
    values_.Set(Result(at), {out, false});
  }

  void ExecuteOnIds(int at) {
    const Instruction& instruction = program_.instructions[at];
    Operand<C> in[3];
    for (int i = 0; i < instruction.num_operands; ++i) {
      const int value = instruction.operands[i];
      in[i] = program_.levels[value] == Level::kRow ? Repeated(values_[value], i) : values_[value];
    }
    C* out = values_.OutputOf(at);
    Map(instruction, in, out, values_.id_elements(), Level::kId,
        !values_.streamed() && plan_.IsBrief(at));
    values_.Set(Result(at), {out, false});
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
    if (!ends_.AnyLeft()) return;
    const int64_t width = values_.width();
    const bool by_id = level == Level::kId && instruction.opcode != Opcode::kUniqueRsqrt;
    for (int64_t i = 0; i * width < n; ++i) {
      const int64_t number = by_id ? values_.located().Number(i) : values_.tile().Row(i);
      const int64_t first =
          ends_.FirstColumn(instruction.opcode, level, number) - values_.column();
      for (int64_t k = std::max<int64_t>(first, 0); k < width; ++k) {
        const int64_t at = i * width + k;
        const C a = in[0].data[in[0].scalar ? 0 : at];
        const C b = in[1].data == nullptr ? a : in[1].data[in[1].scalar ? 0 : at];
        out[at] = Evaluate<T>(instruction.opcode, a, b, a);
      }
    }
  }

  // A row value as a value of ids.
  Operand<C> Repeated(const Operand<C>& in, int spare) {
    if (values_.tile().unit() || in.scalar) return in;
    mapper_.Break();
    return values_.Repeated(in, values_.Spare(spare));
  }

  // The result for rows without ids, before any is added.
  void Begin(const Instruction& instruction, C* out) {
    mapper_.Break();
    if (instruction.num_operands == 1) {
      std::fill_n(out, values_.elements(), C(0));
    } else {
      Copy(In(instruction, 0), out);
    }
  }

  void Copy(const Operand<C>& in, C* out) const {
    if (in.scalar) {
      values_.Filled(in, values_.elements(), out);
    } else if (in.data != out) {
      std::copy_n(in.data, values_.elements(), out);
    }
  }

  // No row of the tile has an id: the result is there already.
  void Keep(const Instruction& instruction, int at, C* out) {
    const bool is_sum = instruction.num_operands == 1;
    if (plan_.Output(at) >= 0 || (!is_sum && In(instruction, 0).scalar)) {
      Begin(instruction, out);
      values_.Set(Result(at), {out, false});
    } else {
      values_.Set(Result(at), is_sum ? Operand<C>{values_.Zeros(), false} : In(instruction, 0));
    }
  }

  // Each row has one id, or need not know how many.
  void Combine(const Instruction& instruction, C* out, bool brief) {
    const Operand<C> zero = {values_.Zeros(), true};
    const Operand<C>& x = In(instruction, instruction.num_operands - 1);
    Operand<C> row = instruction.num_operands == 1 ? zero : In(instruction, 0);
    if (Step(instruction.opcode) == Opcode::kSelect) {
      mapper_.Break();
      return Copy(x, out);
    }
    if (row.scalar && x.scalar) {
      mapper_.Break();
      row = values_.Filled(row, values_.elements(), out);
    }
    const Operand<C> in[] = {row, x};
    mapper_.Map({Step(instruction.opcode), 2, {}}, in, out, values_.elements(), brief);
  }

  // Rows of a group that have no id keep the first operand.
  void Restore(const Operand<C>& kept, C* out) {
    mapper_.Break();
    const std::vector<bool>& has_ids = values_.located().RowsWithIds();
    const int64_t width = values_.width();
    for (int64_t i = 0; i < values_.tile().num_rows; ++i) {
      if (has_ids[i]) continue;
      if (kept.scalar) {
        std::fill_n(out + i * width, width, *kept.data);
      } else {
        std::copy_n(kept.data + i * width, width, out + i * width);
      }
    }
  }

  void Reduce(int at, C* out) {
    if (values_.streamed()) {
      if (const Plan::Sweep* sweep = plan_.SweepAt(at)) Run(*sweep);
    } else {
      Begin(program_.instructions[at], out);
      Accumulate(at);
    }
  }

  // The tile's ids, as many at a time as fit a buffer.
  void Run(const Plan::Sweep& sweep) {
    for (int at : sweep.reductions) Begin(program_.instructions[at], values_.OutputOf(at));
    values_.located().Rewind();
    while (values_.located().NextIds()) {
      values_.LoadGradients(&sweep.needs);
      int next = 0;  // id values share buffers, so each is made when it is needed
      for (int at : sweep.reductions) {
        for (; next < at; ++next) {
          if (sweep.needs[Result(next)]) ExecuteOnIds(next);
        }
        Accumulate(at);
      }
    }
  }

  void Accumulate(int at) {
    const Instruction& instruction = program_.instructions[at];
    C* out = values_.OutputOf(at);
    const int value = instruction.operands[instruction.num_operands - 1];
    mapper_.Break();
    const Located<T>& located = values_.located();
    if (values_.InPlace(value)) {
      const int gradient = value - counts_.FirstRowGradient();
      return loops_.accumulate_rows(Step(instruction.opcode), located.Gradients(gradient),
                                    located.Scales(gradient), located.places(), located.num_ids(),
                                    values_.width(), out);
    }
    Operand<C> in = values_[value];
    if (in.scalar) in = values_.Filled(in, values_.id_elements(), values_.Spare(0));
    if (program_.levels[value] == Level::kRow) in = Repeated(in, 0);
    loops_.accumulate(Step(instruction.opcode), in.data, located.places(), located.num_ids(),
                      values_.width(), out);
  }

  const Plan& plan_;
  const Program& program_;
  const Counts& counts_;
  const Table& table_;
  const Loops<T>& loops_;
  TileValues<T> values_;
  Mapper<T> mapper_;
  const PacketEnds<T> ends_;
  std::vector<C*> streams_;  // of the part of a tile: rows that are used in place
  int64_t rows_until_next_ = 0;  // 0: as many as a tile has
  int64_t repeatable_ = -1;  // elements of the tile before, if its chain may be repeated
};

}  // namespace packed_update
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_UPDATE_TILE_RUNNER_H_
