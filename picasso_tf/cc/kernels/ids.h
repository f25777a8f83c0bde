// Reading ids as the ops were given them: int32 or int64, all of a tensor or some
// columns of a matrix, truncated and wrapped as the original graph did. Free of
// TensorFlow types; CPU and CUDA code share it.

#ifndef PICASSO_TF_CC_KERNELS_IDS_H_
#define PICASSO_TF_CC_KERNELS_IDS_H_

#include <cstdint>

#include "picasso_tf/cc/kernels/shards.h"

#if defined(__CUDACC__)
#define PICASSO_HOST_DEVICE __host__ __device__
#else
#define PICASSO_HOST_DEVICE
#endif

namespace picasso {

enum class IdKind : int32_t {
  kRowNumber,  // no ids tensor: id number j is j
  kInt32,
  kInt64,
  kInt64AsInt32,  // truncated to 32 bits first, as Cast does
};

// Ids that select rows of one table.
struct IdList {
  int64_t table_rows = 0;
  const Shards* shards = nullptr;  // of the table; null: it is one variable. On CPU only

  // Id number j stands at (j / ids_columns) * ids_pitch + ids_first +
  // j % ids_columns: columns of a row-major matrix, or with 1, 1, 0 all of it.
  const void* ids = nullptr;
  IdKind id_kind = IdKind::kRowNumber;
  int64_t num_ids = 0;
  int64_t ids_columns = 1;
  int64_t ids_pitch = 1;
  int64_t ids_first = 0;
  int64_t wrap = 0;  // added to a negative id
};

PICASSO_HOST_DEVICE inline int64_t IdPosition(const IdList& list, int64_t j) {
  if (list.ids_columns == 1) return j * list.ids_pitch + list.ids_first;
  return j / list.ids_columns * list.ids_pitch + list.ids_first + j % list.ids_columns;
}

template <IdKind kKind>
PICASSO_HOST_DEVICE inline int64_t LoadId(const IdList& list, int64_t at) {
  int64_t id = at;
  if constexpr (kKind == IdKind::kInt32) {
    id = static_cast<const int32_t*>(list.ids)[at];
  } else if constexpr (kKind != IdKind::kRowNumber) {
    id = static_cast<const int64_t*>(list.ids)[at];
  }
  if constexpr (kKind == IdKind::kInt64AsInt32) {
    id = static_cast<int32_t>(static_cast<uint32_t>(id));
  }
  return id < 0 ? id + list.wrap : id;
}

// Id number `j` after narrowing and wrapping; it may be out of range.
PICASSO_HOST_DEVICE inline int64_t IdAt(const IdList& list, int64_t j) {
  const int64_t at = IdPosition(list, j);
  switch (list.id_kind) {
    case IdKind::kInt32:
      return LoadId<IdKind::kInt32>(list, at);
    case IdKind::kInt64:
      return LoadId<IdKind::kInt64>(list, at);
    case IdKind::kInt64AsInt32:
      return LoadId<IdKind::kInt64AsInt32>(list, at);
    default:
      return LoadId<IdKind::kRowNumber>(list, at);
  }
}

PICASSO_HOST_DEVICE inline bool InRange(const IdList& list, int64_t id) {
  return static_cast<uint64_t>(id) < static_cast<uint64_t>(list.table_rows);
}

// Whether there is a row for an id, also where the table has shards.
inline bool HasRow(const IdList& list, int64_t id) {
  if (list.shards == nullptr) return InRange(list, id);
  const char* ignored;
  return FindRow(*list.shards, id, /*row_bytes=*/0, &ignored);
}

// Number of the first id that is out of range, or -1. With `drop_negative` a
// negative id stands for no row and is never out of range.
inline int64_t FirstBadId(const IdList& list, bool drop_negative = false) {
  for (int64_t j = 0; j < list.num_ids; ++j) {
    const int64_t id = IdAt(list, j);
    if (!HasRow(list, id) && !(drop_negative && id < 0)) return j;
  }
  return -1;
}

}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_IDS_H_
