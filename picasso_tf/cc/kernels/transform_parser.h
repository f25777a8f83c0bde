// Reads the text form of transform programs.

#ifndef PICASSO_TF_CC_KERNELS_TRANSFORM_PARSER_H_
#define PICASSO_TF_CC_KERNELS_TRANSFORM_PARSER_H_

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "picasso_tf/cc/kernels/transform_program.h"

namespace picasso {
namespace transforms {

inline bool FindNumber(const std::string& word, int64_t* number) {
  const size_t digits = word.size() > 1 && word[0] == '-' ? 1 : 0;
  if (word.empty() || word.size() > 20 ||
      word.find_first_not_of("0123456789", digits) != std::string::npos) {
    return false;
  }
  std::istringstream stream(word);
  return static_cast<bool>(stream >> *number);
}

// Sets `value` to the number of the value that `text` names, or says what is wrong.
inline std::string FindValue(const Program& program, const std::string& text, int32_t* value) {
  if (text == "x") {
    *value = 0;
    return "";
  }
  const std::string kinds = "czyv";
  const int32_t first[] = {1, program.first_size, program.first_other, program.first_result};
  const int32_t end[] = {program.first_size, program.first_other, program.first_result,
                         program.NumValues()};
  const size_t kind = text.empty() ? std::string::npos : kinds.find(text[0]);
  int64_t number = 0;
  if (kind == std::string::npos || !FindNumber(text.substr(1), &number) || number < 0) {
    return "'" + text + "' is not a value: x, or one of c, z, y, v and a number.";
  }
  if (number >= end[kind] - first[kind]) return "there is no '" + text + "' yet.";
  *value = first[kind] + static_cast<int32_t>(number);
  return "";
}

// Reads the text form. The errors are sentences; empty means that all is well.
class ProgramParser {
 public:
  ProgramParser(const Surroundings& around, Program* program) : around_(around), program_(program) {
    program->first_size = around.FirstSize();
    program->first_other = around.FirstOther();
    program->first_result = around.FirstResult();
    program->dtypes = {around.feature};
    program->levels = {Level::kAll};
    program->dtypes.insert(program->dtypes.end(), around.scalars.begin(), around.scalars.end());
    program->dtypes.resize(around.FirstOther(), DType::kInt64);
    program->levels.resize(around.FirstOther(), Level::kScalar);
    program->dtypes.insert(program->dtypes.end(), around.others.begin(), around.others.end());
    program->levels.resize(around.FirstResult(), Level::kAll);
  }

  std::string Parse(const std::vector<std::string>& instructions) {
    for (const std::string& text : instructions) {
      const std::string problem = AddInstruction(text);
      if (!problem.empty()) return "'" + text + "': " + problem;
    }
    return "";
  }

  // Reads a dtype as TensorFlow names it.
  static bool FindDType(const std::string& word, DType* dtype) {
    for (const auto& [name, found] : {std::make_pair("bool", DType::kBool),
                                      {"int32", DType::kInt32},
                                      {"int64", DType::kInt64},
                                      {"float32", DType::kFloat32},
                                      {"float64", DType::kFloat64},
                                      {"string", DType::kString}}) {
      if (word != name) continue;
      *dtype = found;
      return true;
    }
    return false;
  }

 private:
  static bool FindOpcode(const std::string& name, Instruction* instruction) {
#define PICASSO_OPCODE(opcode, text, operands, parameters)  \
  if (name == text) {                                       \
    *instruction = {Opcode::opcode, operands, parameters};  \
    return true;                                            \
  }
    PICASSO_TRANSFORMS(PICASSO_OPCODE)
#undef PICASSO_OPCODE
    return false;
  }

  std::string AddInstruction(const std::string& text) {
    std::istringstream stream(text);
    std::string name, word;
    stream >> name;
    Instruction instruction = {};
    if (!FindOpcode(name, &instruction)) return "there is no instruction '" + name + "'.";
    Level level = Level::kScalar;
    for (int i = 0; i < instruction.num_operands; ++i) {
      if (!(stream >> word)) return "an operand is missing.";
      const std::string problem = FindValue(*program_, word, &instruction.operands[i]);
      if (!problem.empty()) return problem;
      const Level found = program_->levels[instruction.operands[i]];
      if (std::min(found, level) == Level::kAll && found != level) {
        return "'" + word + "' has another number of elements.";
      }
      level = std::max(level, found);
    }
    for (int i = 0; i < instruction.num_parameters; ++i) {
      if (!(stream >> word) || !FindNumber(word, &instruction.parameters[i])) {
        return "a number is missing.";
      }
    }
    DType dtype = DType::kBool;
    const bool stated = instruction.opcode == Opcode::kCast || instruction.opcode == Opcode::kFind;
    if (stated && (!(stream >> word) || !FindDType(word, &dtype))) return "a dtype is missing.";
    if (stream >> word) return "'" + word + "' is too much.";
    if (level == Level::kScalar) return "it has scalars only.";
    std::string problem = CheckTypes(instruction, stated ? dtype : ResultType(instruction));
    if (problem.empty()) problem = CheckParameters(instruction);
    if (!problem.empty()) return problem;
    if (instruction.opcode == Opcode::kTake) {
      const int32_t mask = instruction.operands[1];
      if (program_->mask >= 0 && program_->mask != mask) return "there is another mask.";
      if (program_->levels[mask] != Level::kAll) return "its mask must have all elements.";
      if (program_->levels[instruction.operands[0]] != Level::kAll) return "it takes of a part.";
      program_->mask = mask;
      level = Level::kTaken;
    }
    for (int i = 0; i < instruction.num_operands; ++i) program_->NoteRead(instruction.operands[i]);
    program_->instructions.push_back(instruction);
    program_->dtypes.push_back(stated ? dtype : ResultType(instruction));
    program_->levels.push_back(level);
    return "";
  }

