// Where the CPU kernel keeps each value of an update program while it works on a
// tile. Values that are never needed at once share a buffer, so that all buffers
// of a tile stay in the L1 cache.

#ifndef PICASSO_TF_CC_KERNELS_UPDATE_PLAN_H_
#define PICASSO_TF_CC_KERNELS_UPDATE_PLAN_H_

#include <algorithm>
#include <vector>

#include "picasso_tf/cc/kernels/update_program.h"

namespace picasso {
namespace packed_update {

// With `in_place` row values of states and table gradients are used where they
// are, in contiguous rows; else they are copied to a buffer first.
class Plan {
 public:
  Plan(const Program& program, bool in_place) : program_(program), in_place_(in_place) {
    FindReads();
    FindSweeps();
    FindLastUses();
    FindOutputs();
    AssignSlots();
    for (int g = 0; g < program.counts.row_gradients; ++g) {
      only_reduced_.push_back(program.IsOnlyReduced(program.counts.FirstRowGradient() + g));
    }
  }

  const Program& program() const { return program_; }
  bool in_place() const { return in_place_; }

  // The buffer of a value, or -1. Rows and ids have buffers of their own: ids may
  // be computed again, piece by piece, while values of rows are kept.
  int Slot(int value) const { return slots_[value]; }
  int NumSlots() const { return num_slots_; }

  // The state whose memory instruction `at` writes its result to, or -1.
  int Output(int at) const { return outputs_[at]; }

  // Whether every new row is written where it belongs, with nothing left to copy.
  bool WritesInPlace() const {
    for (int state = 0; state < program_.counts.states; ++state) {
      if (!program_.IsWritten(state)) continue;
      if (std::find(outputs_.begin(), outputs_.end(), state) == outputs_.end()) return false;
    }
    return true;
  }

  // Whether no instruction but the one after `at` reads the result of `at`.
  bool IsBrief(int at) const { return last_use_[Result(at)] <= at + 1; }

  // Whether gradient `gradient` is only ever reduced, straight from where it is.
  bool IsOnlyReduced(int gradient) const { return only_reduced_[gradient]; }

  // Reductions that can run in one sweep over the ids of a tile, because they read no
  // row value that is computed after the first of them begins.
  struct Sweep {
    std::vector<int> reductions;
    std::vector<bool> needs;  // the id values that they depend on
  };

  // The sweep that begins with instruction `at`, or nullptr: an earlier one has it.
  const Sweep* SweepAt(int at) const {
    const Sweep& sweep = sweeps_[at];
    return sweep.reductions.empty() ? nullptr : &sweep;
  }

 private:
  int Result(int at) const { return program_.counts.FirstResult() + at; }
  int NumInstructions() const { return static_cast<int>(program_.instructions.size()); }

  // Rows that no id touches keep their first operand: where no row of a tile has an
  // id, the result is the operand's own buffer.
  bool MayShare(const Instruction& instruction) const {
    return !IsElementwise(instruction.opcode) && instruction.num_operands == 2 &&
           program_.levels[instruction.operands[0]] == Level::kRow;
  }

  // A reduction may compute the id values that it depends on again, so it also
  // reads what they are made of.
  void FindReads() {
    needs_.resize(NumInstructions());
    reads_.resize(NumInstructions());
    for (int at = 0; at < NumInstructions(); ++at) {
      needs_[at].assign(program_.NumValues(), false);
      reads_[at].assign(program_.NumValues(), false);
      AddReads(program_.instructions[at], at);
      if (!IsReduction(program_.instructions[at].opcode)) continue;
      for (int earlier = at - 1; earlier >= 0; --earlier) {
        if (needs_[at][Result(earlier)]) AddReads(program_.instructions[earlier], at);
      }
    }
  }

  void AddReads(const Instruction& instruction, int at) {
    for (int i = 0; i < instruction.num_operands; ++i) {
      const int value = instruction.operands[i];
      (program_.levels[value] == Level::kId ? needs_ : reads_)[at][value] = true;
    }
  }

  void FindSweeps() {
    sweeps_.resize(NumInstructions());
    for (int at = 0; at < NumInstructions(); ++at) {
      if (!IsReduction(program_.instructions[at].opcode)) continue;
      Sweep& sweep = sweeps_[FirstOfSweep(at)];
      sweep.reductions.push_back(at);
      sweep.needs.resize(program_.NumValues());
      for (int value = 0; value < program_.NumValues(); ++value) {
        if (needs_[at][value]) sweep.needs[value] = true;
      }
    }
  }

  // Rows that are used in place may change from instruction to instruction, so there
  // each reduction has a sweep of its own.
  int FirstOfSweep(int at) const {
    for (int first = 0; first < at && !in_place_; ++first) {
      if (sweeps_[first].reductions.empty()) continue;
      bool ready = true;
      for (int value = Result(first); value < Result(at); ++value) {
        ready &= !reads_[at][value] || program_.levels[value] == Level::kScalar;
      }
      if (ready) return first;
    }
    return at;
  }

