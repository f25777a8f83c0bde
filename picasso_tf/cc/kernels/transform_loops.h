// The arithmetic of transform instructions over a run of elements. Results are those of
// TensorFlow's CPU kernels: integers wrap around in their own width, floats are rounded to
// theirs, and a float out of an integer's range becomes its lowest value, as on x86.

#ifndef PICASSO_TF_CC_KERNELS_TRANSFORM_LOOPS_H_
#define PICASSO_TF_CC_KERNELS_TRANSFORM_LOOPS_H_

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "picasso_tf/cc/kernels/transform_program.h"

namespace picasso {
namespace transforms {

// Elements of an operand: one for each element, or the same one for all.
template <typename T>
struct Elements {
  const T* data;
  int64_t stride;  // 1 or 0

  const T& operator[](int64_t i) const { return data[i * stride]; }
};

template <typename A, typename B, typename Out, typename Run>
void Map(int64_t size, Elements<A> a, Elements<B> b, Out* out, const Run& run) {
  for (int64_t i = 0; i < size; ++i) out[i] = run(a[i], b[i]);
}

inline int64_t Narrow(DType dtype, uint64_t value) {
  return dtype == DType::kInt32 ? static_cast<int32_t>(value) : static_cast<int64_t>(value);
}

inline int64_t TruncMod(int64_t a, int64_t b) { return b == -1 ? 0 : a % b; }

inline int64_t FloorMod(int64_t a, int64_t b) {
  const int64_t rest = TruncMod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

// False: a divisor is 0; the results of such elements are then 0.
inline bool DivideIntegers(Opcode opcode, int64_t size, Elements<int64_t> a, Elements<int64_t> b,
                           int64_t* out) {
  bool good = true;
  for (int64_t i = 0; i < size; ++i) {
    const int64_t divisor = b[i];
    good &= divisor != 0;
    if (divisor == 0) {
      out[i] = 0;
    } else {
      out[i] = opcode == Opcode::kFloorMod ? FloorMod(a[i], divisor) : TruncMod(a[i], divisor);
    }
  }
  return good;
}

// add, sub, mul, max, min, and, or. Sums of uint64 wrap around where those of int64 must not.
inline void CombineIntegers(Opcode opcode, DType dtype, int64_t size, Elements<int64_t> a,
                            Elements<int64_t> b, int64_t* out) {
  using Unsigned = uint64_t;
  const auto map = [&](auto run) { Map(size, a, b, out, run); };
  switch (opcode) {
    case Opcode::kAdd:
      return map([=](Unsigned x, Unsigned y) { return Narrow(dtype, x + y); });
    case Opcode::kSub:
      return map([=](Unsigned x, Unsigned y) { return Narrow(dtype, x - y); });
    case Opcode::kMul:
      return map([=](Unsigned x, Unsigned y) { return Narrow(dtype, x * y); });
    case Opcode::kMax:
      return map([](int64_t x, int64_t y) { return std::max(x, y); });
    case Opcode::kMin:
      return map([](int64_t x, int64_t y) { return std::min(x, y); });
    case Opcode::kAnd:
      return map([](int64_t x, int64_t y) { return x & y; });
    default:
      return map([](int64_t x, int64_t y) { return x | y; });
  }
}

template <typename T>
void Compare(Opcode opcode, int64_t size, Elements<T> a, Elements<T> b, int64_t* out) {
  using Value = const T&;
  const auto map = [&](auto run) { Map(size, a, b, out, run); };
  switch (opcode) {
    case Opcode::kEqual:
      return map([](Value x, Value y) { return x == y; });
    case Opcode::kNotEqual:
      return map([](Value x, Value y) { return x != y; });
    case Opcode::kLess:
      return map([](Value x, Value y) { return x < y; });
    case Opcode::kLessEqual:
      return map([](Value x, Value y) { return x <= y; });
    case Opcode::kGreater:
      return map([](Value x, Value y) { return x > y; });
    default:
      return map([](Value x, Value y) { return x >= y; });
  }
}

template <typename T>
void Select(int64_t size, Elements<int64_t> condition, Elements<T> a, Elements<T> b, T* out) {
  for (int64_t i = 0; i < size; ++i) out[i] = condition[i] != 0 ? a[i] : b[i];
}

template <typename T>
int64_t Take(int64_t size, Elements<T> a, Elements<int64_t> mask, T* out) {
  int64_t taken = 0;
  for (int64_t i = 0; i < size; ++i) {
    if (mask[i] != 0) out[taken++] = a[i];
  }
  return taken;
}

template <typename Int>
int64_t Truncated(double value) {
  constexpr Int kLowest = std::numeric_limits<Int>::min();
  const double limit = -static_cast<double>(kLowest);
  return value > -limit - 1 && value < limit ? static_cast<Int>(value) : kLowest;
}

template <typename Real>
void CastToIntegers(DType to, int64_t size, Elements<Real> a, int64_t* out) {
  for (int64_t i = 0; i < size; ++i) {
    const Real value = a[i];
    out[i] = to == DType::kBool    ? value != 0
             : to == DType::kInt32 ? Truncated<int32_t>(value)
                                   : Truncated<int64_t>(value);
  }
}

inline void CastToIntegers(DType to, int64_t size, Elements<int64_t> a, int64_t* out) {
  for (int64_t i = 0; i < size; ++i) {
    out[i] = to == DType::kBool ? a[i] != 0 : Narrow(to, static_cast<uint64_t>(a[i]));
  }
}

// Between floats and doubles, and from integers: straight to float, for by way of double an
// int64 would be rounded twice.
template <typename From, typename Real>
void CastToReals(int64_t size, Elements<From> a, Real* out) {
  for (int64_t i = 0; i < size; ++i) out[i] = static_cast<Real>(a[i]);
}

// How many boundaries are at most as large as each value, in the arithmetic of C++ between the
// feature's dtype and float; NaN is above all. A few boundaries are compared with all values,
// which has no branch to mispredict; of many, each value searches its own.
constexpr int64_t kFewBoundaries = 64;

template <typename Value>
void Bucketize(int64_t size, const Value* values, const float* begin, const float* end,
               int32_t* out) {
  if (end - begin > kFewBoundaries) {
    for (int64_t i = 0; i < size; ++i) {
      out[i] = static_cast<int32_t>(std::upper_bound(begin, end, values[i]) - begin);
    }
    return;
  }
  std::fill_n(out, size, 0);
  for (const float* boundary = begin; boundary != end; ++boundary) {
    const Value least = *boundary;
    for (int64_t i = 0; i < size; ++i) out[i] += !(values[i] < least);
  }
}

// Joins two strings and `text` between them; `room` holds the results.
inline void Join(int64_t size, Elements<std::string_view> a, std::string_view text,
                 Elements<std::string_view> b, std::vector<char>* room, std::string_view* out) {
  size_t total = 0;
  for (int64_t i = 0; i < size; ++i) total += a[i].size() + text.size() + b[i].size();
  room->resize(total);
  char* at = room->data();
  for (int64_t i = 0; i < size; ++i) {
    char* const begin = at;
    for (const std::string_view part : {a[i], text, b[i]}) {
      at = std::copy(part.begin(), part.end(), at);
    }
    out[i] = std::string_view(begin, at - begin);
  }
}

// Decimal digits of integers; `digits` holds kMaxDigits for each.
constexpr int64_t kMaxDigits = 20;

inline void Format(int64_t size, Elements<int64_t> a, char* digits, std::string_view* out) {
  for (int64_t i = 0; i < size; ++i, digits += kMaxDigits) {
    const char* end = std::to_chars(digits, digits + kMaxDigits, a[i]).ptr;
    out[i] = std::string_view(digits, end - digits);
  }
}

}  // namespace transforms
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_TRANSFORM_LOOPS_H_
