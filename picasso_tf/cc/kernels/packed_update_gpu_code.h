// An update program in the form in which a GPU thread runs it.
//
// A thread loops over the ids of its row as seldom as it can: the program is cut
// into phases, each of which computes row values and then runs once over the ids,
// for all reductions that need no result of a later one. Values of ids are computed
// anew in each phase that needs them, one id at a time. Row and id values live in
// slots, which are used again and again; scalars are computed once for each table.

#ifndef PICASSO_TF_CC_KERNELS_PACKED_UPDATE_GPU_CODE_H_
#define PICASSO_TF_CC_KERNELS_PACKED_UPDATE_GPU_CODE_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "picasso_tf/cc/kernels/update_program.h"

namespace picasso {
namespace packed_update {

// Operands are numbers of slots, or ~number of a scalar. `out` is a slot, or among
// steps on scalars a scalar's number. Reductions have become elementwise steps.
struct GpuStep {
  Opcode opcode;
  int32_t num_operands;
  int32_t operands[3];
  int32_t out;
};

// What is loaded or stored (a state, a table gradient, numbered after the states, or
// a row gradient), and its slot or operand.
struct GpuMove {
  int32_t source;
  int32_t value;
};

// Steps [row_begin, row_end) run once for a row, steps [row_end, id_end) for each id.
struct GpuPhase {
  int32_t row_begin;
  int32_t row_end;
  int32_t id_end;
  int32_t gradient_begin;  // row gradients that these ids need
  int32_t gradient_end;
};

// Scalars: zero, then the parameters, then results.
constexpr int32_t kGpuZero = 0;

class GpuCode {
 public:
  explicit GpuCode(const Program& program)
      : program_(program),
        needed_(program.NumValues(), false),
        phase_(program.NumValues(), 0),
        scalars_(program.NumValues(), -1),
        slots_(program.NumValues(), -1),
        last_use_(program.NumValues(), -1) {
    FindNeeded();
    FindPhases();
    NumberScalars();
    ListItems();
    AssignSlots();
  }

  const Counts& counts() const { return program_.counts; }
  const std::vector<GpuStep>& scalar_steps() const { return scalar_steps_; }
  const std::vector<GpuStep>& steps() const { return steps_; }
  const std::vector<GpuPhase>& phases() const { return phases_; }
  const std::vector<GpuMove>& loads() const { return loads_; }
  const std::vector<GpuMove>& gradients() const { return gradients_; }
  const std::vector<GpuMove>& stores() const { return stores_; }
  int num_slots() const { return num_slots_; }
  int num_scalars() const { return num_scalars_; }

 private:
  static constexpr int kZero = -1;  // stands for a value that is 0
  struct Item {                     // a step on values instead of slots
    Opcode opcode;
    std::vector<int> operands;
    int out;
  };

  int Result(int at) const { return program_.counts.FirstResult() + at; }
  int NumInstructions() const { return static_cast<int>(program_.instructions.size()); }
  Level LevelOf(int value) const { return value < 0 ? Level::kScalar : program_.levels[value]; }

  static std::vector<int> Operands(const Instruction& instruction) {
    return {instruction.operands, instruction.operands + instruction.num_operands};
  }

  void FindNeeded() {
    for (int state = 0; state < program_.counts.states; ++state) {
      if (program_.IsWritten(state)) needed_[program_.results[state]] = true;
    }
    for (int at = NumInstructions() - 1; at >= 0; --at) {
      if (!needed_[Result(at)]) continue;
      for (int value : Operands(program_.instructions[at])) needed_[value] = true;
    }
  }

  // A value of phase n can be computed once the reductions of phases before n are.
  void FindPhases() {
    for (int at = 0; at < NumInstructions(); ++at) {
      if (!needed_[Result(at)]) continue;
      int phase = 0;
      for (int value : Operands(program_.instructions[at])) phase = std::max(phase, phase_[value]);
      phase += IsReduction(program_.instructions[at].opcode);
      phase_[Result(at)] = phase;
      num_phases_ = std::max(num_phases_, phase + 1);
    }
  }

