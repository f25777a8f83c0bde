// The rows of an indicator column: how often each id is among the ids of an example.

#ifndef PICASSO_TF_CC_KERNELS_INDICATOR_LOOPS_H_
#define PICASSO_TF_CC_KERNELS_INDICATOR_LOOPS_H_

#include <algorithm>
#include <cstdint>

namespace picasso {
namespace indicators {

// The ids of a feature, as a SparseTensor [rows, columns] holds them.
struct Feature {
  const int64_t* indices;  // [size, 2]
  const int64_t* ids;
  int64_t id_stride;  // 0: one id for all
  int64_t size, rows, columns, depth;
};

// The first index that is out of bounds, or does not follow its predecessor in the order of rows
// and columns; -1: all are as TensorFlow's SparseToDense wants them.
inline int64_t FindBadIndex(const Feature& feature) {
  int64_t last_row = 0, last_column = -1;
  for (int64_t i = 0; i < feature.size; ++i) {
    const int64_t row = feature.indices[2 * i], column = feature.indices[2 * i + 1];
    if (row < 0 || row >= feature.rows || column < 0 || column >= feature.columns) return i;
    if (row < last_row || (row == last_row && column <= last_column)) return i;
    last_row = row;
    last_column = column;
  }
  return -1;
}

// The first index of a row, or of one that follows. Indices are in order.
inline int64_t FindRow(const Feature& feature, int64_t row) {
  int64_t begin = 0, end = feature.size;
  while (begin < end) {
    const int64_t middle = begin + (end - begin) / 2;
    if (feature.indices[2 * middle] < row) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin;
}

// Writes rows [first, last) of the matrix [rows, depth]. Ids that it has no column for count for
// nothing. Sums of ones are exact, in whatever order.
inline void WriteCounts(const Feature& feature, int64_t first, int64_t last, float* counts) {
  std::fill(counts + first * feature.depth, counts + last * feature.depth, 0.0f);
  for (int64_t i = FindRow(feature, first); i < feature.size; ++i) {
    const int64_t row = feature.indices[2 * i], id = feature.ids[i * feature.id_stride];
    if (row >= last) return;
    if (id >= 0 && id < feature.depth) counts[row * feature.depth + id] += 1.0f;
  }
}

}  // namespace indicators
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_INDICATOR_LOOPS_H_
