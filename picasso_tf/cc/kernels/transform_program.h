// Transform programs: what a model does to a feature before rows are looked up, as data.
// A program is checked once, when the op is made, and then run block by block.
//
// Values are numbered: the feature x, scalars c, sizes of hash tables z, other tensors y of the
// feature's shape, then the results v of the instructions. A value has an element for each
// element of the feature, or only for those that a mask takes, or it is a scalar.

#ifndef PICASSO_TF_CC_KERNELS_TRANSFORM_PROGRAM_H_
#define PICASSO_TF_CC_KERNELS_TRANSFORM_PROGRAM_H_

#include <algorithm>
#include <cstdint>
#include <vector>

namespace picasso {
namespace transforms {

enum class DType : int32_t { kBool, kInt32, kInt64, kFloat32, kFloat64, kString };

constexpr bool IsReal(DType dtype) { return dtype == DType::kFloat32 || dtype == DType::kFloat64; }
constexpr bool IsInteger(DType dtype) { return dtype == DType::kInt32 || dtype == DType::kInt64; }

// What a value is kept in while a program runs. Integers and bools widen without loss; floats
// do not: where threads flush denormals to zero, as TensorFlow's do, so would each conversion.
enum class Storage : int32_t { kInts, kFloats, kDoubles, kStrings };

constexpr Storage StorageOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return Storage::kFloats;
    case DType::kFloat64:
      return Storage::kDoubles;
    case DType::kString:
      return Storage::kStrings;
    default:
      return Storage::kInts;
  }
}

// X(opcode, name, operands, integer parameters). Those of find, bucketize and join: a table; the
// first and the end of a range of boundaries; a text. A dtype follows those of cast and find.
#define PICASSO_TRANSFORMS(X)                \
  X(kAdd, "add", 2, 0)                       \
  X(kSub, "sub", 2, 0)                       \
  X(kMul, "mul", 2, 0)                       \
  X(kFloorMod, "floor_mod", 2, 0)            \
  X(kTruncMod, "trunc_mod", 2, 0)            \
  X(kMax, "max", 2, 0)                       \
  X(kMin, "min", 2, 0)                       \
  X(kEqual, "equal", 2, 0)                   \
  X(kNotEqual, "not_equal", 2, 0)            \
  X(kLess, "less", 2, 0)                     \
  X(kLessEqual, "less_equal", 2, 0)          \
  X(kGreater, "greater", 2, 0)               \
  X(kGreaterEqual, "greater_equal", 2, 0)    \
  X(kAnd, "and", 2, 0)                       \
  X(kOr, "or", 2, 0)                         \
  X(kNot, "not", 1, 0)                       \
  X(kSelect, "select", 3, 0)                 \
  X(kZerosLike, "zeros_like", 1, 0)          \
  X(kOnesLike, "ones_like", 1, 0)            \
  X(kCast, "cast", 1, 0)                     \
  X(kAsString, "as_string", 1, 0)            \
  X(kJoin, "join", 2, 1)                     \
  X(kHashLegacy, "hash_legacy", 1, 1)        \
  X(kHashFast, "hash_fast", 1, 1)            \
  X(kHashStrong, "hash_strong", 1, 3)        \
  X(kBucketize, "bucketize", 1, 2)           \
  X(kFind, "find", 2, 1)                     \
  X(kTake, "take", 2, 0)

enum class Opcode : int32_t {
#define PICASSO_OPCODE(opcode, name, operands, parameters) opcode,
  PICASSO_TRANSFORMS(PICASSO_OPCODE)
#undef PICASSO_OPCODE
};

constexpr bool IsBetween(Opcode first, Opcode opcode, Opcode last) {
  return first <= opcode && opcode <= last;
}

enum class Level : int32_t { kScalar, kAll, kTaken };

struct Instruction {
  Opcode opcode;
  int32_t num_operands;
  int32_t num_parameters;
  int32_t operands[3];  // numbers of values
  int64_t parameters[3];
};

// What a program may refer to.
struct Surroundings {
  DType feature;
  std::vector<DType> scalars;
  int num_tables = 0;
  int64_t num_boundaries = 0;
  std::vector<DType> others;
  int64_t num_texts = 0;

  int FirstSize() const { return 1 + static_cast<int>(scalars.size()); }
  int FirstOther() const { return FirstSize() + num_tables; }
  int FirstResult() const { return FirstOther() + static_cast<int>(others.size()); }
};

struct Program {
  int32_t first_size = 0;  // values from here on are sizes of tables, then others, then results
  int32_t first_other = 0;
  int32_t first_result = 0;
  std::vector<Instruction> instructions;
  std::vector<DType> dtypes;  // of each value
  std::vector<Level> levels;  // of each value
  std::vector<int> others;    // numbers of the other tensors that it reads
  int32_t mask = -1;          // the value by which some elements are taken; -1: there is none

  int NumValues() const { return static_cast<int>(dtypes.size()); }

  // Tells that a value is read, by an instruction or as an output.
  void NoteRead(int32_t value) {
    const int number = value - first_other;
    if (number < 0 || value >= first_result) return;
    if (std::find(others.begin(), others.end(), number) == others.end()) others.push_back(number);
  }
};

}  // namespace transforms
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_TRANSFORM_PROGRAM_H_
