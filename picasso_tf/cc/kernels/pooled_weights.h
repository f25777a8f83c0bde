// Weighted rows, added up with the bits of TensorFlow's ops: each row is multiplied by
// its weight, SegmentSum adds the products, and DivNoNan divides them by the sum of the
// weights, or by the root of the sum of their squares.
//
// SegmentSum on CPU leaves the additions to Eigen. It begins with a zero and goes from
// row to row; but where there are 16 rows or more, the columns that fill whole packets
// get four sums, of every fourth row, which are added at the end, and then what is left
// of the rows. (InnerMostDimPreserver and GenericDimReducer in Eigen's TensorReduction.h)
// A row by itself is copied.

#ifndef PICASSO_TF_CC_KERNELS_POOLED_WEIGHTS_H_
#define PICASSO_TF_CC_KERNELS_POOLED_WEIGHTS_H_

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "picasso_tf/cc/kernels/pooled_lookup.h"

namespace picasso {
namespace pooled_lookup {

// A row of the output to be made of the next `num` > 0 table rows.
template <typename T>
struct PooledRow {
  T* out;
  int64_t num;
  int64_t width;
  Combiner combiner;
  const Compute<T>* weights = nullptr;  // of the rows, where they have any
};

template <int64_t kValue>
using Constant = std::integral_constant<int64_t, kValue>;

// Calls body(k, count) for runs of columns k, k + 1, ... that make up [0, width). A
// count is a constant, so that a loop over it becomes a few vector instructions.
template <typename Body>
PICASSO_INLINE void ForColumns(int64_t width, const Body& body) {
  int64_t k = 0;
  for (; k + 16 <= width; k += 16) body(k, Constant<16>());
  for (; k + 4 <= width; k += 4) body(k, Constant<4>());
  for (; k < width; ++k) body(k, Constant<1>());
}

constexpr int64_t kChains = 4;
constexpr int64_t kLeastForChains = 16;

// Elements of a packet: TensorFlow is built for AVX.
template <typename C>
constexpr int64_t kPacket = 32 / sizeof(C);

// What a weight adds to the divisor of its row.
template <typename C>
PICASSO_HOST_DEVICE PICASSO_INLINE C WeightTerm(Combiner combiner, C weight) {
  return combiner == Combiner::kSqrtN ? weight * weight : weight;
}

// What the sum of a row is divided by, given the sum of the terms of its weights.
template <typename C>
PICASSO_HOST_DEVICE PICASSO_INLINE C DivisorOf(Combiner combiner, C terms) {
  return combiner == Combiner::kSqrtN ? std::sqrt(terms) : terms;
}

template <typename C>
PICASSO_INLINE C WeightedDivisor(Combiner combiner, const C* weights, int64_t num) {
  // A column by itself fills no packet.
  C sum = num == 1 ? WeightTerm(combiner, weights[0]) : C(0);
  for (int64_t i = 0; i < num && num > 1; ++i) sum = sum + WeightTerm(combiner, weights[i]);
  return DivisorOf(combiner, sum);
}

// sums[c] = the weighted sum of column `k` + c, in kSums chains.
template <int64_t kSums, int64_t kCount, typename T>
PICASSO_INLINE void SumWeighted(const PooledRow<T>& row, const T* const* rows, int64_t k,
                                Compute<T>* __restrict out) {
  using C = Compute<T>;
  C sums[kSums][kCount] = {};
  const auto add = [&](int64_t i, C* sum) __attribute__((always_inline)) {
    const T* from = rows[i] + k;
    for (int64_t c = 0; c < kCount; ++c) {
      const C product = Value<T>::Load(from[c]) * row.weights[i];
      sum[c] = sum[c] + product;
    }
  };
  int64_t i = 0;
  for (; i + kSums <= row.num; i += kSums) {
    for (int64_t s = 0; s < kSums; ++s) add(i + s, sums[s]);
  }
  for (int64_t s = 1; s < kSums; ++s) {
    for (int64_t c = 0; c < kCount; ++c) sums[0][c] = sums[0][c] + sums[s][c];
  }
  for (; i < row.num; ++i) add(i, sums[0]);
  for (int64_t c = 0; c < kCount; ++c) out[c] = sums[0][c];
}

// Combines rows [0, row.num) in columns [first, first + width) into `sums`.
template <typename T>
PICASSO_INLINE void PoolWeighted(const PooledRow<T>& row, const T* const* rows, int64_t first,
                                 int64_t width, Compute<T>* sums) {
  using C = Compute<T>;
  if (row.num == 1) {
    for (int64_t k = 0; k < width; ++k) {
      sums[k] = Value<T>::Load(rows[0][first + k]) * row.weights[0];
    }
  } else {
    const int64_t in_packets = row.width - row.width % kPacket<C> - first;
    const int64_t chained =
        row.num < kLeastForChains ? 0 : std::clamp<int64_t>(in_packets, 0, width);
    ForColumns(chained, [&](int64_t k, auto count) __attribute__((always_inline)) {
      SumWeighted<kChains, count>(row, rows, first + k, sums + k);
    });
    ForColumns(width - chained, [&](int64_t k, auto count) __attribute__((always_inline)) {
      SumWeighted<1, count>(row, rows, first + chained + k, sums + chained + k);
    });
  }
  if (row.combiner == Combiner::kSum) return;
  const C divisor = WeightedDivisor(row.combiner, row.weights, row.num);
  for (int64_t k = 0; k < width; ++k) sums[k] = divisor == C(0) ? C(0) : sums[k] / divisor;
}

}  // namespace pooled_lookup
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_POOLED_WEIGHTS_H_
