// What each instruction of an update program does to one element, on CPU and GPU.
// The arithmetic is that of TensorFlow's separate ops: one rounding for each
// instruction, and NaN, infinities and zeros treated as Eigen's scalars are.

#ifndef PICASSO_TF_CC_KERNELS_UPDATE_ARITHMETIC_H_
#define PICASSO_TF_CC_KERNELS_UPDATE_ARITHMETIC_H_

#include <cmath>

#include "picasso_tf/cc/kernels/update_program.h"
#include "picasso_tf/cc/kernels/update_values.h"

namespace picasso {
namespace packed_update {

// An elementwise instruction; operands that it does not have are ignored. `T` is
// the type of the table, and the result is one that T holds exactly.
template <Opcode kOpcode, typename T>
PICASSO_HOST_DEVICE PICASSO_INLINE Compute<T> Evaluate(Compute<T> a, Compute<T> b, Compute<T> c) {
  using C = Compute<T>;
  if constexpr (kOpcode == Opcode::kAdd) return Rounded<T>(a + b);
  if constexpr (kOpcode == Opcode::kSub) return Rounded<T>(a - b);
  if constexpr (kOpcode == Opcode::kMul) return Rounded<T>(a * b);
  if constexpr (kOpcode == Opcode::kDiv) return Rounded<T>(a / b);
  if constexpr (kOpcode == Opcode::kMax) return a < b || b != b ? b : a;  // NaN wins
  if constexpr (kOpcode == Opcode::kMin) return b < a || b != b ? b : a;
  if constexpr (kOpcode == Opcode::kSquaredDifference) {
    const C difference = Rounded<T>(a - b);
    return Rounded<T>(difference * difference);
  }
  if constexpr (kOpcode == Opcode::kDivNoNan) {
    const C quotient = Rounded<T>(a / b);  // unconditional, so that it vectorises
    return b == C(0) ? C(0) : quotient;
  }
  if constexpr (kOpcode == Opcode::kGreater) return a > b ? C(1) : C(0);
  if constexpr (kOpcode == Opcode::kGreaterEqual) return a >= b ? C(1) : C(0);
  if constexpr (kOpcode == Opcode::kLess) return a < b ? C(1) : C(0);
  if constexpr (kOpcode == Opcode::kLessEqual) return a <= b ? C(1) : C(0);
  if constexpr (kOpcode == Opcode::kEqual) return a == b ? C(1) : C(0);
  if constexpr (kOpcode == Opcode::kNotEqual) return a != b ? C(1) : C(0);
  if constexpr (kOpcode == Opcode::kNeg) return -a;
  if constexpr (kOpcode == Opcode::kSquare) return Rounded<T>(a * a);
  if constexpr (kOpcode == Opcode::kSqrt) return Rounded<T>(std::sqrt(a));
  // On half types Eigen's scalar code rounds twice.
  if constexpr (IsRsqrt(kOpcode)) {
    return Rounded<T>(C(1) / Rounded<T>(std::sqrt(a)));
  }
  // TensorFlow's Ftrl takes the root where the power is its usual one.
  if constexpr (kOpcode == Opcode::kPow) {
    return Rounded<T>(b == C(0.5) ? std::sqrt(a) : std::pow(a, b));
  }
  if constexpr (kOpcode == Opcode::kReciprocal) return Rounded<T>(C(1) / a);
  if constexpr (kOpcode == Opcode::kAbs) return std::fabs(a);
  if constexpr (kOpcode == Opcode::kSign) {
    const C sign = a > C(0) ? C(1) : (a < C(0) ? C(-1) : C(0));
    return a == a ? sign : a;
  }
  if constexpr (kOpcode == Opcode::kSelect) return a != C(0) ? b : c;
}

// The same with the opcode known only at run time.
template <typename T>
PICASSO_HOST_DEVICE inline Compute<T> Evaluate(Opcode opcode, Compute<T> a, Compute<T> b,
                                               Compute<T> c) {
  switch (opcode) {
#define PICASSO_CASE(opcode, name, operands) \
  case Opcode::opcode:                       \
    return Evaluate<Opcode::opcode, T>(a, b, c);
    PICASSO_UPDATE_ELEMENTWISE(PICASSO_CASE)
#undef PICASSO_CASE
    default:
      return a;
  }
}

// What a reduction or a touched_ instruction does with one row of `x`: the
// elementwise instruction on (row so far, x), or kSelect for "take x".
constexpr Opcode Step(Opcode opcode) {
  switch (opcode) {
    case Opcode::kSegmentSum:
    case Opcode::kScatterAdd:
    case Opcode::kTouchedAdd:
      return Opcode::kAdd;
    case Opcode::kScatterSub:
    case Opcode::kTouchedSub:
      return Opcode::kSub;
    default:
      return Opcode::kSelect;
  }
}

}  // namespace packed_update
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_UPDATE_ARITHMETIC_H_
