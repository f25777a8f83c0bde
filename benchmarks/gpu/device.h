// What the harnesses of the GPU kernels share: CUDA's errors, device memory, time.

#ifndef PICASSO_BENCHMARKS_GPU_DEVICE_H_
#define PICASSO_BENCHMARKS_GPU_DEVICE_H_

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace device {

inline void Check(cudaError_t error, int line) {
  if (error == cudaSuccess) return;
  std::printf("line %d: CUDA reports: %s\n", line, cudaGetErrorString(error));
  std::exit(2);
}
#define CUDA(call) device::Check(call, __LINE__)

// Freed at the end of its scope.
class DeviceMemory {
 public:
  explicit DeviceMemory(size_t bytes) { CUDA(cudaMalloc(&data_, std::max<size_t>(bytes, 1))); }
  ~DeviceMemory() { cudaFree(data_); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  char* data() const { return static_cast<char*>(data_); }

 private:
  void* data_ = nullptr;
};

// Median milliseconds of one call of `run`, from when it is issued to an idle device to when it
// is done: what a step waits for.
template <typename Run>
double Milliseconds(const Run& run) {
  constexpr int kWarmUp = 10, kTimed = 40;
  std::vector<double> times;
  for (int i = 0; i < kWarmUp + kTimed; ++i) {
    CUDA(cudaDeviceSynchronize());
    const auto begin = std::chrono::steady_clock::now();
    run();
    CUDA(cudaDeviceSynchronize());
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
    if (i >= kWarmUp) times.push_back(time.count());
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

}  // namespace device

#endif  // PICASSO_BENCHMARKS_GPU_DEVICE_H_
