// Rows clipped to a norm, with the bits of `tf.clip_by_norm` on CPU: a row is multiplied
// by the largest norm and divided by its own, or by the largest one if that is more.
//
// Eigen sums the squares of a row in packets: one chain of packets, or four of them that
// are then added in turn where there are 8 packets or more. The halves of what is left
// are added until one number is, and then the elements that fill no packet, which have a
// sum of their own. (InnerMostDimReducer in Eigen's TensorReduction.h)

#ifndef PICASSO_TF_CC_KERNELS_CLIP_ROWS_H_
#define PICASSO_TF_CC_KERNELS_CLIP_ROWS_H_

#include <cmath>
#include <cstdint>

namespace picasso {

template <typename T>
T SumOfSquares(const T* row, int64_t size) {
  constexpr int64_t kPacket = 32 / sizeof(T);  // TensorFlow is built for AVX
  constexpr int64_t kChains = 4, kLeastForChains = 8 * kPacket;
  T sums[kChains][kPacket] = {};
  int64_t at = 0;
  const auto add = [&](T* sum) {
    for (int64_t i = 0; i < kPacket; ++i) sum[i] = sum[i] + row[at + i] * row[at + i];
    at += kPacket;
  };
  while (size >= kLeastForChains && at + kChains * kPacket <= size) {
    for (int64_t chain = 0; chain < kChains; ++chain) add(sums[chain]);
  }
  for (int64_t chain = 1; chain < kChains; ++chain) {
    for (int64_t i = 0; i < kPacket; ++i) sums[0][i] = sums[0][i] + sums[chain][i];
  }
  while (at + kPacket <= size) add(sums[0]);
  for (int64_t half = kPacket / 2; half > 0; half /= 2) {
    for (int64_t i = 0; i < half; ++i) sums[0][i] = sums[0][i] + sums[0][i + half];
  }
  T rest(0);
  for (; at < size; ++at) rest = rest + row[at] * row[at];
  return sums[0][0] + rest;
}

// Clips a row in place. A NaN makes all of it NaN.
template <typename T>
void ClipRow(T* row, int64_t size, T max_norm) {
  const T squares = SumOfSquares(row, size);
  const T norm = squares > T(0) ? std::sqrt(squares) : squares;
  const T divisor = norm < max_norm ? max_norm : norm;
  for (int64_t i = 0; i < size; ++i) row[i] = row[i] * max_norm / divisor;
}

}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_CLIP_ROWS_H_
