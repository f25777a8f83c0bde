// The device memory of one packed pooled lookup on a GPU: the plan, which is written on
// the host and travels as one buffer, and behind it where the rows begin among the ids.

#ifndef PICASSO_TF_CC_KERNELS_POOLED_LOOKUP_GPU_PLAN_H_
#define PICASSO_TF_CC_KERNELS_POOLED_LOOKUP_GPU_PLAN_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "picasso_tf/cc/kernels/gpu_chunk.h"
#include "picasso_tf/cc/kernels/pooled_lookup.h"

namespace picasso {
namespace pooled_lookup {

constexpr int kGpuThreads = 256;

// What a thread fills has 16 bytes at most in the type in which it is added up: with more a
// thread would run out of registers.
template <typename T>
constexpr int kMaxChunkBytes = 16 * sizeof(T) / sizeof(Compute<T>);

struct GpuPiece : Piece {
  int64_t* starts = nullptr;  // rows + 1 places; null: row splits or dense
  // Where segments decrease, `starts` are places in this list of the ids' places.
  int32_t* order = nullptr;
  int32_t is_disordered = 0;  // set on the device
  int32_t chunk_bytes = 0;    // of one row: what a thread fills

  int64_t ChunksPerRow() const { return row_bytes / chunk_bytes; }
  bool HasStarts() const { return !IsDense() && !segments.are_splits; }
};

// Pointers into device memory, passed to the kernels. A tile is what falls to the threads
// of one block; tiles are numbered through, over all pieces.
struct GpuWork {
  GpuPiece* pieces = nullptr;
  const int64_t* first_fill_tiles = nullptr;   // of pieces, and the number of tiles
  const int64_t* first_start_tiles = nullptr;  // the same for the search of starts
  int64_t num_pieces = 0;
  int64_t num_fill_tiles = 0;
  int64_t num_start_tiles = 0;
};

// Lays out the work of one call.
template <typename T>
class GpuPlan {
 public:
  // `pieces`, in host memory, outlive this; what they point to is in device memory.
  GpuPlan(const Piece* pieces, int64_t num_pieces) : from_(pieces) {
    work_.num_pieces = num_pieces;
    for (int64_t i = 0; i < num_pieces; ++i) {
      const GpuPiece piece = PieceAt(i);
      fits_ &= piece.row_bytes <= INT32_MAX && piece.num_ids <= INT32_MAX;  // counted in 32 bits
      work_.num_fill_tiles += FillTiles(piece);
      work_.num_start_tiles += StartTiles(piece);
      num_starts_ += piece.HasStarts() ? piece.rows + 1 : 0;
      num_ordered_ += piece.HasStarts() ? piece.num_ids : 0;
    }
    fits_ &= work_.num_fill_tiles <= INT32_MAX && work_.num_start_tiles <= INT32_MAX;
  }

  // False: a row has 2 GiB or more, a lookup has 2^31 ids or more, or there are more tiles
  // than a grid has blocks.
  bool Fits() const { return fits_; }

  // Bytes of device memory.
  int64_t Bytes() const {
    return PlanBytes() + num_starts_ * sizeof(int64_t) + num_ordered_ * sizeof(int32_t);
  }

  // The work in device memory at `base`, and the plan to be copied there.
  GpuWork Write(void* base, std::vector<int64_t>* plan) const {
    GpuWork work = work_;
    const int64_t n = work.num_pieces;
    work.pieces = static_cast<GpuPiece*>(base);
    work.first_fill_tiles = reinterpret_cast<int64_t*>(work.pieces + n);
    work.first_start_tiles = work.first_fill_tiles + n + 1;
    int64_t* starts = const_cast<int64_t*>(work.first_start_tiles + n + 1);
    int32_t* order = reinterpret_cast<int32_t*>(starts + num_starts_);

    plan->assign(PlanBytes() / sizeof(int64_t), 0);
    GpuPiece* pieces = reinterpret_cast<GpuPiece*>(plan->data());
    int64_t* fill_tile = reinterpret_cast<int64_t*>(pieces + n);
    int64_t* start_tile = fill_tile + n + 1;
    for (int64_t i = 0; i < n; ++i) {
      GpuPiece piece = PieceAt(i);
      fill_tile[i + 1] = fill_tile[i] + FillTiles(piece);
      start_tile[i + 1] = start_tile[i] + StartTiles(piece);
      if (piece.HasStarts()) {
        piece.starts = starts;
        starts += piece.rows + 1;
        piece.order = order;
        order += piece.num_ids;
      }
      pieces[i] = piece;
    }
    return work;
  }

 private:
  static int64_t Tiles(int64_t threads) { return (threads + kGpuThreads - 1) / kGpuThreads; }

  static int64_t FillTiles(const GpuPiece& piece) {
    return Tiles(piece.rows * piece.ChunksPerRow());
  }

  // A thread for each start and for each id.
  static int64_t StartTiles(const GpuPiece& piece) {
    return piece.HasStarts() ? Tiles(std::max(piece.rows + 1, piece.num_ids)) : 0;
  }

  GpuPiece PieceAt(int64_t i) const {
    GpuPiece piece;
    static_cast<Piece&>(piece) = from_[i];
    piece.chunk_bytes = ChunkBytes(
        reinterpret_cast<uintptr_t>(piece.table) | reinterpret_cast<uintptr_t>(piece.out) |
        piece.row_bytes | piece.out_pitch | kMaxChunkBytes<T>);
    return piece;
  }

  int64_t PlanBytes() const {
    return work_.num_pieces * sizeof(GpuPiece) + 2 * (work_.num_pieces + 1) * sizeof(int64_t);
  }

  const Piece* from_;
  GpuWork work_;
  int64_t num_starts_ = 0, num_ordered_ = 0;
  bool fits_ = true;
};

}  // namespace pooled_lookup
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_POOLED_LOOKUP_GPU_PLAN_H_
