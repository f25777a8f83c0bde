// Packed lookup: gathers rows of many tables into the pieces of a few output
// matrices. Free of TensorFlow types; the CPU op, the CUDA kernel and the
// stand-alone tests share what is here.
//
// The unit of work is a Piece: a column band of one output matrix, filled with
// table rows that ids select. A dense pass-through is a piece whose ids are the
// row numbers themselves, so the loops below know only one kind.

#ifndef PICASSO_TF_CC_KERNELS_PACKED_LOOKUP_H_
#define PICASSO_TF_CC_KERNELS_PACKED_LOOKUP_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "picasso_tf/cc/kernels/ids.h"

namespace picasso {
namespace packed_lookup {

using picasso::IdKind;

struct Piece : IdList {
  const char* table = nullptr;
  int64_t row_bytes = 0;
  float max_norm = 0;  // rows are clipped to it; 0: they are not. On CPU only
  bool is_double = false;

  char* out = nullptr;      // where id 0 goes
  int64_t ids_per_row = 1;  // ids that share one row of the output matrix
  int64_t out_pitch = 0;    // bytes from one row of the output to the next
};

// One output: its pieces stand side by side in each of its rows.
struct Matrix {
  const Piece* pieces;
  int64_t num_pieces;
  int64_t rows;
};

}  // namespace packed_lookup
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_PACKED_LOOKUP_H_
