// Packed pooled lookup: each row of an output combines the table rows of several
// ids. Free of TensorFlow types; the CPU op, the CUDA kernel and the stand-alone tests
// share what is here.
//
// The sums have the bits of TensorFlow's SparseSegmentSum, SparseSegmentMean and
// SparseSegmentSqrtN on CPU. These add the rows of n ids in groups: n mod 8 rows
// first (8 for 0, 9 for 1), then 8 at a time, each group added up from left to right
// before it is added to those before it. Up to nine rows are one group; its sum is
// multiplied by the reciprocal of the divisor. Longer sums are divided. A row by
// itself is copied. (ReduceImpl in tensorflow/core/kernels/
// segment_reduction_ops_impl.h) Rows with weights, and those of ids that come in a
// matrix or are added in turn, are added in other orders: see pooled_weights.h.

#ifndef PICASSO_TF_CC_KERNELS_POOLED_LOOKUP_H_
#define PICASSO_TF_CC_KERNELS_POOLED_LOOKUP_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "picasso_tf/cc/kernels/ids.h"
#include "picasso_tf/cc/kernels/update_values.h"

namespace picasso {
namespace pooled_lookup {

using packed_update::Bfloat16;
using packed_update::Compute;
using packed_update::Half;
using packed_update::Value;

enum class Combiner : int32_t { kSum, kMean, kSqrtN };

constexpr int kMaxColumns = 8;

// Which row of the output each id belongs to.
struct Segments {
  const void* data = nullptr;
  bool is_int64 = false;
  // Ids [r * length, (r + 1) * length) belong to row r; -1: `data` tells.
  int64_t length = -1;
  // Ids [splits[r], splits[r + 1]) belong to row r. Otherwise id j belongs to the row
  // that is the sum of data[j * pitch + c] * strides[c] over `columns` columns.
  bool are_splits = false;
  int64_t pitch = 1;
  int columns = 1;
  int64_t strides[kMaxColumns] = {1};
};

// One lookup: its ids, in the order of the rows that they belong to, and its table.
struct Lookup : IdList {
  Segments segments;
  int64_t rows = 0;            // of the output
  // For the CPU's kernel to write and read: the first id of each row, and num_ids.
  int64_t* starts = nullptr;
  bool drop_negative = false;  // ids below 0 are as if they were not there
  int64_t fill = -1;           // table row for a row without ids; -1: zeros
  Combiner combiner = Combiner::kSum;
  bool in_turn = false;  // rows are added one after the other, to a zero
  // One for each id, of the type that the table is computed in; null: there are none.
  const void* weights = nullptr;
  bool weights_are_double = false;
  // One for each id: zeros take the place of rows where it is false. Null: there is none.
  const bool* mask = nullptr;
  bool drop_weightless = false;  // ids whose weight is not above 0 are not there either
  const char* table = nullptr;
  int64_t row_bytes = 0;
  float max_norm = 0;  // rows are clipped to it; 0: they are not. On CPU only
};

// A column band of one output matrix. A dense pass-through has row numbers for ids.
struct Piece : Lookup {
  char* out = nullptr;    // where row 0 goes
  int64_t out_pitch = 0;  // bytes from one row of the output to the next
  bool finds_starts = false;  // of all pieces of one lookup, the first does

  PICASSO_HOST_DEVICE bool IsDense() const { return id_kind == IdKind::kRowNumber; }
};

// One output: its pieces stand side by side in each of its rows.
struct Matrix {
  const Piece* pieces;
  int64_t num_pieces;
  int64_t rows;
};

template <typename Int>
PICASSO_HOST_DEVICE inline int64_t SegmentAs(const Segments& segments, int64_t j) {
  const Int* row = static_cast<const Int*>(segments.data) + j * segments.pitch;
  if (segments.columns == 1 && segments.strides[0] == 1) return row[0];
  uint64_t segment = 0;  // bad indices may overflow
  for (int c = 0; c < segments.columns; ++c) {
    segment += static_cast<uint64_t>(static_cast<int64_t>(row[c])) *
               static_cast<uint64_t>(segments.strides[c]);
  }
  return static_cast<int64_t>(segment);
}

// Row of id `j`, or entry `j` of the row splits.
PICASSO_HOST_DEVICE inline int64_t SegmentAt(const Segments& segments, int64_t j) {
  return segments.is_int64 ? SegmentAs<int64_t>(segments, j) : SegmentAs<int32_t>(segments, j);
}

PICASSO_HOST_DEVICE inline double WeightAt(const Lookup& lookup, int64_t j) {
  if (lookup.weights_are_double) return static_cast<const double*>(lookup.weights)[j];
  return static_cast<const float*>(lookup.weights)[j];
}

// Whether id `j` is as if it was not there.
PICASSO_HOST_DEVICE inline bool IsLeftOut(const Lookup& lookup, int64_t j) {
  if (lookup.drop_negative && IdAt(lookup, j) < 0) return true;
  return lookup.drop_weightless && !(WeightAt(lookup, j) > 0);  // NaN is left out too
}

// ---- The arithmetic --------------------------------------------------------------

constexpr int kGroup = 8;
constexpr int kMaxFirstGroup = 9;

// Rows in the first group of `num` rows; all further groups have kGroup.
PICASSO_HOST_DEVICE inline int FirstGroup(int64_t num) {
  const int rest = static_cast<int>(num % kGroup);
  return num == 1 || rest > 1 ? rest : rest + kGroup;
}

// What a sum is multiplied by after the first group and divided by at the end.
template <typename C>
struct Scaling {
  C factor;
  C divisor;
};

template <typename C>
PICASSO_HOST_DEVICE inline Scaling<C> ScalingOf(Combiner combiner, int64_t num) {
  C size(1);
  if (combiner == Combiner::kMean) size = static_cast<C>(num);
  if (combiner == Combiner::kSqrtN) size = static_cast<C>(sqrt(static_cast<double>(num)));
  if (num > kMaxFirstGroup) return {C(1), size};
  return {C(1) / size, C(1)};
}

// Sum over a group of rows in column `k`, from left to right.
template <typename T, size_t... kFurther>
PICASSO_HOST_DEVICE PICASSO_INLINE Compute<T> SumOf(const T* const* rows, int64_t k,
                                                    std::index_sequence<kFurther...>) {
  Compute<T> sum = Value<T>::Load(rows[0][k]);
  ((sum = sum + Value<T>::Load(rows[kFurther + 1][k])), ...);
  return sum;
}

template <int kRows, typename T>
PICASSO_HOST_DEVICE PICASSO_INLINE Compute<T> SumOf(const T* const* rows, int64_t k) {
  return SumOf<T>(rows, k, std::make_index_sequence<kRows - 1>());
}

}  // namespace pooled_lookup
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_POOLED_LOOKUP_H_
