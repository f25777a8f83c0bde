// Update programs: an optimizer's rule as data. A program is checked once, when
// the op is made, and then run by the CPU and the GPU kernel alike.
//
// Values are numbered: states s, row gradients g, table gradients t, parameters
// p, then the results v of the instructions. Each has a level: a parameter is one
// number for the table, a row value has one row for each row that is updated, an
// id value one for each id. Reductions lead from ids to rows.

#ifndef PICASSO_TF_CC_KERNELS_UPDATE_PROGRAM_H_
#define PICASSO_TF_CC_KERNELS_UPDATE_PROGRAM_H_

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

namespace picasso {
namespace packed_update {

// X(opcode, name, operands). Elementwise, on operands of any level:
#define PICASSO_UPDATE_ELEMENTWISE(X)            \
  X(kAdd, "add", 2)                              \
  X(kSub, "sub", 2)                              \
  X(kMul, "mul", 2)                              \
  X(kDiv, "div", 2)                              \
  X(kMax, "max", 2)                              \
  X(kMin, "min", 2)                              \
  X(kSquaredDifference, "squared_difference", 2) \
  X(kDivNoNan, "div_no_nan", 2)                  \
  X(kGreater, "greater", 2)                      \
  X(kGreaterEqual, "greater_equal", 2)           \
  X(kLess, "less", 2)                            \
  X(kLessEqual, "less_equal", 2)                 \
  X(kEqual, "equal", 2)                          \
  X(kNotEqual, "not_equal", 2)                   \
  X(kPow, "pow", 2)                              \
  X(kNeg, "neg", 1)                              \
  X(kSquare, "square", 1)                        \
  X(kSqrt, "sqrt", 1)                            \
  X(kRsqrt, "rsqrt", 1)                          \
  X(kRowRsqrt, "row_rsqrt", 1)                   \
  X(kUniqueRsqrt, "unique_rsqrt", 1)             \
  X(kReciprocal, "reciprocal", 1)                \
  X(kAbs, "abs", 1)                              \
  X(kSign, "sign", 1)                            \
  X(kSelect, "select", 3)

// From ids to rows; the last operand may be of any level.
#define PICASSO_UPDATE_REDUCTIONS(X)  \
  X(kSegmentSum, "segment_sum", 1)    \
  X(kScatterAdd, "scatter_add", 2)    \
  X(kScatterSub, "scatter_sub", 2)    \
  X(kScatterUpdate, "scatter_update", 2)

// On rows that have an id; the others keep the first operand.
#define PICASSO_UPDATE_TOUCHED(X) \
  X(kTouchedAdd, "touched_add", 2) \
  X(kTouchedSub, "touched_sub", 2) \
  X(kTouchedUpdate, "touched_update", 2)

enum class Opcode : int32_t {
#define PICASSO_OPCODE(opcode, name, operands) opcode,
  PICASSO_UPDATE_ELEMENTWISE(PICASSO_OPCODE) PICASSO_UPDATE_REDUCTIONS(PICASSO_OPCODE)
      PICASSO_UPDATE_TOUCHED(PICASSO_OPCODE)
#undef PICASSO_OPCODE
};

constexpr bool IsReduction(Opcode opcode) {
  return Opcode::kSegmentSum <= opcode && opcode <= Opcode::kScatterUpdate;
}
constexpr bool IsTouched(Opcode opcode) { return opcode >= Opcode::kTouchedAdd; }
constexpr bool IsElementwise(Opcode opcode) { return opcode < Opcode::kSegmentSum; }

// Reciprocal roots come in three kinds, by the tensor that stock TensorFlow takes
// them of: the whole table, one row at a time, or the distinct rows in the order in
// which ids name them first. They differ in where packets of elements end.
constexpr bool IsRsqrt(Opcode opcode) {
  return opcode == Opcode::kRsqrt || opcode == Opcode::kRowRsqrt ||
         opcode == Opcode::kUniqueRsqrt;
}

// Whether TensorFlow's CPU kernels give other bits for whole packets of elements
// than for what is left at the end of a tensor: roots and reciprocals are then
// estimates, and of two equal zeros max and min take the other one. So the result
// depends on where an element stands.
constexpr bool MayHavePacketForm(Opcode opcode) {
  return IsRsqrt(opcode) || opcode == Opcode::kReciprocal || opcode == Opcode::kMax ||
         opcode == Opcode::kMin;
}

enum class Level : int32_t { kScalar, kRow, kId };

struct Instruction {
  Opcode opcode;
  int32_t num_operands;
  int32_t operands[3];  // numbers of values; those it does not have are 0
};

// How many values of each kind a table brings.
struct Counts {
  int states = 0;
  int row_gradients = 0;
  int table_gradients = 0;
  int parameters = 0;

  int FirstRowGradient() const { return states; }
  int FirstTableGradient() const { return states + row_gradients; }
  int FirstParameter() const { return FirstTableGradient() + table_gradients; }
  int FirstResult() const { return FirstParameter() + parameters; }
};

struct Program {
  Counts counts;
  std::vector<Instruction> instructions;
  std::vector<Level> levels;     // of each value
  std::vector<int32_t> results;  // for each state, the value it holds afterwards

  int NumValues() const { return counts.FirstResult() + static_cast<int>(instructions.size()); }
  bool IsWritten(int state) const { return results[state] != state; }

