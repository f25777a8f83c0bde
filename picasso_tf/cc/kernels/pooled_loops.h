// The inner loops of the pooled lookup on CPU. They are compiled for each instruction
// set that pays, and the best one of this machine is chosen when the process starts.

#ifndef PICASSO_TF_CC_KERNELS_POOLED_LOOPS_H_
#define PICASSO_TF_CC_KERNELS_POOLED_LOOPS_H_

#include <algorithm>
#include <type_traits>

#include "picasso_tf/cc/kernels/pooled_lookup.h"
#include "picasso_tf/cc/kernels/pooled_weights.h"

namespace picasso {
namespace pooled_lookup {

constexpr int64_t kAhead = 48;
constexpr int64_t kCacheLine = 64;
constexpr int64_t kPrefetchedBytes = 512;  // the hardware sees longer streams

// sums[k] = or += the sum of a group of rows, for columns [first, first + width).
template <int kRows, bool kAdd, typename T>
PICASSO_INLINE void SumGroup(const T* const* rows, int64_t first, int64_t width, Compute<T> factor,
                             Compute<T>* __restrict sums) {
  const T* group[kRows];
  for (int i = 0; i < kRows; ++i) group[i] = rows[i] + first;
  ForColumns(width, [&](int64_t k, auto count) __attribute__((always_inline)) {
    for (int64_t c = k; c < k + count; ++c) {
      Compute<T> sum = SumOf<kRows>(group, c);
      if constexpr (kAdd) {
        sum = sums[c] + sum;
      } else if constexpr (kRows > 1) {
        sum = sum * factor;
      }
      sums[c] = sum;
    }
  });
}

template <typename T>
PICASSO_INLINE void SumFirstGroup(const T* const* rows, int count, int64_t first, int64_t width,
                                  Compute<T> factor, Compute<T>* sums) {
  switch (count) {
#define PICASSO_CASE(kRows) \
  case kRows:               \
    return SumGroup<kRows, false>(rows, first, width, factor, sums);
    PICASSO_CASE(1)
    PICASSO_CASE(2)
    PICASSO_CASE(3)
    PICASSO_CASE(4)
    PICASSO_CASE(5)
    PICASSO_CASE(6)
    PICASSO_CASE(7)
    PICASSO_CASE(8)
    PICASSO_CASE(9)
#undef PICASSO_CASE
  }
}

// Combines rows [0, row.num) in columns [first, first + width) into `sums`.
template <typename T>
PICASSO_INLINE void Pool(const PooledRow<T>& row, const T* const* rows, int64_t first,
                         int64_t width, Compute<T>* sums) {
  const Scaling<Compute<T>> scaling = ScalingOf<Compute<T>>(row.combiner, row.num);
  int64_t done = FirstGroup(row.num);
  SumFirstGroup(rows, done, first, width, scaling.factor, sums);
  if (done == row.num) return;
  for (; done < row.num; done += kGroup) {
    SumGroup<kGroup, true>(rows + done, first, width, scaling.factor, sums);
  }
  if (row.combiner == Combiner::kSum) return;
  for (int64_t k = 0; k < width; ++k) sums[k] = sums[k] / scaling.divisor;
}

template <typename T>
PICASSO_INLINE void PoolAny(const PooledRow<T>& row, const T* const* rows, int64_t first,
                            int64_t width, Compute<T>* sums) {
  row.order == Order::kGroups ? Pool(row, rows, first, width, sums)
                              : PoolColumns(row, rows, first, width, sums);
}

template <typename T>
PICASSO_INLINE void Prefetch(const T* row, int64_t width) {
  const char* bytes = reinterpret_cast<const char*>(row);
  const int64_t size = std::min<int64_t>(width * sizeof(T), kPrefetchedBytes);
  for (int64_t at = 0; at < size; at += kCacheLine) __builtin_prefetch(bytes + at, 0, 3);
}

// Fills `count` rows of the output. `rows` may be read kAhead entries past the last.
template <typename T>
PICASSO_INLINE void PoolRowsBody(const PooledRow<T>* out, int64_t count, const T* const* rows) {
  constexpr int64_t kColumns = 256;
  for (const PooledRow<T>* row = out; row < out + count; rows += row->num, ++row) {
    for (int64_t i = 0; i < row->num; ++i) Prefetch(rows[i + kAhead], row->width);
    if constexpr (std::is_same_v<T, Compute<T>>) {
      PoolAny(*row, rows, 0, row->width, row->out);
    } else {
      for (int64_t k = 0; k < row->width; k += kColumns) {
        const int64_t width = std::min(kColumns, row->width - k);
        Compute<T> sums[kColumns];
        PoolAny(*row, rows, k, width, sums);
        T* __restrict to = row->out + k;
        for (int64_t c = 0; c < width; ++c) to[c] = Value<T>::Store(sums[c]);
      }
    }
  }
}

// ---- One of them for each instruction set ----

template <typename T>
void PoolRowsBaseline(const PooledRow<T>* out, int64_t count, const T* const* rows) {
  PoolRowsBody(out, count, rows);
}

#if defined(__x86_64__)
template <typename T>
__attribute__((target("avx2"))) void PoolRowsAvx2(const PooledRow<T>* out, int64_t count,
                                                  const T* const* rows) {
  PoolRowsBody(out, count, rows);
}

template <typename T>
__attribute__((target("avx512f,avx512vl,avx512dq,avx512bw"))) void PoolRowsAvx512(
    const PooledRow<T>* out, int64_t count, const T* const* rows) {
  PoolRowsBody(out, count, rows);
}
#endif

template <typename T>
using PoolRowsFunction = void (*)(const PooledRow<T>* out, int64_t count, const T* const* rows);

template <typename T>
PoolRowsFunction<T> ChoosePoolRows() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw")) {
    return PoolRowsAvx512<T>;
  }
  if (__builtin_cpu_supports("avx2")) return PoolRowsAvx2<T>;
#endif
  return PoolRowsBaseline<T>;
}

template <typename T>
void PoolRows(const PooledRow<T>* out, int64_t count, const T* const* rows) {
  static const PoolRowsFunction<T> function = ChoosePoolRows<T>();
  function(out, count, rows);
}

}  // namespace pooled_lookup
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_POOLED_LOOPS_H_
