#include "picasso_tf/cc/kernels/pooled_lookup_gpu.h"

#include <cuda_runtime.h>

namespace picasso {
namespace pooled_lookup {
namespace {

// The piece that this block's tile is part of. All threads look at once: a binary search
// would wait for memory at each step.
__device__ int64_t PieceOfBlock(const int64_t* first_tiles, int64_t num_pieces) {
  __shared__ int64_t mine;
  const int64_t tile = blockIdx.x;
  for (int64_t i = threadIdx.x; i < num_pieces; i += kGpuThreads) {
    if (first_tiles[i] <= tile && tile < first_tiles[i + 1]) mine = i;
  }
  __syncthreads();
  return mine;
}

__global__ void __launch_bounds__(kGpuThreads) FindStarts(const GpuWork work) {
  const int64_t mine = PieceOfBlock(work.first_start_tiles, work.num_pieces);
  const int64_t tile = blockIdx.x - work.first_start_tiles[mine];
  FindStart(work.pieces + mine, tile * kGpuThreads + threadIdx.x);
}

__global__ void __launch_bounds__(kSortThreads) SortAllIds(const GpuWork work) {
  const GpuPiece& piece = work.pieces[blockIdx.x];
  if (!piece.is_disordered) return;
  __shared__ int64_t sums[kSortThreads];
  for (int phase = 0; phase < static_cast<int>(SortPhase::kEnd); ++phase) {
    SortIds(piece, static_cast<SortPhase>(phase), threadIdx.x, sums);
    __syncthreads();
  }
}

template <typename T>
__global__ void __launch_bounds__(kGpuThreads) FillTiles(const GpuWork work) {
  const int64_t mine = PieceOfBlock(work.first_fill_tiles, work.num_pieces);
  FillTile<T>(work.pieces[mine], blockIdx.x - work.first_fill_tiles[mine], threadIdx.x);
}

template <typename T>
cudaError_t Launch(const GpuWork& work, const std::vector<int64_t>& plan, cudaStream_t stream) {
  if (work.num_fill_tiles == 0) return cudaSuccess;
  cudaError_t error = cudaMemcpyAsync(work.pieces, plan.data(), plan.size() * sizeof(plan[0]),
                                      cudaMemcpyHostToDevice, stream);
  if (error != cudaSuccess) return error;
  if (work.num_start_tiles > 0) {
    FindStarts<<<work.num_start_tiles, kGpuThreads, 0, stream>>>(work);
    SortAllIds<<<work.num_pieces, kSortThreads, 0, stream>>>(work);
  }
  FillTiles<T><<<work.num_fill_tiles, kGpuThreads, 0, stream>>>(work);
  return cudaGetLastError();
}

}  // namespace

template <typename T>
const char* LaunchPooledLookup(const GpuWork& work, const std::vector<int64_t>& plan,
                               void* stream) {
  const cudaError_t error = Launch<T>(work, plan, static_cast<cudaStream_t>(stream));
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

template const char* LaunchPooledLookup<Half>(const GpuWork&, const std::vector<int64_t>&, void*);
template const char* LaunchPooledLookup<Bfloat16>(const GpuWork&, const std::vector<int64_t>&,
                                                  void*);
template const char* LaunchPooledLookup<float>(const GpuWork&, const std::vector<int64_t>&, void*);
template const char* LaunchPooledLookup<double>(const GpuWork&, const std::vector<int64_t>&, void*);

}  // namespace pooled_lookup
}  // namespace picasso
