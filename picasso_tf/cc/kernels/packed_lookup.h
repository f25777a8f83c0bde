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

#if defined(__CUDACC__)
#define PICASSO_HOST_DEVICE __host__ __device__
#else
#define PICASSO_HOST_DEVICE
#endif

namespace picasso {
namespace packed_lookup {

enum class IdKind : int32_t {
  kRowNumber,  // no ids tensor: id number j is j
  kInt32,
  kInt64,
  kInt64AsInt32,  // truncated to 32 bits first, as Cast does
};

struct Piece {
  const char* table = nullptr;
  int64_t table_rows = 0;
  int64_t row_bytes = 0;

  // Id number j stands at (j / ids_columns) * ids_pitch + ids_first +
  // j % ids_columns: columns of a row-major matrix, or with 1, 1, 0 all of it.
  const void* ids = nullptr;
  IdKind id_kind = IdKind::kRowNumber;
  int64_t num_ids = 0;
  int64_t ids_columns = 1;
  int64_t ids_pitch = 1;
  int64_t ids_first = 0;
  int64_t wrap = 0;  // added to a negative id

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

PICASSO_HOST_DEVICE inline int64_t IdPosition(const Piece& piece, int64_t j) {
  if (piece.ids_columns == 1) return j * piece.ids_pitch + piece.ids_first;
  return j / piece.ids_columns * piece.ids_pitch + piece.ids_first + j % piece.ids_columns;
}

template <IdKind kKind>
PICASSO_HOST_DEVICE inline int64_t LoadId(const Piece& piece, int64_t at) {
  int64_t id = at;
  if constexpr (kKind == IdKind::kInt32) {
    id = static_cast<const int32_t*>(piece.ids)[at];
  } else if constexpr (kKind != IdKind::kRowNumber) {
    id = static_cast<const int64_t*>(piece.ids)[at];
  }
  if constexpr (kKind == IdKind::kInt64AsInt32) {
    id = static_cast<int32_t>(static_cast<uint32_t>(id));
  }
  return id < 0 ? id + piece.wrap : id;
}

// Id number `j` after narrowing and wrapping; it may be out of range.
PICASSO_HOST_DEVICE inline int64_t IdAt(const Piece& piece, int64_t j) {
  const int64_t at = IdPosition(piece, j);
  switch (piece.id_kind) {
    case IdKind::kInt32:
      return LoadId<IdKind::kInt32>(piece, at);
    case IdKind::kInt64:
      return LoadId<IdKind::kInt64>(piece, at);
    case IdKind::kInt64AsInt32:
      return LoadId<IdKind::kInt64AsInt32>(piece, at);
    default:
      return LoadId<IdKind::kRowNumber>(piece, at);
  }
}

PICASSO_HOST_DEVICE inline bool InRange(const Piece& piece, int64_t id) {
  return static_cast<uint64_t>(id) < static_cast<uint64_t>(piece.table_rows);
}

// Number of the first id that is out of range, or -1.
inline int64_t FirstBadId(const Piece& piece) {
  for (int64_t j = 0; j < piece.num_ids; ++j) {
    if (!InRange(piece, IdAt(piece, j))) return j;
  }
  return -1;
}

}  // namespace packed_lookup
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_PACKED_LOOKUP_H_
