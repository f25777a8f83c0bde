// Runs a transform program over a block of a feature's elements.

#ifndef PICASSO_TF_CC_KERNELS_TRANSFORM_BLOCK_H_
#define PICASSO_TF_CC_KERNELS_TRANSFORM_BLOCK_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "picasso_tf/cc/kernels/transform_loops.h"
#include "picasso_tf/cc/kernels/transform_program.h"

namespace picasso {
namespace transforms {

constexpr int64_t kBlock = 512;  // elements; all values of a block stay in the second level of the cache

// A value of any storage: the one that it is kept in is set.
struct Slot {
  Elements<int64_t> ints = {nullptr, 0};
  Elements<float> floats = {nullptr, 0};
  Elements<double> doubles = {nullptr, 0};
  Elements<std::string_view> strings = {nullptr, 0};
};

// Room for a value of any storage.
struct Room {
  std::vector<int64_t> ints;
  std::vector<float> floats;
  std::vector<double> doubles;
  std::vector<std::string_view> strings;
  std::vector<char> text;  // what strings that an instruction makes are views of
};

// The member of a Slot or a Room that holds elements of type T.
template <typename T, typename Holder>
auto& Of(Holder& holder) {
  if constexpr (std::is_same_v<T, int64_t>) {
    return holder.ints;
  } else if constexpr (std::is_same_v<T, float>) {
    return holder.floats;
  } else if constexpr (std::is_same_v<T, double>) {
    return holder.doubles;
  } else {
    return holder.strings;
  }
}

// Calls run(T()), where T is the type that a storage keeps.
template <typename Run>
void WithType(Storage storage, const Run& run) {
  switch (storage) {
    case Storage::kInts:
      return run(int64_t());
    case Storage::kFloats:
      return run(float());
    case Storage::kDoubles:
      return run(double());
    case Storage::kStrings:
      return run(std::string_view());
  }
}

// What a program needs of TensorFlow: hashes of strings, and its hash tables.
class Outside {
 public:
  virtual ~Outside() = default;
  virtual uint64_t HashLegacy(std::string_view text) const = 0;
  virtual uint64_t HashFast(std::string_view text) const = 0;
  virtual uint64_t HashStrong(const uint64_t (&key)[2], std::string_view text) const = 0;
  // Looks up `size` keys; for those that are not there, `missing` (one value of dtype `to`).
  // `out` has room for them. Returns false when the table refuses.
  virtual bool Find(int table, DType from, DType to, int64_t size, const Slot& keys,
                    const Slot& missing, Room* out) const = 0;
};

enum class Problem : int32_t { kNone, kDivisionByZero, kTable };

// The values of one block. Made once for each thread's run of blocks of one program.
class Block {
 public:
  // `scalars` are the c and then the z of the program; `boundaries` and `texts` of the whole op;
  // `capacity` is the most elements that it will be run over.
  Block(const Program& program, const std::vector<Slot>& scalars, const float* boundaries,
        const std::string* texts, const Outside& outside, int64_t capacity = kBlock)
      : program_(program),
        boundaries_(boundaries),
        texts_(texts),
        outside_(outside),
        capacity_(capacity),
        slots_(program.NumValues()) {
    std::copy(scalars.begin(), scalars.end(), slots_.begin() + 1);
    rooms_.resize(program.instructions.size());
  }

  // Sets what the next run takes for another tensor.
  void SetOther(int number, const Slot& slot) { slots_[program_.first_other + number] = slot; }

  // Runs the program over `size` elements of the feature.
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
  // Room for the results of instruction i, and the slot that shows them.
  Room& Make(size_t i, Storage storage) {
    WithType(storage, [&](auto type) {
      auto& elements = Of<decltype(type)>(rooms_[i]);
      elements.resize(capacity_);
      Of<decltype(type)>(slots_[program_.first_result + i]) = {elements.data(), 1};
    });
    return rooms_[i];
  }