  void NumberScalars() {
    for (int i = 0; i < program_.counts.parameters; ++i) {
      scalars_[program_.counts.FirstParameter() + i] = num_scalars_++;
    }
    for (int at = 0; at < NumInstructions(); ++at) {
      if (LevelOf(Result(at)) != Level::kScalar || !needed_[Result(at)]) continue;
      const Instruction& instruction = program_.instructions[at];
      GpuStep step = {instruction.opcode, instruction.num_operands, {}, num_scalars_};
      for (int i = 0; i < step.num_operands; ++i) {
        step.operands[i] = ~scalars_[instruction.operands[i]];
      }
      scalar_steps_.push_back(step);
      scalars_[Result(at)] = num_scalars_++;
    }
  }

  // ---- The order of steps ----

  void ListItems() {
    for (int phase = 0; phase < num_phases_; ++phase) {
      GpuPhase one = {};
      one.row_begin = items_.size();
      ListRowItems(phase);
      one.row_end = items_.size();
      const std::vector<bool> wanted = WantedOfIds(phase);
      ListIdItems(phase, wanted);
      one.id_end = items_.size();
      one.gradient_begin = gradients_.size();
      for (int i = 0; i < program_.counts.row_gradients; ++i) {
        if (wanted[program_.counts.FirstRowGradient() + i]) gradients_.push_back({i, -1});
      }
      one.gradient_end = gradients_.size();
      phases_.push_back(one);
    }
  }

  // The values of ids that reductions of the phase depend on.
  std::vector<bool> WantedOfIds(int phase) const {
    std::vector<bool> wanted(program_.NumValues(), false);
    for (int at = NumInstructions() - 1; at >= 0; --at) {
      const bool on_ids = LevelOf(Result(at)) == Level::kId;
      if (!(on_ids ? wanted[Result(at)] : ReducesIn(phase, at))) continue;
      for (int value : Operands(program_.instructions[at])) {
        wanted[value] = LevelOf(value) == Level::kId;
      }
    }
    return wanted;
  }

  bool ReducesIn(int phase, int at) const {
    return needed_[Result(at)] && IsReduction(program_.instructions[at].opcode) &&
           phase_[Result(at)] == phase + 1;
  }

  // Last come the first values of sums over ids.
  void ListRowItems(int phase) {
    for (int at = 0; at < NumInstructions(); ++at) {
      const Instruction& instruction = program_.instructions[at];
      if (!needed_[Result(at)] || phase_[Result(at)] != phase) continue;
      if (LevelOf(Result(at)) != Level::kRow || IsReduction(instruction.opcode)) continue;
      items_.push_back({instruction.opcode, Operands(instruction), Result(at)});
    }
    for (int at = 0; at < NumInstructions(); ++at) {
      if (!ReducesIn(phase, at)) continue;
      const Instruction& instruction = program_.instructions[at];
      AddCopy(instruction.num_operands == 1 ? kZero : instruction.operands[0], Result(at));
    }
  }

  void ListIdItems(int phase, const std::vector<bool>& wanted) {
    for (int at = 0; at < NumInstructions(); ++at) {
      const Instruction& instruction = program_.instructions[at];
      if (LevelOf(Result(at)) == Level::kId && wanted[Result(at)]) {
        items_.push_back({instruction.opcode, Operands(instruction), Result(at)});
      }
      if (!ReducesIn(phase, at)) continue;
      const int x = instruction.operands[instruction.num_operands - 1];
      if (instruction.opcode == Opcode::kScatterUpdate) {
        AddCopy(x, Result(at));
      } else {
        const bool subtracts = instruction.opcode == Opcode::kScatterSub;
        items_.push_back({subtracts ? Opcode::kSub : Opcode::kAdd, {Result(at), x}, Result(at)});
      }
    }
  }

