// Packed update: runs one update program over the rows of many tables. Free of
// TensorFlow types; the CPU op, the CUDA kernel and the stand-alone tests share
// what is here.

#ifndef PICASSO_TF_CC_KERNELS_PACKED_UPDATE_H_
#define PICASSO_TF_CC_KERNELS_PACKED_UPDATE_H_

#include <cstdint>

#include "picasso_tf/cc/kernels/ids.h"

namespace picasso {
namespace packed_update {

// Where ids were pooled: the row of the gradient that each of them belongs to.
struct Pool {
  // int32 or int64, one for each id; nullptr: each row is of `length` ids that follow
  // each other.
  const void* rows = nullptr;
  int64_t length = 1;
  bool rows_are_int64 = false;
  int64_t pitch = 1;  // from one to the next
  int64_t num_rows = 0;            // of the gradient
  const double* scales = nullptr;  // of each row; nullptr: 1
  const void* weights = nullptr;   // of each id, float or double; then there are no scales
  bool weights_are_double = false;
  const bool* mask = nullptr;      // of each id: those for which it is false have no gradient
  const void* zeros = nullptr;     // a row of the table, for ids without a gradient
  // Ids by rows, where they do not come so: id number j is the order[j]-th. Else nullptr.
  const int64_t* order = nullptr;
  bool in_order = false;  // the rows of ids that are not left out never decrease
  const int64_t* counts = nullptr;  // of each row, its ids that are not left out

  PICASSO_HOST_DEVICE int64_t RowOf(int64_t id) const {
    if (rows == nullptr) return id / length;
    if (order != nullptr) id = order[id];
    if (rows_are_int64) return static_cast<const int64_t*>(rows)[id * pitch];
    return static_cast<const int32_t*>(rows)[id * pitch];
  }

  // Whether id number `id` of a segment has zeros for a gradient: it fills an empty row,
  // or is hidden.
  PICASSO_HOST_DEVICE bool IsZero(int64_t id, int64_t num_ids) const {
    return id >= num_ids || (mask != nullptr && !mask[id]);
  }

  bool IsScaled() const { return scales != nullptr || weights != nullptr; }

  // What id number `id` multiplies its gradient row by.
  double ScaleOf(int64_t id) const {
    if (scales != nullptr) return scales[RowOf(id)];
    if (weights == nullptr) return 1.0;
    if (order != nullptr) id = order[id];
    if (weights_are_double) return static_cast<const double*>(weights)[id];
    return static_cast<const float*>(weights)[id];
  }
};

// The gradient rows of a segment: `ids_per_row` of them side by side, from column
// `first` on, in each row of a matrix that is `pitch` elements wide.
struct GradientRows {
  const void* data = nullptr;
  int64_t pitch = 0;
  int64_t first = 0;
  int64_t ids_per_row = 1;
  const Pool* pool = nullptr;  // on the host only; ids_per_row is 1 then
};

// Ids of one table, and for each of them a row of every row gradient.
//
// With `fill`, negative ids are left out, and each row of the gradient that no id is
// left for gets an id of its own: row `fill` of the table, with a gradient of zero.
// Those are numbered after the others, which are numbered by rows.
struct Segment : IdList {
  int64_t first_id = 0;                    // ids of the table in segments before this one
  const GradientRows* gradients = nullptr;  // one for each row gradient
  int64_t fill = -1;                        // -1: no such
  int64_t num_fills = 0;                    // at most

  int64_t NumNumbers() const { return num_ids + num_fills; }
};

struct Table {
  int64_t rows = 0;
  int64_t row = 0;                                // elements of each
  void* const* states = nullptr;                  // rows * row elements each
  const void* const* table_gradients = nullptr;   // likewise
  const void* const* parameters = nullptr;        // one element each
  const Segment* segments = nullptr;
  int64_t num_segments = 0;
  int64_t num_ids = 0;  // of all segments, those that fill rows included
};

// Id number `j` of a segment.
inline int64_t IdOf(const Segment& segment, int64_t j) {
  const Pool* pool = segment.fill >= 0 ? segment.gradients[0].pool : nullptr;
  return IdAt(segment, pool != nullptr && pool->order != nullptr ? pool->order[j] : j);
}

// The segment that holds id number `id` of the table.
PICASSO_HOST_DEVICE inline const Segment& SegmentOf(const Table& table, int64_t id) {
  int64_t low = 0;
  int64_t high = table.num_segments;
  while (high - low > 1) {
    const int64_t middle = (low + high) / 2;
    (table.segments[middle].first_id <= id ? low : high) = middle;
  }
  return table.segments[low];
}

// Where the gradient row of id number `id` of the table begins.
template <typename T>
PICASSO_HOST_DEVICE inline const T* GradientRow(const Table& table, int gradient, int64_t id) {
  const Segment& segment = SegmentOf(table, id);
  const GradientRows& rows = segment.gradients[gradient];
  int64_t j = id - segment.first_id;
  if (rows.pool != nullptr) {
    if (rows.pool->IsZero(j, segment.num_ids)) return static_cast<const T*>(rows.pool->zeros);
    j = rows.pool->RowOf(j);
  }
  const T* data = static_cast<const T*>(rows.data) + rows.first;
  if (rows.ids_per_row == 1) return data + j * rows.pitch;
  return data + j / rows.ids_per_row * rows.pitch + j % rows.ids_per_row * table.row;
}

// What id number `id` of the table multiplies its gradient row by.
inline double GradientScale(const Table& table, int gradient, int64_t id) {
  const Segment& segment = SegmentOf(table, id);
  const Pool* pool = segment.gradients[gradient].pool;
  const int64_t j = id - segment.first_id;
  return pool == nullptr || j >= segment.num_ids ? 1.0 : pool->ScaleOf(j);
}

}  // namespace packed_update
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_PACKED_UPDATE_H_
