// GPU side of the packed pooled lookup: all pieces of all outputs at once, in three steps
// on one stream.
//
//   1. FindStart: where the rows begin among the ids, by binary search, for segments that
//      are no row splits; and whether segments decrease anywhere.
//   2. SortIds: brings the ids of these into the order of the rows.
//   3. FillTile: each thread combines one chunk, up to 16 bytes' worth of adjacent columns
//      of one row. It goes through the ids of the row in order and adds as the CPU does,
//      so that both give the same bits.
//
// Prefix sums over the tiles of all pieces tell a block which piece is its own, so that
// the grids have no empty blocks however uneven the pieces are.
//
// Nothing waits for the GPU, so nothing that is wrong can be reported. As with stock
// TensorFlow's ops on GPU, an id that is out of range has a row of zeros, which counts; an
// id whose segment is out of range belongs to no row. Segments that decrease are no error:
// the ids are taken row by row. Everything but the launches also compiles for the host,
// where it is tested.

#ifndef PICASSO_TF_CC_KERNELS_POOLED_LOOKUP_GPU_H_
#define PICASSO_TF_CC_KERNELS_POOLED_LOOKUP_GPU_H_

#include <cstdint>
#include <cstring>
#include <vector>

#include "picasso_tf/cc/kernels/pooled_lookup_gpu_plan.h"
#include "picasso_tf/cc/kernels/pooled_lookup_gpu_sort.h"
#include "picasso_tf/cc/kernels/pooled_lookup_gpu_sums.h"

namespace picasso {
namespace pooled_lookup {

// ---- Where the rows begin ----

// The first id of row `row` or a later one; some place where segments decrease.
PICASSO_HOST_DEVICE inline int64_t StartOf(const GpuPiece& piece, int64_t row) {
  int64_t low = 0;
  for (int64_t high = piece.num_ids; low < high;) {
    const int64_t middle = (low + high) / 2;
    if (SegmentAt(piece.segments, middle) < row) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// Thread `i` of max(rows + 1, num_ids).
PICASSO_HOST_DEVICE inline void FindStart(GpuPiece* piece, int64_t i) {
  if (i <= piece->rows) piece->starts[i] = StartOf(*piece, i);
  if (i == 0 || i >= piece->num_ids) return;
  // Threads that write here write the same.
  if (SegmentAt(piece->segments, i - 1) > SegmentAt(piece->segments, i)) piece->is_disordered = 1;
}

// ---- Rows of the output ----

// Fills the columns from `offset` on, in bytes, of one row.
template <typename T, int kBytes>
PICASSO_HOST_DEVICE inline void FillChunk(const GpuPiece& piece, int64_t row, int64_t offset) {
  using Reader = RowReader<T, kBytes>;
  using C = Compute<T>;
  auto* out = reinterpret_cast<Chunk<kBytes>*>(piece.out + row * piece.out_pitch + offset);
  if (piece.IsDense()) {
    *out = Reader(piece, RowIds{}, offset).ChunkOfRow(row);
    return;
  }
  const RowIds ids = IdsOf(piece, row);
  const Reader rows(piece, ids, offset);
  C sums[Reader::kLanes];
  if (ids.num == 0) {
    const bool filled = piece.fill >= 0 && InRange(piece, piece.fill);
    Reader::Load(filled ? rows.ChunkOfRow(piece.fill) : Chunk<kBytes>{}, sums);
  } else if (piece.weights == nullptr) {
    PoolOnGpu<T, kBytes>(rows, piece.combiner, ids.num, sums);
  } else {
    const int64_t width = piece.row_bytes / sizeof(T);
    const bool in_packet = offset < (width - width % kPacket<C>) * static_cast<int64_t>(sizeof(T));
    PoolWeightedOnGpu<T, kBytes>(rows, piece.combiner, static_cast<const C*>(piece.weights),
                                 ids.num, in_packet, sums);
  }
  T stored[Reader::kLanes];
  for (int k = 0; k < Reader::kLanes; ++k) stored[k] = Value<T>::Store(sums[k]);
  memcpy(out, stored, kBytes);
}

template <typename T, int kBytes>
PICASSO_HOST_DEVICE void FillTileBy(const GpuPiece& piece, int64_t tile, int thread) {
  if constexpr (sizeof(T) <= kBytes && kBytes <= kMaxChunkBytes<T>) {
    // Long divisions once for the tile; those of each thread fit 32 bits.
    const int64_t per_row = piece.row_bytes / kBytes;
    const int64_t first = tile * kGpuThreads;
    const uint32_t at = static_cast<uint32_t>(first % per_row) + thread;
    const int64_t row = first / per_row + at / static_cast<uint32_t>(per_row);
    if (row >= piece.rows) return;
    FillChunk<T, kBytes>(piece, row, int64_t{kBytes} * (at % static_cast<uint32_t>(per_row)));
  }
}

// The part of tile `tile` of a piece that falls to `thread` of kGpuThreads.
template <typename T>
PICASSO_HOST_DEVICE void FillTile(const GpuPiece& piece, int64_t tile, int thread) {
  switch (piece.chunk_bytes) {
    case 16:
      return FillTileBy<T, 16>(piece, tile, thread);
    case 8:
      return FillTileBy<T, 8>(piece, tile, thread);
    case 4:
      return FillTileBy<T, 4>(piece, tile, thread);
    default:
      return FillTileBy<T, 2>(piece, tile, thread);
  }
}

// ---- The launches (pooled_lookup_gpu.cu.cc) ----

// Copies the plan from host to device and does the three steps, all on `stream`, a
// cudaStream_t. Returns nullptr, or what CUDA has to say. `plan` is pageable memory and
// free for reuse on return: CUDA has taken its copy by then. For Half, Bfloat16, float and
// double.
template <typename T>
const char* LaunchPooledLookup(const GpuWork& work, const std::vector<int64_t>& plan, void* stream);

}  // namespace pooled_lookup
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_POOLED_LOOKUP_GPU_H_
