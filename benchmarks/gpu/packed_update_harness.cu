// The GPU kernels of the packed update without TensorFlow: are they right, and how fast? From the
// project's root:
//
//   make gpu-harness
//   build/packed_update_harness                                          (under five minutes)
//
// First random programs and tables, with duplicates, hot rows and bad ids, in all four dtypes, are
// compared bit by bit with a loop on the host that follows the definition, and each must give the
// same bits when it is run again. Then three rules are timed, uniform ids and ids of which half
// name one row. GB/s counts the bytes that must be moved: rows that are read and written, ids and
// their gradients; a device-to-device copy is the bound. Exit code 0: all cases right. Figures are
// medians of one run; compare ratios, not times.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "benchmarks/gpu/device.h"
#include "picasso_tf/cc/kernels/packed_update_gpu.h"
#include "picasso_tf/cc/kernels/packed_update_gpu_cases.h"

namespace {

using namespace picasso::packed_update;
using device::DeviceMemory;
using device::Milliseconds;
using picasso::packed_update::cases::Case;
using picasso::packed_update::cases::Random;
using picasso::packed_update::cases::Rule;

// One call as the op makes it, but for the allocation of memory.
template <typename T>
class Update {
 public:
  Update(const GpuCode& code, const std::vector<Table>& tables, bool all_rows)
      : layout_(code, tables, all_rows),
        sort_bytes_(GpuSortBytes(layout_.num_ids(), layout_.KeyBits())),
        memory_(layout_.Bytes(sort_bytes_)) {
    CUDA(cudaMemset(memory_.data(), 0xa5, layout_.Bytes(sort_bytes_)));
  }

  void Run() {
    if (layout_.HasNothingToDo()) return;
    std::vector<int64_t> plan;
    const Work work = layout_.Write(memory_.data(), sort_bytes_, &plan);
    const char* error = LaunchPackedUpdate<T>(work, plan, layout_.KeyBits(), /*stream=*/nullptr);
    if (error == nullptr) return;
    std::printf("CUDA reports: %s\n", error);
    std::exit(2);
  }

 private:
  WorkLayout<T> layout_;
  const size_t sort_bytes_;
  DeviceMemory memory_;
};

// ---- Is it right? ----

template <typename T>
std::vector<char> RunOnDevice(Case<T>& one, const GpuCode& code, bool all_rows) {
  const size_t bytes = one.memory().size();
  DeviceMemory device(bytes);
  CUDA(cudaMemcpy(device.data(), one.memory().data(), bytes, cudaMemcpyHostToDevice));
  const std::vector<Table> tables = one.Tables(device.data());
  Update<T>(code, tables, all_rows).Run();
  std::vector<char> found(bytes);
  CUDA(cudaMemcpy(found.data(), device.data(), bytes, cudaMemcpyDeviceToHost));
  return found;
}

template <typename T>
bool IsRight(Case<T>& one) {
  const GpuCode code(one.program());
  for (bool all_rows : {false, true}) {
    const std::vector<char> found = RunOnDevice(one, code, all_rows);
    if (!one.IsRight(found, one.Wanted(all_rows))) return false;
    if (found != RunOnDevice(one, code, all_rows)) return false;
  }
  return true;
}

template <typename T>
bool CheckCases(const char* dtype) {
  Random random(7);
  int right = 0, count = 0;
  for (const Rule& rule : {cases::kSgd, cases::kAdagrad, cases::kAdam}) {
    for (int i = 0; i < 10; ++i, ++count) {
      Case<T> one = cases::RandomCase<T>(random, rule, 300);
      right += IsRight(one);
    }
  }
  for (int i = 0; i < 100; ++i, ++count) {
    const Rule rule = cases::RandomRule(random, cases::Draw(random, 1, 25), /*pow=*/false);
    Case<T> one = cases::RandomCase<T>(random, rule, 40);
    right += IsRight(one);
  }
  std::printf("%-8s %d of %d cases right\n", dtype, right, count);
  return right == count;
}

// ---- How fast? ----

double CopyGigabytesPerSecond() {
  const size_t bytes = size_t{1} << 30;
  DeviceMemory from(bytes), to(bytes);
  const double ms = Milliseconds(
      [&] { CUDA(cudaMemcpyAsync(to.data(), from.data(), bytes, cudaMemcpyDeviceToDevice)); });
  return 2 * bytes / ms * 1e-6;
}

__global__ void Fill(float* data, int64_t count) {
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < count;
       i += int64_t{gridDim.x} * blockDim.x) {
    data[i] = (static_cast<uint32_t>(i) * 2654435761u >> 8) * 6e-8f;
  }
}

