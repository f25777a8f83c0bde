// The value types of the packed updates. Half types are kept as their bits and
// computed in float, each result rounded to nearest even, as Eigen does it. The
// conversions are plain integer code without branches: compilers vectorise them,
// and a processor that flushes denormals gives the same bits.

#ifndef PICASSO_TF_CC_KERNELS_UPDATE_VALUES_H_
#define PICASSO_TF_CC_KERNELS_UPDATE_VALUES_H_

#include <cstdint>
#include <cstring>

#include "picasso_tf/cc/kernels/ids.h"

#if defined(__CUDACC__)
#define PICASSO_INLINE __forceinline__
#else
#define PICASSO_INLINE inline __attribute__((always_inline))
#endif

namespace picasso {
namespace packed_update {

struct Half {
  uint16_t bits;
};
struct Bfloat16 {
  uint16_t bits;
};

PICASSO_HOST_DEVICE PICASSO_INLINE uint32_t Bits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof(bits));
  return bits;
}

PICASSO_HOST_DEVICE PICASSO_INLINE float FromBits(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof(x));
  return x;
}

// What a type is computed in, and how it is loaded and stored.
template <typename T>
struct Value {
  using Compute = T;
  PICASSO_HOST_DEVICE static PICASSO_INLINE T Load(T x) { return x; }
  PICASSO_HOST_DEVICE static PICASSO_INLINE T Store(T x) { return x; }
};

template <>
struct Value<Half> {
  using Compute = float;

  PICASSO_HOST_DEVICE static PICASSO_INLINE float Load(Half x) {
    constexpr uint32_t kSmallest = 113u << 23;  // 2^-14, the smallest normal half, as a float
    const uint32_t sign = (x.bits & 0x8000u) << 16;
    const uint32_t shifted = (x.bits & 0x7fffu) << 13;
    // A denormal's bits, read as the mantissa of a float from 2^-14 on, are that
    // much too large; an infinity or NaN needs the exponent of a float's.
    const uint32_t denormal = Bits(FromBits(shifted + kSmallest) - FromBits(kSmallest));
    const uint32_t normal = shifted + (112u << 23);
    const uint32_t special = normal + (112u << 23);
    const uint32_t magnitude =
        shifted < (1u << 23) ? denormal : (shifted >= (31u << 23) ? special : normal);
    return FromBits(sign | magnitude);
  }

  PICASSO_HOST_DEVICE static PICASSO_INLINE Half Store(float x) {
    const uint32_t sign = Bits(x) & 0x80000000u;
    const uint32_t magnitude = Bits(x) ^ sign;
    // Added to 0.5 a float has steps of 2^-24, those of a denormal half.
    const uint32_t denormal = Bits(FromBits(magnitude) + 0.5f) - Bits(0.5f);
    const uint32_t odd = (magnitude >> 13) & 1u;
    const uint32_t normal = (magnitude - (112u << 23) + 0xfffu + odd) >> 13;
    const uint32_t special = magnitude > (255u << 23) ? 0x7e00u : 0x7c00u;
    const uint32_t bits =
        magnitude < (113u << 23) ? denormal : (magnitude >= (143u << 23) ? special : normal);
    return {static_cast<uint16_t>(bits | (sign >> 16))};
  }
};

template <>
struct Value<Bfloat16> {
  using Compute = float;

  PICASSO_HOST_DEVICE static PICASSO_INLINE float Load(Bfloat16 x) {
    return FromBits(static_cast<uint32_t>(x.bits) << 16);
  }

  PICASSO_HOST_DEVICE static PICASSO_INLINE Bfloat16 Store(float x) {
    const uint32_t bits = Bits(x);
    const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    const uint32_t nan = ((bits >> 16) & 0x8000u) | 0x7fc0u;
    return {static_cast<uint16_t>((bits & 0x7fffffffu) > (255u << 23) ? nan : rounded)};
  }
};

template <typename T>
using Compute = typename Value<T>::Compute;

// `x` as it is after being stored and loaded again.
template <typename T>
PICASSO_HOST_DEVICE PICASSO_INLINE Compute<T> Rounded(Compute<T> x) {
  return Value<T>::Load(Value<T>::Store(x));
}

}  // namespace packed_update
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_UPDATE_VALUES_H_
