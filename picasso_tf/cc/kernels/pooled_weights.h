// Weighted rows, added up with the bits of TensorFlow's ops: each row is multiplied by
// its weight, SegmentSum adds the products, and DivNoNan divides them by the sum of the
// weights, or by the root of the sum of their squares.
//
// SegmentSum on CPU leaves the additions to Eigen. It begins with a zero and goes from
// row to row; but where there are 16 rows or more, the columns that fill whole packets
// get four sums, of every fourth row, which are added at the end, and then what is left
// of the rows. (InnerMostDimPreserver and GenericDimReducer in Eigen's TensorReduction.h)
// A row by itself is copied.
//
// Sum and Mean over axis 1 of [rows, ids, width] leave them to Eigen too. There a packet
// may begin at any element of the result [rows, width] whose number is a multiple of its
// size, so that each row has packets of its own. Rows of one element are added along the
// last dimension, in packets of ids. (InnerMostDimReducer)
//
// UnsortedSegmentSum, which reductions of ragged tensors end in, adds each row to a zero.

#ifndef PICASSO_TF_CC_KERNELS_POOLED_WEIGHTS_H_
#define PICASSO_TF_CC_KERNELS_POOLED_WEIGHTS_H_

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "picasso_tf/cc/kernels/pooled_lookup.h"

namespace picasso {
namespace pooled_lookup {

// How the rows of the table are added up.
enum class Order : int32_t {
  kGroups,     // as the SparseSegment ops do
  kColumns,    // as Eigen does where it keeps the last dimension
  kInnermost,  // as Eigen does where it sums over the last dimension: of one element each
  kInTurn,     // each is added to those before it, the first one to a zero
};

// Columns [begin, end).
struct Columns {
  int64_t begin = 0;
  int64_t end = 0;
};

// A row of the output to be made of the next `num` > 0 table rows.
template <typename T>
struct PooledRow {
  T* out;
  int64_t num;
  int64_t width;
  Combiner combiner;
  Order order = Order::kGroups;
  Columns packets = {};                 // with kColumns: those that fill whole packets
  const Compute<T>* weights = nullptr;  // of the rows, where they have any; not with kGroups
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

// The columns of row `row` of a matrix that fill whole packets, where packets begin at
// multiples of their size in the whole matrix.
template <typename C>
inline Columns PacketsOfRow(int64_t row, int64_t width) {
  const int64_t begin = (kPacket<C> - row * width % kPacket<C>) % kPacket<C>;
  const int64_t end = width - (row + 1) * width % kPacket<C>;
  return begin < end ? Columns{begin, end} : Columns{};
}

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

// The element of column `k` of row `i`, times its weight.
template <bool kWeighted, typename T>
PICASSO_INLINE Compute<T> TermAt(const PooledRow<T>& row, const T* const* rows, int64_t i,
                                 int64_t k) {
  const Compute<T> value = Value<T>::Load(rows[i][k]);
  if constexpr (kWeighted) return value * row.weights[i];
  return value;
}

// sums[c] = the sum of column `k` + c, in kSums chains.
template <int64_t kSums, bool kWeighted, int64_t kCount, typename T>
PICASSO_INLINE void SumChains(const PooledRow<T>& row, const T* const* rows, int64_t k,
                                Compute<T>* __restrict out) {
  using C = Compute<T>;
  C sums[kSums][kCount] = {};
  const auto add = [&](int64_t i, C* sum) __attribute__((always_inline)) {
    for (int64_t c = 0; c < kCount; ++c) {
      sum[c] = sum[c] + TermAt<kWeighted>(row, rows, i, k + c);
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

// The sum over the rows of the only column.
template <bool kWeighted, typename T>
PICASSO_INLINE Compute<T> SumInnermost(const PooledRow<T>& row, const T* const* rows) {
  using C = Compute<T>;
  constexpr int64_t kLanes = kPacket<C>;
  C sums[kChains][kLanes] = {};
  const auto add = [&](int64_t i, C* sum) __attribute__((always_inline)) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      sum[lane] = sum[lane] + TermAt<kWeighted>(row, rows, i + lane, 0);
    }
  };
  int64_t i = 0;
  for (; i + kChains * kLanes <= row.num; i += kChains * kLanes) {
    for (int64_t s = 0; s < kChains; ++s) add(i + s * kLanes, sums[s]);
  }
  for (int64_t s = 1; s < kChains; ++s) {
    for (int64_t lane = 0; lane < kLanes; ++lane) sums[0][lane] = sums[0][lane] + sums[s][lane];
  }
  for (; i + kLanes <= row.num; i += kLanes) add(i, sums[0]);
  C rest(0);
  for (; i < row.num; ++i) rest = rest + TermAt<kWeighted>(row, rows, i, 0);
  for (int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (int64_t lane = 0; lane < half; ++lane) {
      sums[0][lane] = sums[0][lane] + sums[0][lane + half];
    }
  }
  return rest + sums[0][0];
}

// sums[k] = the sum of rows [0, row.num) in column `first` + k, k < width.
template <bool kWeighted, typename T>
PICASSO_INLINE void SumColumns(const PooledRow<T>& row, const T* const* rows, int64_t first,
                               int64_t width, Compute<T>* sums) {
  if (row.num == 1 && row.order != Order::kInTurn) {
    for (int64_t k = 0; k < width; ++k) sums[k] = TermAt<kWeighted>(row, rows, 0, first + k);
    return;
  }
  if (row.order == Order::kInnermost) {
    sums[0] = SumInnermost<kWeighted>(row, rows);
    return;
  }
  const bool chained = row.order == Order::kColumns && row.num >= kLeastForChains;
  const int64_t most = chained ? width : 0;
  const int64_t begin = std::clamp<int64_t>(row.packets.begin - first, 0, most);
  const int64_t end = std::clamp<int64_t>(row.packets.end - first, begin, most);
  const auto one_by_one = [&](int64_t from, int64_t to) __attribute__((always_inline)) {
    ForColumns(to - from, [&](int64_t k, auto count) __attribute__((always_inline)) {
      SumChains<1, kWeighted, count>(row, rows, first + from + k, sums + from + k);
    });
  };
  one_by_one(0, begin);
  ForColumns(end - begin, [&](int64_t k, auto count) __attribute__((always_inline)) {
    SumChains<kChains, kWeighted, count>(row, rows, first + begin + k, sums + begin + k);
  });
  one_by_one(end, width);
}

// Combines rows [0, row.num) in columns [first, first + width) into `sums`.
template <typename T>
PICASSO_INLINE void PoolColumns(const PooledRow<T>& row, const T* const* rows, int64_t first,
                                int64_t width, Compute<T>* sums) {
  using C = Compute<T>;
  if (row.weights == nullptr) {
    SumColumns<false>(row, rows, first, width, sums);
    if (row.combiner == Combiner::kSum || row.num == 1) return;
    for (int64_t k = 0; k < width; ++k) sums[k] = sums[k] / static_cast<C>(row.num);
    return;
  }
  SumColumns<true>(row, rows, first, width, sums);
  if (row.combiner == Combiner::kSum) return;
  const C divisor = WeightedDivisor(row.combiner, row.weights, row.num);
  for (int64_t k = 0; k < width; ++k) sums[k] = divisor == C(0) ? C(0) : sums[k] / divisor;
}

}  // namespace pooled_lookup
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_POOLED_WEIGHTS_H_
