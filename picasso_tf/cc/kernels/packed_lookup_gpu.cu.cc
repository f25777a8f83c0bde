#include "picasso_tf/cc/kernels/packed_lookup_gpu.h"

#include <cuda_runtime.h>

namespace picasso {
namespace packed_lookup {
namespace {

__global__ void __launch_bounds__(kGpuThreads)
    FillTiles(const void* __restrict__ plan, int64_t num_pieces) {
  const int64_t* first_tile = FirstTiles(plan, num_pieces);
  const int64_t tile = blockIdx.x;
  // All threads look at once: a binary search would wait for memory at each step.
  __shared__ int64_t mine;
  for (int64_t i = threadIdx.x; i < num_pieces; i += kGpuThreads) {
    if (first_tile[i] <= tile && tile < first_tile[i + 1]) mine = i;
  }
  __syncthreads();
  const Piece piece = static_cast<const Piece*>(plan)[mine];
  FillTile(piece, tile - first_tile[mine], threadIdx.x, kGpuThreads);
}

}  // namespace

const char* LaunchPackedLookup(const void* host_plan, void* device_plan, int64_t num_pieces,
                               int64_t num_tiles, void* stream) {
  if (num_tiles == 0) return nullptr;
  const auto cuda_stream = static_cast<cudaStream_t>(stream);
  cudaError_t error = cudaMemcpyAsync(device_plan, host_plan, PlanBytes(num_pieces),
                                      cudaMemcpyHostToDevice, cuda_stream);
  if (error == cudaSuccess) {
    FillTiles<<<num_tiles, kGpuThreads, 0, cuda_stream>>>(device_plan, num_pieces);
    error = cudaGetLastError();
  }
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

}  // namespace packed_lookup
}  // namespace picasso
