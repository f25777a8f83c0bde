// The GPU kernel of the packed lookup without TensorFlow: is it right, and what does one launch
// save over N? From the project's root:
//
//   make gpu-harness
//   build/packed_lookup_harness                                                (under a minute)
//
// Every case is checked bit by bit against a loop on the host, bad ids included, before it is
// timed. Three ways are timed on the same data: N gather launches into N tensors and one more
// launch that concatenates them, as stock TensorFlow does; N gather launches straight into the
// output; and the packed kernel with the upload of its plan. A device-to-device copy of as many
// bytes is the bound. Exit code 0: all cases right. Figures are medians of one run; compare ratios,
// not times.

#include <cstdio>
#include <functional>
#include <random>
#include <vector>

#include "benchmarks/gpu/device.h"
#include "picasso_tf/cc/kernels/packed_lookup_gpu.h"

namespace {

using namespace picasso::packed_lookup;
using device::DeviceMemory;

struct Case {
  const char* name;
  int tables;
  int64_t rows;
  std::vector<int> widths;  // in floats, taken in turn
  int64_t batch;
};

// Gather as TensorFlow writes it: one thread for each element, one launch for each table.
__global__ void GatherOne(const float* table, int64_t rows, const int32_t* ids, int64_t batch,
                          int width, float* out, int64_t pitch) {
  for (int64_t at = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; at < batch * width;
       at += int64_t{gridDim.x} * blockDim.x) {
    const int64_t row = at / width;
    const int32_t id = ids[row];
    out[row * pitch + at % width] =
        id >= 0 && id < rows ? table[int64_t{id} * width + at % width] : 0.0f;
  }
}

// Concatenation in one launch: element by element from the tensor that holds its column.
__global__ void Concatenate(const float* const* parts, const int64_t* first_column, int tables,
                            int64_t batch, float* out) {
  const int64_t pitch = first_column[tables];
  for (int64_t at = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; at < batch * pitch;
       at += int64_t{gridDim.x} * blockDim.x) {
    const int64_t column = at % pitch;
    int low = 0;
    for (int high = tables; high - low > 1;) {
      const int middle = (low + high) / 2;
      (first_column[middle] <= column ? low : high) = middle;
    }
    const int64_t width = first_column[low + 1] - first_column[low];
    out[at] = parts[low][at / pitch * width + column - first_column[low]];
  }
}

int Grid(int64_t elements) {
  const int64_t blocks = (elements + kGpuThreads - 1) / kGpuThreads;
  return blocks < 4096 ? blocks : 4096;
}

template <typename Run>
double Microseconds(const Run& run) {
  return 1e3 * device::Milliseconds(run);
}

bool RunCase(const Case& c) {
  std::mt19937_64 random(7);
  std::vector<int64_t> first_column(1, 0), first_value(1, 0);
  for (int t = 0; t < c.tables; ++t) {
    const int width = c.widths[t % c.widths.size()];
    first_column.push_back(first_column.back() + width);
    first_value.push_back(first_value.back() + c.rows * width);
  }
  const int64_t pitch = first_column.back();
  const int64_t out_bytes = c.batch * pitch * sizeof(float);

  std::vector<float> tables(first_value.back());
  for (float& value : tables) value = static_cast<uint32_t>(random()) * 1e-9f;
  std::vector<int32_t> ids(c.tables * c.batch);
  for (int32_t& id : ids) id = random() % c.rows;
  for (size_t i = 0; i < ids.size(); i += 997) ids[i] = i % 2 ? -1 : c.rows;  // rows of zeros

  DeviceMemory device_tables(tables.size() * sizeof(float)), device_ids(ids.size() * 4);
  DeviceMemory out(out_bytes), parts(out_bytes), part_list(c.tables * sizeof(float*));
  DeviceMemory columns(first_column.size() * 8), plan(PlanBytes(c.tables));
  const auto upload = [](const DeviceMemory& to, const void* from, int64_t bytes) {
    CUDA(cudaMemcpy(to.data(), from, bytes, cudaMemcpyHostToDevice));
  };
  upload(device_tables, tables.data(), tables.size() * sizeof(float));
  upload(device_ids, ids.data(), ids.size() * 4);
  upload(columns, first_column.data(), first_column.size() * 8);

  std::vector<Piece> pieces(c.tables);
  std::vector<float*> part(c.tables);
  for (int t = 0; t < c.tables; ++t) {
    const int64_t width = first_column[t + 1] - first_column[t];
    Piece& piece = pieces[t];
    piece.table = device_tables.data() + first_value[t] * sizeof(float);
    piece.table_rows = c.rows;
    piece.row_bytes = width * sizeof(float);
    piece.ids = device_ids.data() + t * c.batch * 4;
    piece.id_kind = IdKind::kInt32;
    piece.num_ids = c.batch;
    piece.out = out.data() + first_column[t] * sizeof(float);
    piece.out_pitch = pitch * sizeof(float);
    part[t] = reinterpret_cast<float*>(parts.data()) + first_column[t] * c.batch;
  }
  upload(part_list, part.data(), part.size() * sizeof(float*));

  const auto gather = [&](int t, float* to, int64_t to_pitch) {
    const int64_t width = first_column[t + 1] - first_column[t];
    GatherOne<<<Grid(c.batch * width), kGpuThreads>>>(
        reinterpret_cast<const float*>(pieces[t].table), c.rows,
        static_cast<const int32_t*>(pieces[t].ids), c.batch, width, to, to_pitch);
  };
  const auto stock = [&] {
    for (int t = 0; t < c.tables; ++t) gather(t, part[t], first_column[t + 1] - first_column[t]);
    Concatenate<<<Grid(c.batch * pitch), kGpuThreads>>>(
        reinterpret_cast<const float* const*>(part_list.data()),
        reinterpret_cast<const int64_t*>(columns.data()), c.tables, c.batch,
        reinterpret_cast<float*>(out.data()));
  };
  const auto straight = [&] {
    for (int t = 0; t < c.tables; ++t) gather(t, reinterpret_cast<float*>(pieces[t].out), pitch);
  };
  std::vector<int64_t> host_plan(PlanBytes(c.tables) / 8 + 1);
  const auto packed = [&] {
    const int64_t tiles = WritePlan(pieces.data(), c.tables, host_plan.data());
    const char* error =
        LaunchPackedLookup(host_plan.data(), plan.data(), c.tables, tiles, /*stream=*/nullptr);
    if (error != nullptr) std::printf("CUDA reports: %s\n", error);
  };
  const auto copy = [&] {
    CUDA(cudaMemcpyAsync(parts.data(), out.data(), out_bytes, cudaMemcpyDeviceToDevice));
  };

  const auto is_right = [&](const std::function<void()>& run) {
    CUDA(cudaMemset(out.data(), 0xff, out_bytes));
    run();
    CUDA(cudaGetLastError());
    std::vector<float> found(c.batch * pitch);
    CUDA(cudaMemcpy(found.data(), out.data(), out_bytes, cudaMemcpyDeviceToHost));
    for (int t = 0; t < c.tables; ++t) {
      const int64_t width = first_column[t + 1] - first_column[t];
      for (int64_t b = 0; b < c.batch; ++b) {
        const int32_t id = ids[t * c.batch + b];
        const bool good = id >= 0 && id < c.rows;
        for (int64_t w = 0; w < width; ++w) {
          const float wanted = good ? tables[first_value[t] + id * width + w] : 0.0f;
          if (found[b * pitch + first_column[t] + w] != wanted) return false;
        }
      }
    }
    return true;
  };
  const bool right = is_right(packed) && is_right(stock) && is_right(straight);
  const double packed_us = Microseconds(packed);
  const double stock_us = Microseconds(stock), straight_us = Microseconds(straight);
  const double copy_us = Microseconds(copy);
  std::printf(
      "%-34s %-5s packed %8.1f us | stock/packed %5.2fx | N launches/packed %5.2fx | "
      "packed/copy %5.2fx\n",
      c.name, right ? "right" : "WRONG", packed_us, stock_us / packed_us, straight_us / packed_us,
      packed_us / copy_us);
  return right;
}

}  // namespace

int main() {
  cudaDeviceProp device;
  CUDA(cudaGetDeviceProperties(&device, 0));
  std::printf("%s\n", device.name);
  const std::vector<Case> cases = {
      {"26 x 100k x 32, batch 4096", 26, 100000, {32}, 4096},
      {"200 x 20k x 16, batch 1024", 200, 20000, {16}, 1024},
      {"100 x 20k x mixed, batch 4096", 100, 20000, {1, 3, 8, 16, 32, 64, 100}, 4096},
      {"500 x 1k x 8, batch 256", 500, 1000, {8}, 256},
      {"4 x 100k x 128, batch 65536", 4, 100000, {128}, 65536},
  };
  bool right = true;
  for (const Case& c : cases) right &= RunCase(c);
  return right ? 0 : 1;
}
