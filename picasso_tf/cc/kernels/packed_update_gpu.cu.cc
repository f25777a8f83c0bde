#include "picasso_tf/cc/kernels/packed_update_gpu.h"

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <cuda_runtime.h>

namespace picasso {
namespace packed_update {
namespace {

constexpr int kIdThreads = 256;

__device__ int64_t ThreadNumber() {
  return int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
}

template <typename T>
__global__ void __launch_bounds__(kIdThreads) PrepareAll(const __grid_constant__ Work work) {
  Prepare<T>(work, ThreadNumber());
}

__global__ void __launch_bounds__(kIdThreads) MarkHeads(const __grid_constant__ Work work) {
  if (ThreadNumber() < work.num_ids) MarkHead(work, ThreadNumber());
}

template <typename T>
__global__ void __launch_bounds__(kIdThreads) ListRuns(const __grid_constant__ Work work) {
  if (ThreadNumber() < work.num_ids) ListRun<T>(work, ThreadNumber());
}

template <typename T, bool kAllRows>
__global__ void __launch_bounds__(kGpuMaxThreads) Update(const __grid_constant__ Work work) {
  extern __shared__ __align__(kGpuPackBytes) unsigned char memory[];
  PackOf<T>* values = reinterpret_cast<PackOf<T>*>(memory) + threadIdx.x;
  if constexpr (kAllRows) {
    UpdateTile<T>(work, blockIdx.x, threadIdx.x, blockDim.x, values, blockDim.x);
  } else if (ThreadNumber() < work.num_ids * work.lanes_per_row) {
    UpdateRuns<T>(work, ThreadNumber(), values, blockDim.x);
  }
}

int64_t Blocks(int64_t threads, int64_t of) { return (threads + of - 1) / of; }

cudaError_t Sort(void* memory, size_t& bytes, const Work& work, int key_bits,
                 cudaStream_t stream) {
  return cub::DeviceRadixSort::SortPairs(memory, bytes, work.keys, work.sorted_keys,
                                         work.positions, work.sorted_positions,
                                         static_cast<int>(work.num_ids), 0, key_bits, stream);
}

cudaError_t Sum(void* memory, size_t& bytes, const Work& work, cudaStream_t stream) {
  return cub::DeviceScan::InclusiveSum(memory, bytes, work.heads, work.run_numbers,
                                       static_cast<int>(work.num_ids), stream);
}

#define PICASSO_RETURN_IF_ERROR(call)                   \
  do {                                                  \
    const cudaError_t error = (call);                   \
    if (error != cudaSuccess) return error;             \
  } while (false)

template <typename T>
cudaError_t FindRuns(const Work& work, int key_bits, cudaStream_t stream) {
  const int64_t blocks = Blocks(work.num_ids, kIdThreads);
  size_t bytes = work.sort_bytes;
  PICASSO_RETURN_IF_ERROR(Sort(work.sort_memory, bytes, work, key_bits, stream));
  MarkHeads<<<blocks, kIdThreads, 0, stream>>>(work);
  PICASSO_RETURN_IF_ERROR(cudaGetLastError());
  PICASSO_RETURN_IF_ERROR(Sum(work.sort_memory, bytes, work, stream));
  if (work.all_rows) {
    PICASSO_RETURN_IF_ERROR(cudaMemsetAsync(work.run_of_row, 0,
                                            work.num_rows * sizeof(*work.run_of_row), stream));
  }
  ListRuns<T><<<blocks, kIdThreads, 0, stream>>>(work);
  return cudaGetLastError();
}

template <typename T>
cudaError_t Launch(const Work& work, const std::vector<int64_t>& plan, int key_bits,
                   cudaStream_t stream) {
  void* device_plan = const_cast<Table*>(work.tables);  // it begins with them
  PICASSO_RETURN_IF_ERROR(cudaMemcpyAsync(device_plan, plan.data(), plan.size() * sizeof(plan[0]),
                                          cudaMemcpyHostToDevice, stream));
  const int64_t count = std::max(work.num_tables, work.num_ids);
  PrepareAll<T><<<Blocks(count, kIdThreads), kIdThreads, 0, stream>>>(work);
  PICASSO_RETURN_IF_ERROR(cudaGetLastError());
  if (work.num_ids > 0) PICASSO_RETURN_IF_ERROR(FindRuns<T>(work, key_bits, stream));

  const int64_t threads = GpuThreads(work.num_slots);
  const size_t shared = threads * work.num_slots * kGpuPackBytes;
  if (work.all_rows) {
    Update<T, true><<<work.num_tiles, threads, shared, stream>>>(work);
  } else {
    const int64_t blocks = Blocks(work.num_ids * work.lanes_per_row, threads);
    Update<T, false><<<blocks, threads, shared, stream>>>(work);
  }
  return cudaGetLastError();
}

}  // namespace

size_t GpuSortBytes(int64_t num_ids, int key_bits) {
  Work work = {};
  work.num_ids = num_ids;
  size_t sort = 0, sum = 0;
  if (num_ids == 0) return 0;
  Sort(nullptr, sort, work, key_bits, nullptr);
  Sum(nullptr, sum, work, nullptr);
  return std::max(sort, sum);
}

template <typename T>
const char* LaunchPackedUpdate(const Work& work, const std::vector<int64_t>& plan, int key_bits,
                               void* stream) {
  const cudaError_t error =
      Launch<T>(work, plan, key_bits, static_cast<cudaStream_t>(stream));
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

template const char* LaunchPackedUpdate<Half>(const Work&, const std::vector<int64_t>&, int, void*);
template const char* LaunchPackedUpdate<Bfloat16>(const Work&, const std::vector<int64_t>&, int,
                                                  void*);
template const char* LaunchPackedUpdate<float>(const Work&, const std::vector<int64_t>&, int,
                                               void*);
template const char* LaunchPackedUpdate<double>(const Work&, const std::vector<int64_t>&, int,
                                                void*);

}  // namespace packed_update
}  // namespace picasso