  // Whatever `from` is, the choice is between it and itself.
  void AddCopy(int from, int out) { items_.push_back({Opcode::kSelect, {from, from, from}, out}); }

  // ---- Slots ----

  void AssignSlots() {
    FindLastUses();
    for (int value = 0; value < program_.counts.FirstParameter(); ++value) {
      if (!needed_[value] || LevelOf(value) != Level::kRow) continue;
      const bool is_state = value < program_.counts.states;
      Take(value);
      loads_.push_back({is_state ? value : value - program_.counts.row_gradients, slots_[value]});
    }
    for (const GpuPhase& phase : phases_) {
      for (int at = phase.row_begin; at < phase.row_end; ++at) AddStep(at);
      for (int at = phase.row_end; at < phase.id_end; ++at) {
        for (int value : items_[at].operands) {
          if (LevelOf(value) == Level::kId) last_use_[value] = PointOf(at);
        }
      }
      for (int i = phase.gradient_begin; i < phase.gradient_end; ++i) {
        const int value = program_.counts.FirstRowGradient() + gradients_[i].source;
        Take(value);
        gradients_[i].value = slots_[value];
      }
      for (int at = phase.row_end; at < phase.id_end; ++at) AddStep(at);
      if (phase.row_end < phase.id_end) FreeAfter(EndOf(phase));
    }
    for (int state = 0; state < program_.counts.states; ++state) {
      if (!program_.IsWritten(state)) continue;
      stores_.push_back({state, OperandOf(program_.results[state])});
    }
  }

  // Row values that are read for ids must outlive all ids: up to the point EndOf.
  static int EndOf(const GpuPhase& phase) { return phase.id_end * 2 - 1; }
  static int PointOf(int item) { return item * 2; }

  void FindLastUses() {
    for (const GpuPhase& phase : phases_) {
      for (int at = phase.row_begin; at < phase.id_end; ++at) {
        const int point = at < phase.row_end ? PointOf(at) : EndOf(phase);
        for (int value : items_[at].operands) {
          if (value != kZero && LevelOf(value) == Level::kRow) last_use_[value] = point;
        }
      }
    }
    for (int state = 0; state < program_.counts.states; ++state) {
      if (program_.IsWritten(state)) last_use_[program_.results[state]] = PointOf(items_.size());
    }
  }

  void AddStep(int at) {
    const Item& item = items_[at];
    GpuStep step = {item.opcode, static_cast<int32_t>(item.operands.size()), {}, -1};
    for (int i = 0; i < step.num_operands; ++i) step.operands[i] = OperandOf(item.operands[i]);
    FreeAfter(PointOf(at));  // the result may take an operand's place
    if (slots_[item.out] < 0) Take(item.out);
    step.out = slots_[item.out];
    steps_.push_back(step);
  }

  int32_t OperandOf(int value) const {
    if (value == kZero) return ~kGpuZero;
    return LevelOf(value) == Level::kScalar ? ~scalars_[value] : slots_[value];
  }

  void Take(int value) {
    if (free_.empty()) free_.push_back(num_slots_++);
    slots_[value] = free_.back();
    free_.pop_back();
  }

  void FreeAfter(int point) {
    for (int value = 0; value < program_.NumValues(); ++value) {
      if (slots_[value] < 0 || last_use_[value] != point) continue;
      free_.push_back(slots_[value]);
      slots_[value] = -1;
    }
  }

  const Program& program_;
  std::vector<bool> needed_;
  std::vector<int> phase_;
  std::vector<int> scalars_;
  std::vector<int> slots_;     // while it has one
  std::vector<int> last_use_;  // a point
  std::vector<int> free_;
  std::vector<Item> items_;
  std::vector<GpuStep> scalar_steps_, steps_;
  std::vector<GpuPhase> phases_;
  std::vector<GpuMove> loads_, gradients_, stores_;
  int num_phases_ = 1;
  int num_slots_ = 0;
  int num_scalars_ = 1;
};

}  // namespace packed_update
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_PACKED_UPDATE_GPU_CODE_H_