  DType Operand(const Instruction& instruction, int i) const {
    return program_->dtypes[instruction.operands[i]];
  }

  DType ResultType(const Instruction& instruction) const {
    switch (instruction.opcode) {
      case Opcode::kAsString:
      case Opcode::kJoin:
        return DType::kString;
      case Opcode::kHashLegacy:
      case Opcode::kHashFast:
      case Opcode::kHashStrong:
        return DType::kInt64;
      case Opcode::kBucketize:
        return DType::kInt32;
      case Opcode::kSelect:
        return Operand(instruction, 1);
      default:
        const bool is_test = IsBetween(Opcode::kEqual, instruction.opcode, Opcode::kNot);
        return is_test ? DType::kBool : Operand(instruction, 0);
    }
  }

  std::string CheckTypes(const Instruction& instruction, DType result) const {
    const DType first = Operand(instruction, 0);
    const auto require = [](bool good) { return good ? "" : "it does not take such dtypes."; };
    switch (instruction.opcode) {
      case Opcode::kAdd:
      case Opcode::kSub:
      case Opcode::kMul:
      case Opcode::kFloorMod:
      case Opcode::kTruncMod:
      case Opcode::kMax:
      case Opcode::kMin:
        return require(IsInteger(first) && Operand(instruction, 1) == first);
      case Opcode::kEqual:
      case Opcode::kNotEqual:
        return require(Operand(instruction, 1) == first);
      case Opcode::kLess:
      case Opcode::kLessEqual:
      case Opcode::kGreater:
      case Opcode::kGreaterEqual:
        return require(first != DType::kString && first != DType::kBool &&
                       Operand(instruction, 1) == first);
      case Opcode::kAnd:
      case Opcode::kOr:
        return require(first == DType::kBool && Operand(instruction, 1) == first);
      case Opcode::kNot:
        return require(first == DType::kBool);
      case Opcode::kSelect:
        return require(first == DType::kBool && Operand(instruction, 1) == Operand(instruction, 2));
      case Opcode::kZerosLike:
        return "";
      case Opcode::kOnesLike:
        return require(first != DType::kString);
      case Opcode::kCast:
        return require(first != DType::kString && result != DType::kString);
      case Opcode::kAsString:
        return require(IsInteger(first));
      case Opcode::kJoin:
        return require(first == DType::kString && Operand(instruction, 1) == first);
      case Opcode::kHashLegacy:
      case Opcode::kHashFast:
      case Opcode::kHashStrong:
        return require(first == DType::kString);
      case Opcode::kBucketize:
        return require(IsInteger(first) || IsReal(first));
      case Opcode::kFind:
        return require(result != DType::kString && Operand(instruction, 1) == result &&
                       program_->levels[instruction.operands[1]] == Level::kScalar);
      case Opcode::kTake:
        return require(Operand(instruction, 1) == DType::kBool);
    }
    return "";
  }

  std::string CheckParameters(const Instruction& instruction) const {
    const int64_t* p = instruction.parameters;
    switch (instruction.opcode) {
      case Opcode::kJoin:
        return 0 <= p[0] && p[0] < around_.num_texts ? "" : "there is no such text.";
      case Opcode::kHashLegacy:
      case Opcode::kHashFast:
      case Opcode::kHashStrong:
        return p[0] > 0 ? "" : "it needs a bucket.";
      case Opcode::kBucketize:
        return 0 <= p[0] && p[0] <= p[1] && p[1] <= around_.num_boundaries
                   ? ""
                   : "there are no such boundaries.";
      case Opcode::kFind:
        return 0 <= p[0] && p[0] < around_.num_tables ? "" : "there is no such table.";
      default:
        return "";
    }
  }

  const Surroundings& around_;
  Program* const program_;
};

}  // namespace transforms
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_TRANSFORM_PARSER_H_