struct Shape {
  const char* name;
  int tables;
  int64_t rows;
  int64_t row;
  int64_t ids;  // of each table
};

void Time(const char* rule_name, const Rule& rule, const Shape& shape, bool all_rows, bool hot,
          double copy) {
  Program program;
  cases::Parse(rule, &program);
  const GpuCode code(program);
  const Counts& counts = program.counts;
  const int64_t elements = shape.rows * shape.row;
  const int64_t gradient_floats = shape.ids * shape.row;
  // Each tensor begins at a multiple of 256 bytes, as TensorFlow's do.
  const auto padded = [](int64_t count) { return (count + 63) / 64 * 64; };
  const int64_t floats =
      shape.tables * (counts.states * padded(elements) + padded(gradient_floats)) +
      counts.parameters * padded(1);
  DeviceMemory numbers(floats * sizeof(float)), device_ids(shape.tables * shape.ids * 4);
  Fill<<<1024, 256>>>(reinterpret_cast<float*>(numbers.data()), floats);

  Random random(7);
  std::vector<int32_t> ids(shape.tables * shape.ids);
  for (int32_t& id : ids) id = hot && random() % 2 ? 5 : random() % shape.rows;
  CUDA(cudaMemcpy(device_ids.data(), ids.data(), ids.size() * 4, cudaMemcpyHostToDevice));
  int64_t touched = 0;
  for (int t = 0; t < shape.tables; ++t) {
    std::vector<int32_t> sorted(ids.begin() + t * shape.ids, ids.begin() + (t + 1) * shape.ids);
    std::sort(sorted.begin(), sorted.end());
    touched += std::unique(sorted.begin(), sorted.end()) - sorted.begin();
  }

  float* next = reinterpret_cast<float*>(numbers.data());
  const auto take = [&](int64_t count) -> void* {
    next += padded(count);
    return next - padded(count);
  };
  std::vector<const void*> parameters;
  for (int i = 0; i < counts.parameters; ++i) parameters.push_back(take(1));
  std::vector<void*> states(shape.tables * counts.states);
  for (void*& state : states) state = take(elements);
  std::vector<GradientRows> gradients(shape.tables);
  std::vector<Segment> segments(shape.tables);
  std::vector<Table> tables(shape.tables);
  for (int t = 0; t < shape.tables; ++t) {
    gradients[t].data = take(gradient_floats);
    gradients[t].pitch = shape.row;
    segments[t].table_rows = shape.rows;
    segments[t].ids = device_ids.data() + t * shape.ids * 4;
    segments[t].id_kind = picasso::IdKind::kInt32;
    segments[t].num_ids = shape.ids;
    segments[t].gradients = &gradients[t];
    tables[t].rows = shape.rows;
    tables[t].row = shape.row;
    tables[t].states = &states[t * counts.states];
    tables[t].parameters = parameters.data();
    tables[t].segments = &segments[t];
    tables[t].num_segments = 1;
    tables[t].num_ids = shape.ids;
  }
  Update<float> update(code, tables, all_rows);
  const double ms = Milliseconds([&] { update.Run(); });
  const int64_t rows = all_rows ? shape.tables * shape.rows : touched;
  const double bytes = 4.0 * (2.0 * rows * shape.row * counts.states +
                              shape.tables * (gradient_floats + shape.ids));
  std::printf("%-14s %-28s %-8s %8.3f ms %8.1f GB/s  %5.1f%% of a copy\n", rule_name, shape.name,
              hot ? "one hot" : "uniform", ms, bytes / ms * 1e-6, 100 * bytes / ms * 1e-6 / copy);
}

}  // namespace

int main() {
  cudaDeviceProp device;
  CUDA(cudaGetDeviceProperties(&device, 0));
  std::printf("%s\n", device.name);
  bool right = CheckCases<float>("float");
  right &= CheckCases<double>("double");
  right &= CheckCases<Half>("half");
  right &= CheckCases<Bfloat16>("bfloat16");

  const double copy = CopyGigabytesPerSecond();
  std::printf("a copy: %.1f GB/s\n", copy);
  const Shape shapes[] = {{"26 x 100k x 32, 4096 ids", 26, 100000, 32, 4096},
                          {"200 x 20k x 16, 1024 ids", 200, 20000, 16, 1024}};
  for (const Shape& shape : shapes) {
    for (bool hot : {false, true}) {
      Time("SGD", cases::kSgd, shape, /*all_rows=*/false, hot, copy);
      Time("Adagrad", cases::kAdagrad, shape, /*all_rows=*/false, hot, copy);
      Time("dense Adam", cases::kAdam, shape, /*all_rows=*/true, hot, copy);
    }
  }
  return right ? 0 : 1;
}
