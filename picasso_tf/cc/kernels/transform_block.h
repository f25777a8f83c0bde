// Runs a transform program over a block of a feature's elements.

#ifndef PICASSO_TF_CC_KERNELS_TRANSFORM_BLOCK_H_
#define PICASSO_TF_CC_KERNELS_TRANSFORM_BLOCK_H_

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "picasso_tf/cc/kernels/transform_loops.h"
#include "picasso_tf/cc/kernels/transform_program.h"

namespace picasso {
namespace transforms {

constexpr int64_t kBlock = 512;  // elements; all values of a block stay in the second level of the cache

// A value of any storage: the one that it is kept in is set.
struct Slot {
  Elements<int64_t> ints = {nullptr, 0};
  Elements<double> reals = {nullptr, 0};
  Elements<std::string_view> strings = {nullptr, 0};
};

// What a program needs of TensorFlow: hashes of strings, and its hash tables.
class Outside {
 public:
  virtual ~Outside() = default;
  virtual uint64_t HashFast(std::string_view text) const = 0;
  virtual uint64_t HashStrong(const uint64_t (&key)[2], std::string_view text) const = 0;
  // Looks up `size` keys; for those that are not there, `missing` (one value of dtype `to`).
  // Returns false when the table refuses.
  virtual bool Find(int table, DType from, DType to, int64_t size, const Slot& keys,
                    const Slot& missing, int64_t* ints, double* reals) const = 0;
};

enum class Problem : int32_t { kNone, kDivisionByZero, kTable };

// The values of one block. Made once for each thread's run of blocks of one program.
class Block {
 public:
  // `scalars` are the c and then the z of the program; `boundaries` of the whole op.
  Block(const Program& program, const std::vector<Slot>& scalars, const float* boundaries,
        const Outside& outside)
      : program_(program), boundaries_(boundaries), outside_(outside), slots_(program.NumValues()) {
    std::copy(scalars.begin(), scalars.end(), slots_.begin() + 1);
    buffers_.resize(program.instructions.size());
  }

  // Runs the program over `size` elements of the feature, at most kBlock.
  Problem Run(const Slot& feature, int64_t size) {
    slots_[0] = feature;
    size_ = size;
    taken_ = 0;
    Problem problem = Problem::kNone;
    for (size_t i = 0; i < program_.instructions.size(); ++i) {
      const Problem found = RunInstruction(i);
      if (problem == Problem::kNone) problem = found;
    }
    return problem;
  }

  // The results of the last run.
  const Slot& value(int32_t number) const { return slots_[number]; }
  int64_t size(int32_t number) const {
    return program_.levels[number] == Level::kTaken ? taken_ : size_;
  }
  int64_t taken() const { return taken_; }

 private:
  struct Buffer {
    std::vector<int64_t> ints;
    std::vector<double> reals;
    std::vector<std::string_view> strings;
    std::vector<char> digits;
  };

  // Room for the results of instruction i, and the slot that shows them.
  Buffer& Make(size_t i, Storage storage) {
    Buffer& buffer = buffers_[i];
    Slot& slot = slots_[program_.first_result + i];
    if (storage == Storage::kInts) {
      buffer.ints.resize(kBlock);
      slot.ints = {buffer.ints.data(), 1};
    } else if (storage == Storage::kReals) {
      buffer.reals.resize(kBlock);
      slot.reals = {buffer.reals.data(), 1};
    } else {
      buffer.strings.resize(kBlock);
      slot.strings = {buffer.strings.data(), 1};
    }
    return buffer;
  }

  Problem RunInstruction(size_t i) {
    const Instruction& instruction = program_.instructions[i];
    const int32_t result = program_.first_result + static_cast<int32_t>(i);
    const DType dtype = program_.dtypes[result];
    Buffer& out = Make(i, StorageOf(dtype));
    const DType from = program_.dtypes[instruction.operands[0]];
    const Slot& a = slots_[instruction.operands[0]];
    const Slot& b = slots_[instruction.operands[1]];
    const Opcode opcode = instruction.opcode;
    if (opcode == Opcode::kTake) {
      taken_ = RunTake(StorageOf(dtype), a, b.ints, &out);
      return Problem::kNone;
    }
    const int64_t size = this->size(result);
    if (IsBetween(Opcode::kFloorMod, opcode, Opcode::kTruncMod)) {
      const bool good = DivideIntegers(opcode, size, a.ints, b.ints, out.ints.data());
      return good ? Problem::kNone : Problem::kDivisionByZero;
    }
    if (opcode == Opcode::kFind) {
      const bool good = outside_.Find(static_cast<int>(instruction.parameters[0]), from, dtype, size,
                                      a, b, out.ints.data(), out.reals.data());
      return good ? Problem::kNone : Problem::kTable;
    }
    if (IsBetween(Opcode::kEqual, opcode, Opcode::kGreaterEqual)) {
      RunTest(opcode, StorageOf(from), size, a, b, out.ints.data());
    } else if (opcode == Opcode::kSelect) {
      RunSelect(StorageOf(dtype), size, a.ints, b, slots_[instruction.operands[2]], &out);
    } else if (opcode <= Opcode::kMin || IsBetween(Opcode::kAnd, opcode, Opcode::kOr)) {
      CombineIntegers(opcode, dtype, size, a.ints, b.ints, out.ints.data());
    } else {
      RunUnary(instruction, from, dtype, size, a, &out);
    }
    return Problem::kNone;
  }

