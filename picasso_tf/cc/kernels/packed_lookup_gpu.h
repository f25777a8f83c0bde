// GPU side of the packed lookup: one launch fills all pieces of all outputs.
//
// The bytes of every piece are cut into tiles, and each block of the grid fills
// one. Prefix sums over the tiles tell a block which piece is its own, so that
// the grid has no empty blocks however uneven the pieces are. Pieces and sums
// travel to the device as one buffer, the plan. An id that is out of range gives
// a row of zeros, as with TensorFlow's own gather on GPU.
//
// Everything but the launch also compiles for the host, where it is tested.

#ifndef PICASSO_TF_CC_KERNELS_PACKED_LOOKUP_GPU_H_
#define PICASSO_TF_CC_KERNELS_PACKED_LOOKUP_GPU_H_

#include "picasso_tf/cc/kernels/gpu_chunk.h"
#include "picasso_tf/cc/kernels/packed_lookup.h"

namespace picasso {
namespace packed_lookup {

constexpr int kGpuThreads = 256;
constexpr int64_t kTileBytes = 16 << 10;
constexpr int kGpuUnroll = 4;  // rows that each thread has on their way at once

// ---- The plan: num_pieces Pieces, then num_pieces + 1 first tiles ----

inline size_t PlanBytes(int64_t num_pieces) {
  return num_pieces * sizeof(Piece) + (num_pieces + 1) * sizeof(int64_t);
}

PICASSO_HOST_DEVICE inline const int64_t* FirstTiles(const void* plan, int64_t num_pieces) {
  return reinterpret_cast<const int64_t*>(static_cast<const Piece*>(plan) + num_pieces);
}

// Writes the plan to `plan`, host memory of PlanBytes. Returns the number of
// tiles, or -1 when a row has 2^31 bytes or more: FillTile counts in 32 bits.
inline int64_t WritePlan(const Piece* pieces, int64_t num_pieces, void* plan) {
  Piece* to = static_cast<Piece*>(plan);
  int64_t* first_tile = const_cast<int64_t*>(FirstTiles(plan, num_pieces));
  int64_t tiles = 0;
  for (int64_t i = 0; i < num_pieces; ++i) {
    const Piece& piece = pieces[i];
    if (piece.ids_per_row * std::max<int64_t>(piece.row_bytes, 1) > INT32_MAX) return -1;
    to[i] = piece;
    first_tile[i] = tiles;
    tiles += (piece.num_ids * piece.row_bytes + kTileBytes - 1) / kTileBytes;
  }
  first_tile[num_pieces] = tiles;
  return tiles;
}

// ---- One tile ----

template <int kBytes>
PICASSO_HOST_DEVICE void FillTileBy(const Piece& piece, int64_t tile, int thread, int threads) {
  using Unit = Chunk<kBytes>;
  const uint32_t row_units = piece.row_bytes / kBytes;
  const uint32_t ids_per_row = piece.ids_per_row;
  const int64_t begin = tile * (kTileBytes / kBytes);
  const int64_t left = piece.num_ids * row_units - begin;
  const uint32_t units = left < kTileBytes / kBytes ? left : kTileBytes / kBytes;
  // Long divisions once for the tile; those of each unit fit 32 bits.
  const int64_t first_id = begin / row_units;
  const uint32_t first_unit = begin % row_units;
  const int64_t first_row = first_id / ids_per_row;
  const uint32_t first_place = first_id % ids_per_row;

  for (uint32_t base = thread; base < units; base += kGpuUnroll * threads) {
    Unit value[kGpuUnroll];
    char* to[kGpuUnroll];
    PICASSO_UNROLL
    for (int u = 0; u < kGpuUnroll; ++u) {
      const uint32_t at = base + u * threads;
      to[u] = nullptr;
      if (at >= units) continue;
      const uint32_t id_step = (first_unit + at) / row_units;
      const int64_t offset = int64_t{kBytes} * ((first_unit + at) % row_units);
      const uint32_t place = first_place + id_step;
      to[u] = piece.out + (first_row + place / ids_per_row) * piece.out_pitch +
              place % ids_per_row * piece.row_bytes + offset;
      const int64_t id = IdAt(piece, first_id + id_step);
      value[u] = InRange(piece, id)
                     ? *reinterpret_cast<const Unit*>(piece.table + id * piece.row_bytes + offset)
                     : Unit{};
    }
    PICASSO_UNROLL
    for (int u = 0; u < kGpuUnroll; ++u) {
      if (to[u] != nullptr) *reinterpret_cast<Unit*>(to[u]) = value[u];
    }
  }
}

// The part of tile `tile` that falls to `thread` of `threads`. All dtypes of the
// op have 2 bytes or more.
PICASSO_HOST_DEVICE inline void FillTile(const Piece& piece, int64_t tile, int thread,
                                         int threads) {
  const uintptr_t mixed = reinterpret_cast<uintptr_t>(piece.table) |
                          reinterpret_cast<uintptr_t>(piece.out) | piece.row_bytes |
                          piece.out_pitch;
  if (mixed % 16 == 0) return FillTileBy<16>(piece, tile, thread, threads);
  if (mixed % 8 == 0) return FillTileBy<8>(piece, tile, thread, threads);
  if (mixed % 4 == 0) return FillTileBy<4>(piece, tile, thread, threads);
  return FillTileBy<2>(piece, tile, thread, threads);
}

// ---- The launch (packed_lookup_gpu.cu.cc) ----

// Copies the plan from host to device and fills all tiles, both on `stream`, a
// cudaStream_t. Returns nullptr, or what CUDA has to say. `host_plan` is pageable
// memory and free for reuse on return: CUDA has taken its copy by then.
const char* LaunchPackedLookup(const void* host_plan, void* device_plan, int64_t num_pieces,
                               int64_t num_tiles, void* stream);

}  // namespace packed_lookup
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_PACKED_LOOKUP_GPU_H_