  // Whether an instruction gives a value for each id.
  bool ComputesIdValues() const {
    return std::find(levels.begin() + counts.FirstResult(), levels.end(), Level::kId) !=
           levels.end();
  }

  // Whether all that reads a value are reductions, of it.
  bool IsOnlyReduced(int value) const {
    for (const Instruction& one : instructions) {
      const int32_t* end = one.operands + one.num_operands;
      const bool reads = std::find(one.operands, end, value) != end;
      if (reads && !IsReduction(one.opcode)) return false;
    }
    return std::find(results.begin(), results.end(), value) == results.end();
  }
};

// Reads the text form. The errors are sentences; empty means that all is well.
class ProgramParser {
 public:
  ProgramParser(const Counts& counts, Program* program) : program_(program) {
    program->counts = counts;
    program->levels.assign(counts.states, Level::kRow);
    program->levels.insert(program->levels.end(), counts.row_gradients, Level::kId);
    program->levels.insert(program->levels.end(), counts.table_gradients, Level::kRow);
    program->levels.insert(program->levels.end(), counts.parameters, Level::kScalar);
  }

  std::string Parse(const std::vector<std::string>& instructions,
                    const std::vector<std::string>& results) {
    for (const std::string& text : instructions) {
      const std::string problem = AddInstruction(text);
      if (problem.empty()) continue;
      return Entry("program", program_->instructions.size()) + " is '" + text + "', but " + problem;
    }
    if (results.size() != static_cast<size_t>(program_->counts.states)) {
      return "`results` must have one entry for each state (" +
             std::to_string(program_->counts.states) + "), but it has " +
             std::to_string(results.size()) + ".";
    }
    for (const std::string& text : results) {
      int32_t value = 0;
      std::string problem = FindValue(text, &value);
      if (problem.empty()) problem = RequireRow(text, value);
      if (!problem.empty()) {
        return Entry("results", program_->results.size()) + " is '" + text + "', but " + problem;
      }
      program_->results.push_back(value);
    }
    return "";
  }

 private:
  static std::string Entry(const char* list, size_t at) {
    return std::string("`") + list + "[" + std::to_string(at) + "]`";
  }

  std::string AddInstruction(const std::string& text) {
    std::istringstream words(text);
    std::string name, word;
    words >> name;
    Instruction instruction = {};
    if (!FindOpcode(name, &instruction)) return "there is no instruction '" + name + "'.";
    int found = 0;
    Level level = Level::kScalar;
    for (; words >> word; ++found) {
      if (found >= instruction.num_operands) continue;
      const std::string problem = FindValue(word, &instruction.operands[found]);
      if (!problem.empty()) return problem;
      const bool row_only = !IsElementwise(instruction.opcode) &&
                            (found + 1 < instruction.num_operands || IsTouched(instruction.opcode));
      const int32_t value = instruction.operands[found];
      if (row_only && !RequireRow(word, value).empty()) return RequireRow(word, value);
      level = std::max(level, program_->levels[value]);
    }
    if (found != instruction.num_operands) {
      return "'" + name + "' takes " + std::to_string(instruction.num_operands) +
             " operands, not " + std::to_string(found) + ".";
    }
    program_->instructions.push_back(instruction);
    program_->levels.push_back(IsElementwise(instruction.opcode) ? level : Level::kRow);
    return "";
  }

  static bool FindOpcode(const std::string& name, Instruction* instruction) {
#define PICASSO_OPCODE(opcode, text, operands) \
  if (name == text) {                          \
    *instruction = {Opcode::opcode, operands}; \
    return true;                               \
  }
    PICASSO_UPDATE_ELEMENTWISE(PICASSO_OPCODE)
    PICASSO_UPDATE_REDUCTIONS(PICASSO_OPCODE)
    PICASSO_UPDATE_TOUCHED(PICASSO_OPCODE)
#undef PICASSO_OPCODE
    return false;
  }

  std::string FindValue(const std::string& text, int32_t* value) const {
    const Counts& counts = program_->counts;
    const std::string kinds = "sgtpv";
    const int first[] = {0, counts.FirstRowGradient(), counts.FirstTableGradient(),
                         counts.FirstParameter(), counts.FirstResult()};
    const int count[] = {counts.states, counts.row_gradients, counts.table_gradients,
                         counts.parameters, static_cast<int>(program_->instructions.size())};
    const size_t kind = text.empty() ? std::string::npos : kinds.find(text[0]);
    const bool is_number = text.size() > 1 && text.size() < 9 &&
                           text.find_first_not_of("0123456789", 1) == std::string::npos;
    if (kind == std::string::npos || !is_number) {
      return "'" + text + "' is not a value: one of s, g, t, p, v and a number.";
    }
    const int number = std::stoi(text.substr(1));
    if (number >= count[kind]) {
      return "there is no '" + text + "' yet: of kind '" + text[0] + "' there are " +
             std::to_string(count[kind]) + ".";
    }
    *value = first[kind] + number;
    return "";
  }

  std::string RequireRow(const std::string& text, int32_t value) const {
    if (program_->levels[value] != Level::kId) return "";
    return "'" + text + "' has a row for each id, where one for each row of the table is needed.";
  }

  Program* const program_;
};

}  // namespace packed_update
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_UPDATE_PROGRAM_H_