  void FindLastUses() {
    last_use_.assign(program_.NumValues(), -1);
    root_.resize(program_.NumValues());
    for (int value = 0; value < program_.NumValues(); ++value) root_[value] = value;
    for (int at = 0; at < NumInstructions(); ++at) {
      const Instruction& instruction = program_.instructions[at];
      for (int i = 0; i < instruction.num_operands; ++i) last_use_[instruction.operands[i]] = at;
      for (int value = 0; value < Result(at); ++value) {
        if (reads_[at][value]) last_use_[value] = at;
      }
      if (MayShare(instruction)) root_[Result(at)] = root_[instruction.operands[0]];
    }
    for (int result : program_.results) last_use_[result] = NumInstructions();
    for (int value = program_.NumValues() - 1; value >= 0; --value) {
      last_use_[root_[value]] = std::max(last_use_[root_[value]], last_use_[value]);
    }
  }

  // A state whose old rows may be stored as another's new ones must be copied.
  bool MustCopy(int state) const {
    for (int other = 0; other < program_.counts.states; ++other) {
      if (other != state && root_[program_.results[other]] == state) return true;
    }
    return false;
  }

  // An instruction writes straight to the state that it is the result of, if
  // nothing needs the old rows any more.
  void FindOutputs() {
    outputs_.assign(NumInstructions(), -1);
    if (!in_place_) return;
    for (int state = 0; state < program_.counts.states; ++state) {
      const int at = program_.results[state] - program_.counts.FirstResult();
      if (at < 0 || program_.levels[Result(at)] != Level::kRow || outputs_[at] >= 0) continue;
      if (!MustCopy(state) && !ReadsAfter(state, at)) outputs_[at] = state;
    }
  }

  // Whether old rows of a state are read once instruction `at` has begun to write.
  bool ReadsAfter(int state, int at) const {
    for (int value = 0; value < program_.NumValues(); ++value) {
      if (root_[value] != state || value == Result(at)) continue;
      for (int later = at + 1; later < NumInstructions(); ++later) {
        if (reads_[later][value]) return true;
      }
      if (reads_[at][value] && !(value == state && MayRunInPlace(at, state))) return true;
    }
    return false;
  }

  // Whether instruction `at`, which reads the state, may write over it: element by
  // element, or row by row where it adds to the state. Instructions that have a
  // packet form look at their operands twice.
  bool MayRunInPlace(int at, int state) const {
    const Instruction& instruction = program_.instructions[at];
    if (IsElementwise(instruction.opcode)) return !MayHavePacketForm(instruction.opcode);
    if (!MayShare(instruction) || instruction.operands[0] != state ||
        instruction.operands[1] == state) {
      return false;
    }
    for (int earlier = 0; earlier < at; ++earlier) {
      const Instruction& other = program_.instructions[earlier];
      const int32_t* end = other.operands + other.num_operands;
      if (needs_[at][Result(earlier)] && std::find(other.operands, end, state) != end) return false;
    }
    return true;
  }

  void AssignSlots() {
    slots_.assign(program_.NumValues(), -1);
    const Counts& counts = program_.counts;
    for (int value = 0; value < counts.FirstParameter(); ++value) {
      const bool is_gradient = program_.levels[value] == Level::kId;
      const bool is_state = value < counts.states;
      if (is_gradient || !in_place_ || (is_state && MustCopy(value))) Take(value);
    }
    for (int at = 0; at < NumInstructions(); ++at) {
      if (const Sweep* sweep = SweepAt(at)) {
        for (int reduction : sweep->reductions) TakeForResult(reduction);
      }
      TakeForResult(at);
      for (int value = 0; value <= Result(at); ++value) {
        if (slots_[value] >= 0 && last_use_[value] == at) Free(value);
      }
    }
  }

  void TakeForResult(int at) {
    const int result = Result(at);
    if (slots_[result] >= 0 || outputs_[at] >= 0) return;
    if (program_.levels[result] != Level::kScalar) Take(result);
  }

  void Take(int value) {
    std::vector<int>& free = free_[program_.levels[value] == Level::kId];
    if (free.empty()) free.push_back(num_slots_++);
    slots_[value] = free.back();
    free.pop_back();
  }

  void Free(int value) { free_[program_.levels[value] == Level::kId].push_back(slots_[value]); }

  const Program& program_;
  const bool in_place_;
  std::vector<std::vector<bool>> needs_;  // id values that an instruction depends on
  std::vector<std::vector<bool>> reads_;  // other values, directly or through those
  std::vector<Sweep> sweeps_;               // by their first instruction
  std::vector<int> last_use_;  // number of an instruction; their number: used as a result
  std::vector<int> root_;      // the value whose buffer it may share
  std::vector<int> outputs_;
  std::vector<int> slots_;
  std::vector<int> free_[2];  // of rows, of ids
  std::vector<bool> only_reduced_;
  int num_slots_ = 0;
};

}  // namespace packed_update
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_UPDATE_PLAN_H_