  void RunUnary(const Instruction& instruction, DType from, DType to, int64_t size, const Slot& a,
                Buffer* out) {
    const int64_t* p = instruction.parameters;
    switch (instruction.opcode) {
      case Opcode::kNot:
        for (int64_t i = 0; i < size; ++i) out->ints[i] = a.ints[i] == 0;
        return;
      case Opcode::kZerosLike:
      case Opcode::kOnesLike:
        Fill(StorageOf(to), size, instruction.opcode == Opcode::kOnesLike, out);
        return;
      case Opcode::kCast:
        return RunCast(from, to, size, a, out);
      case Opcode::kAsString:
        out->digits.resize(kBlock * kMaxDigits);
        return Format(size, a.ints, out->digits.data(), out->strings.data());
      case Opcode::kHashFast:
        for (int64_t i = 0; i < size; ++i) {
          out->ints[i] = Bucketed(outside_.HashFast(a.strings[i]), p[0]);
        }
        return;
      case Opcode::kHashStrong: {
        const uint64_t key[2] = {static_cast<uint64_t>(p[1]), static_cast<uint64_t>(p[2])};
        for (int64_t i = 0; i < size; ++i) {
          out->ints[i] = Bucketed(outside_.HashStrong(key, a.strings[i]), p[0]);
        }
        return;
      }
      default:
        return RunBucketize(from, size, a, boundaries_ + p[0], boundaries_ + p[1],
                            out->ints.data());
    }
  }

  static int64_t Bucketed(uint64_t hash, int64_t buckets) {
    return static_cast<int64_t>(hash % static_cast<uint64_t>(buckets));
  }

  // The zero of strings is the empty one.
  static void Fill(Storage storage, int64_t size, int value, Buffer* out) {
    if (storage == Storage::kStrings) {
      std::fill_n(out->strings.begin(), size, std::string_view());
    } else if (storage == Storage::kReals) {
      std::fill_n(out->reals.begin(), size, value);
    } else {
      std::fill_n(out->ints.begin(), size, value);
    }
  }

  static void RunCast(DType from, DType to, int64_t size, const Slot& a, Buffer* out) {
    if (IsReal(from) && IsReal(to)) {
      for (int64_t i = 0; i < size; ++i) out->reals[i] = Rounded(to, a.reals[i]);
    } else if (IsReal(from)) {
      CastReals(to, size, a.reals, out->ints.data());
    } else if (IsReal(to)) {
      for (int64_t i = 0; i < size; ++i) out->reals[i] = ToReal(to, a.ints[i]);
    } else {
      CastIntegers(to, size, a.ints, out->ints.data());
    }
  }

  static void RunBucketize(DType from, int64_t size, const Slot& a, const float* begin,
                           const float* end, int64_t* out) {
    int32_t buckets[kBlock];
    if (from == DType::kFloat64) {
      double values[kBlock];
      for (int64_t i = 0; i < size; ++i) values[i] = a.reals[i];
      Bucketize(size, values, begin, end, buckets);
    } else {
      float values[kBlock];
      for (int64_t i = 0; i < size; ++i) {
        values[i] = IsReal(from) ? static_cast<float>(a.reals[i]) : static_cast<float>(a.ints[i]);
      }
      Bucketize(size, values, begin, end, buckets);
    }
    std::copy_n(buckets, size, out);
  }

  static void RunTest(Opcode opcode, Storage storage, int64_t size, const Slot& a, const Slot& b,
                      int64_t* out) {
    if (storage == Storage::kStrings) return Compare(opcode, size, a.strings, b.strings, out);
    if (storage == Storage::kReals) return Compare(opcode, size, a.reals, b.reals, out);
    Compare(opcode, size, a.ints, b.ints, out);
  }

  static void RunSelect(Storage storage, int64_t size, Elements<int64_t> condition, const Slot& a,
                        const Slot& b, Buffer* out) {
    if (storage == Storage::kStrings) {
      return Select(size, condition, a.strings, b.strings, out->strings.data());
    }
    if (storage == Storage::kReals) {
      return Select(size, condition, a.reals, b.reals, out->reals.data());
    }
    Select(size, condition, a.ints, b.ints, out->ints.data());
  }

  int64_t RunTake(Storage storage, const Slot& a, Elements<int64_t> mask, Buffer* out) const {
    if (storage == Storage::kStrings) return Take(size_, a.strings, mask, out->strings.data());
    if (storage == Storage::kReals) return Take(size_, a.reals, mask, out->reals.data());
    return Take(size_, a.ints, mask, out->ints.data());
  }

  const Program& program_;
  const float* const boundaries_;
  const Outside& outside_;
  std::vector<Slot> slots_;  // of each value
  std::vector<Buffer> buffers_;
  int64_t size_ = 0;
  int64_t taken_ = 0;
};

}  // namespace transforms
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_TRANSFORM_BLOCK_H_