  Problem RunInstruction(size_t i) {
    const Instruction& instruction = program_.instructions[i];
    const int32_t result = program_.first_result + static_cast<int32_t>(i);
    const DType dtype = program_.dtypes[result];
    Room& out = Make(i, StorageOf(dtype));
    const DType from = program_.dtypes[instruction.operands[0]];
    const Slot& a = slots_[instruction.operands[0]];
    const Slot& b = slots_[instruction.operands[1]];
    const Opcode opcode = instruction.opcode;
    if (opcode == Opcode::kTake) {
      WithType(StorageOf(dtype), [&](auto type) {
        using T = decltype(type);
        taken_ = Take(size_, Of<T>(a), b.ints, Of<T>(out).data());
      });
      return Problem::kNone;
    }
    const int64_t size = this->size(result);
    if (IsBetween(Opcode::kFloorMod, opcode, Opcode::kTruncMod)) {
      const bool good = DivideIntegers(opcode, size, a.ints, b.ints, out.ints.data());
      return good ? Problem::kNone : Problem::kDivisionByZero;
    }
    if (opcode == Opcode::kFind) {
      const bool good = outside_.Find(static_cast<int>(instruction.parameters[0]), from, dtype, size,
                                      a, b, &out);
      return good ? Problem::kNone : Problem::kTable;
    }
    if (opcode == Opcode::kJoin) {
      const std::string& text = texts_[instruction.parameters[0]];
      Join(size, a.strings, text, b.strings, &out.text, out.strings.data());
    } else if (IsBetween(Opcode::kEqual, opcode, Opcode::kGreaterEqual)) {
      WithType(StorageOf(from), [&](auto type) {
        using T = decltype(type);
        Compare(opcode, size, Of<T>(a), Of<T>(b), out.ints.data());
      });
    } else if (opcode == Opcode::kSelect) {
      const Slot& c = slots_[instruction.operands[2]];
      WithType(StorageOf(dtype), [&](auto type) {
        using T = decltype(type);
        Select(size, a.ints, Of<T>(b), Of<T>(c), Of<T>(out).data());
      });
    } else if (opcode <= Opcode::kMin || IsBetween(Opcode::kAnd, opcode, Opcode::kOr)) {
      CombineIntegers(opcode, dtype, size, a.ints, b.ints, out.ints.data());
    } else {
      RunUnary(instruction, from, dtype, size, a, &out);
    }
    return Problem::kNone;
  }

  void RunUnary(const Instruction& instruction, DType from, DType to, int64_t size, const Slot& a,
                Room* out) {
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
        out->text.resize(capacity_ * kMaxDigits);
        return Format(size, a.ints, out->text.data(), out->strings.data());
      case Opcode::kHashLegacy:
        for (int64_t i = 0; i < size; ++i) {
          out->ints[i] = Bucketed(outside_.HashLegacy(a.strings[i]), p[0]);
        }
        return;
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
  static void Fill(Storage storage, int64_t size, int value, Room* out) {
    WithType(storage, [&](auto type) {
      if constexpr (std::is_arithmetic_v<decltype(type)>) type = value;
      std::fill_n(Of<decltype(type)>(*out).begin(), size, type);
    });
  }

  static void RunCast(DType from, DType to, int64_t size, const Slot& a, Room* out) {
    if (from == DType::kFloat32) return CastFrom(a.floats, to, size, out);
    if (from == DType::kFloat64) return CastFrom(a.doubles, to, size, out);
    CastFrom(a.ints, to, size, out);
  }

  template <typename From>
  static void CastFrom(Elements<From> a, DType to, int64_t size, Room* out) {
    if (to == DType::kFloat32) return CastToReals(size, a, out->floats.data());
    if (to == DType::kFloat64) return CastToReals(size, a, out->doubles.data());
    CastToIntegers(to, size, a, out->ints.data());
  }

  static void RunBucketize(DType from, int64_t size, const Slot& a, const float* begin,
                           const float* end, int64_t* out) {
    int32_t buckets[kBlock];
    if (from == DType::kFloat64) {
      double values[kBlock];
      for (int64_t i = 0; i < size; ++i) values[i] = a.doubles[i];
      Bucketize(size, values, begin, end, buckets);
    } else {
      float values[kBlock];
      for (int64_t i = 0; i < size; ++i) {
        values[i] = IsReal(from) ? a.floats[i] : static_cast<float>(a.ints[i]);
      }
      Bucketize(size, values, begin, end, buckets);
    }
    std::copy_n(buckets, size, out);
  }

  const Program& program_;
  const float* const boundaries_;
  const std::string* const texts_;
  const Outside& outside_;
  const int64_t capacity_;
  std::vector<Slot> slots_;  // of each value
  std::vector<Room> rooms_;
  int64_t size_ = 0;
  int64_t taken_ = 0;
};

}  // namespace transforms
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_TRANSFORM_BLOCK_H_
