// Square roots and reciprocals of packets of floats, with the bits that TensorFlow's
// CPU kernels give: there `rsqrt` and `reciprocal` are the processor's estimate and
// one Newton step.

#ifndef PICASSO_TF_CC_KERNELS_UPDATE_ROOTS_H_
#define PICASSO_TF_CC_KERNELS_UPDATE_ROOTS_H_

#include <type_traits>

#include "picasso_tf/cc/kernels/update_arithmetic.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace picasso {
namespace packed_update {

// Whether TensorFlow's packets give other bits than Evaluate.
template <typename T>
constexpr bool HasPacketForm(Opcode opcode) {
#if defined(__x86_64__)
  const bool is_root = opcode != Opcode::kMax && opcode != Opcode::kMin;
  return MayHavePacketForm(opcode) &&
         (is_root ? std::is_same_v<Compute<T>, float> : std::is_same_v<Compute<T>, T>);
#else
  return false;
#endif
}

#if defined(__x86_64__)

// 1 / sqrt(a): y + (-y / 2) * (a * y * y - 1), y being the estimate. Where that is
// NaN (0 * infinity) the estimate is right.
__attribute__((target("avx"))) inline __m256 PacketRsqrt(__m256 a) {
  const __m256 estimate = _mm256_rsqrt_ps(a);
  const __m256 error = _mm256_add_ps(_mm256_mul_ps(_mm256_mul_ps(a, estimate), estimate),
                                     _mm256_set1_ps(-1.0f));
  const __m256 half = _mm256_mul_ps(estimate, _mm256_set1_ps(-0.5f));
  const __m256 better = _mm256_add_ps(_mm256_mul_ps(half, error), estimate);
  return _mm256_blendv_ps(better, estimate, _mm256_cmp_ps(better, better, _CMP_UNORD_Q));
}

// 1 / a: y + y * (1 - a * y), likewise.
__attribute__((target("avx"))) inline __m256 PacketReciprocal(__m256 a) {
  const __m256 estimate = _mm256_rcp_ps(a);
  const __m256 error = _mm256_sub_ps(_mm256_set1_ps(1.0f), _mm256_mul_ps(a, estimate));
  const __m256 better = _mm256_add_ps(_mm256_mul_ps(estimate, error), estimate);
  return _mm256_blendv_ps(better, estimate, _mm256_cmp_ps(error, error, _CMP_UNORD_Q));
}

// The results of sqrt, rsqrt or reciprocal for n floats, not yet rounded to a half
// type. `out` may be `in`.
__attribute__((target("avx"))) inline void FloatRoots(Opcode opcode, const float* in, float* out,
                                                      int64_t n) {
  constexpr int64_t kPacket = 8;
  for (int64_t i = 0; i < n; i += kPacket) {
    float last[kPacket] = {};
    const bool whole = i + kPacket <= n;
    if (!whole) std::copy(in + i, in + n, last);
    __m256 x = _mm256_loadu_ps(whole ? in + i : last);
    if (opcode == Opcode::kSqrt) {
      x = _mm256_sqrt_ps(x);
    } else {
      x = opcode == Opcode::kReciprocal ? PacketReciprocal(x) : PacketRsqrt(x);
    }
    _mm256_storeu_ps(whole ? out + i : last, x);
    if (!whole) std::copy_n(last, n - i, out + i);
  }
}

// The compiler's own loop would look for negative numbers, to set errno.
__attribute__((target("avx"))) inline void DoubleSqrt(const double* in, double* out, int64_t n) {
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) _mm256_storeu_pd(out + i, _mm256_sqrt_pd(_mm256_loadu_pd(in + i)));
  for (; i < n; ++i) out[i] = std::sqrt(in[i]);
}

#endif  // __x86_64__

// sqrt of any type; rsqrt and reciprocal where they have a packet form.
template <typename T>
void PacketRoots(Opcode opcode, const Compute<T>* in, Compute<T>* out, int64_t n) {
#if defined(__x86_64__)
  if constexpr (std::is_same_v<T, double>) {
    DoubleSqrt(in, out, n);
  } else {
    FloatRoots(opcode, in, out, n);
  }
  if constexpr (!std::is_same_v<T, Compute<T>>) {
    for (int64_t i = 0; i < n; ++i) out[i] = Rounded<T>(out[i]);
  }
#else
  for (int64_t i = 0; i < n; ++i) out[i] = Evaluate<T>(opcode, in[i], in[i], in[i]);
#endif
}

}  // namespace packed_update
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_UPDATE_ROOTS_H_
