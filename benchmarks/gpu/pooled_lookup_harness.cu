// The GPU kernel of the packed pooled lookup without TensorFlow: is it right, and what does one
// launch for all features save? From the project's root:
//
//   make gpu-harness
//   build/pooled_lookup_harness                                                (under a minute)
//
// First random outputs, with bad ids, weights and segments in any order, in all four dtypes, are
// compared bit by bit with the CPU's kernel. Then these are timed on the same data: the packed
// kernel with the upload of its plan, with segments, with row splits, with weights, and with ids
// that are out of order; and for each feature a gather of the rows of its ids, their sums, and
// one concatenation at the end, which is what stock TensorFlow's ops do once ids are distinct.
// GB/s counts rows that are read and written, ids and segments; a device-to-device copy is the
// bound. Exit code 0: all cases right. Figures are medians of one run; compare ratios, not times.

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "benchmarks/gpu/device.h"
#include "picasso_tf/cc/kernels/pooled_lookup_gpu.h"
#include "picasso_tf/cc/kernels/pooled_lookup_gpu_cases.h"

namespace {

using namespace picasso::pooled_lookup;
using device::DeviceMemory;
using device::Milliseconds;
using picasso::IdKind;

// One call as the op makes it, but for the allocation of memory.
template <typename T>
class PooledLookup {
 public:
  explicit PooledLookup(const std::vector<Piece>& pieces)
      : layout_(pieces.data(), pieces.size()), memory_(layout_.Bytes()) {
    CUDA(cudaMemset(memory_.data(), 0xa5, layout_.Bytes()));
  }

  void Run() {
    std::vector<int64_t> plan;
    const GpuWork work = layout_.Write(memory_.data(), &plan);
    const char* error = LaunchPooledLookup<T>(work, plan, /*stream=*/nullptr);
    if (error == nullptr) return;
    std::printf("CUDA reports: %s\n", error);
    std::exit(2);
  }

 private:
  GpuPlan<T> layout_;
  DeviceMemory memory_;
};

// ---- Is it right? ----

template <typename T>
bool IsRight(const cases::Case<T>& one) {
  std::vector<std::unique_ptr<DeviceMemory>> parts;
  for (const cases::Bytes& part : one.parts()) {
    parts.push_back(std::make_unique<DeviceMemory>(part.size()));
    CUDA(cudaMemcpy(parts.back()->data(), part.data(), part.size(), cudaMemcpyHostToDevice));
  }
  const std::vector<Piece> pieces = one.Pieces([&](size_t part) { return parts[part]->data(); });
  PooledLookup<T>(pieces).Run();
  const std::vector<cases::Bytes> wanted = one.Wanted();
  bool right = true;
  for (size_t i = 0; i < parts.size(); ++i) {
    cases::Bytes found(wanted[i].size());
    CUDA(cudaMemcpy(found.data(), parts[i]->data(), found.size(), cudaMemcpyDeviceToHost));
    right &= found == wanted[i];
  }
  return right;
}

template <typename T>
bool CheckCases(const char* dtype) {
  cases::Random random(7);
  int right = 0, count = 0;
  for (int i = 0; i < 100; ++i, ++count) right += IsRight(cases::RandomCase<T>(random, 600));
  for (int64_t width : {1, 3, 8, 20, 32, 64, 100, 128, 130}) {
    for (Combiner combiner : {Combiner::kSum, Combiner::kMean, Combiner::kSqrtN}) {
      cases::Case<T> one;
      one.AddOutput(40);
      cases::Bag bag = cases::AllCounts(width, combiner);
      one.AddLookup(random, bag);
      bag.weighted = true;
      one.AddLookup(random, bag);
      one.Finish();
      right += IsRight(one);
      ++count;
    }
  }
  std::printf("%-8s %d of %d cases right\n", dtype, right, count);
  return right == count;
}

// ---- How fast? ----

constexpr int kThreads = 256;

int Grid(int64_t elements) {
  return static_cast<int>(std::min<int64_t>((elements + kThreads - 1) / kThreads, 4096));
}

__global__ void Gather(const float* table, const int64_t* ids, int64_t num, int width, float* out) {
  for (int64_t at = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; at < num * width;
       at += int64_t{gridDim.x} * blockDim.x) {
    out[at] = table[ids[at / width] * width + at % width];
  }
}

__global__ void SumRows(const float* rows, const int64_t* splits, int64_t batch, int width,
                        float* out) {
  for (int64_t at = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; at < batch * width;
       at += int64_t{gridDim.x} * blockDim.x) {
    float sum = 0;
    for (int64_t j = splits[at / width]; j < splits[at / width + 1]; ++j) {
      sum += rows[j * width + at % width];
    }
    out[at] = sum;
  }
}

__global__ void Concatenate(const float* parts, int features, int64_t batch, int width,
                            float* out) {
  const int64_t pitch = int64_t{features} * width;
  for (int64_t at = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; at < batch * pitch;
       at += int64_t{gridDim.x} * blockDim.x) {
    const int64_t row = at / pitch, column = at % pitch;
    out[at] = parts[column / width * batch * width + row * width + column % width];
  }
}

__global__ void Fill(float* data, int64_t count) {
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < count;
       i += int64_t{gridDim.x} * blockDim.x) {
    data[i] = (static_cast<uint32_t>(i) * 2654435761u >> 8) * 6e-8f;
  }
}

struct Shape {
  const char* name;
  int features;
  int64_t rows;
  int width;
  int64_t batch;
  int64_t most_ids;  // of a row: 0 to so many
};

// The device's copy of a list.
template <typename E>
std::unique_ptr<DeviceMemory> Upload(const std::vector<E>& list) {
  auto memory = std::make_unique<DeviceMemory>(list.size() * sizeof(E));
  CUDA(cudaMemcpy(memory->data(), list.data(), list.size() * sizeof(E), cudaMemcpyHostToDevice));
  return memory;
}

void Time(const Shape& shape, double copy) {
  const int64_t n = shape.features, row_floats = n * shape.width;
  cases::Random random(7);
  std::vector<int64_t> ids, segments, splits, first(1, 0);  // of all features
  for (int f = 0; f < n; ++f) {
    for (int64_t row = 0; row < shape.batch; ++row) {
      splits.push_back(ids.size() - first.back());
      for (int64_t left = cases::Draw(random, 0, shape.most_ids + 1); left > 0; --left) {
        ids.push_back(cases::Draw(random, 0, shape.rows));
        segments.push_back(row);
      }
    }
    splits.push_back(ids.size() - first.back());
    first.push_back(ids.size());
  }
  std::vector<int64_t> disordered = segments;
  for (int f = 0; f < n; ++f) {
    if (first[f + 1] - first[f] > 1) std::swap(disordered[first[f]], disordered[first[f + 1] - 1]);
  }
  int64_t longest = 0;
  for (int f = 0; f < n; ++f) longest = std::max(longest, first[f + 1] - first[f]);

  const int64_t table_floats = shape.rows * shape.width, total = ids.size();
  DeviceMemory tables(n * table_floats * 4), weights(total * 4), out(shape.batch * row_floats * 4);
  DeviceMemory rows(longest * shape.width * 4), parts(shape.batch * row_floats * 4);
  Fill<<<1024, kThreads>>>(reinterpret_cast<float*>(tables.data()), n * table_floats);
  Fill<<<1024, kThreads>>>(reinterpret_cast<float*>(weights.data()), total);
  const auto all_ids = Upload(ids), all_segments = Upload(segments), all_splits = Upload(splits),
             all_disordered = Upload(disordered);
  const auto longs = [](const std::unique_ptr<DeviceMemory>& memory) {
    return reinterpret_cast<const int64_t*>(memory->data());
  };

  std::vector<Piece> pieces(n);
  for (int f = 0; f < n; ++f) {
    Piece& piece = pieces[f];
    piece.table = tables.data() + f * table_floats * 4;
    piece.table_rows = shape.rows;
    piece.row_bytes = shape.width * 4;
    piece.rows = shape.batch;
    piece.id_kind = IdKind::kInt64;
    piece.ids = longs(all_ids) + first[f];
    piece.num_ids = first[f + 1] - first[f];
    piece.combiner = Combiner::kMean;
    piece.segments.is_int64 = true;
    piece.segments.data = longs(all_segments) + first[f];
    piece.out = out.data() + f * shape.width * 4;
    piece.out_pitch = row_floats * 4;
  }
  const auto time = [&](const auto& change) {
    std::vector<Piece> changed = pieces;
    for (int f = 0; f < n; ++f) change(&changed[f], f);
    PooledLookup<float> lookup(changed);
    return Milliseconds([&] { lookup.Run(); });
  };
  const double packed = time([](Piece*, int) {});
  const double by_splits = time([&](Piece* piece, int f) {
    piece->segments.are_splits = true;
    piece->segments.data = longs(all_splits) + f * (shape.batch + 1);
  });
  const double weighted = time([&](Piece* piece, int f) {
    piece->weights = reinterpret_cast<const float*>(weights.data()) + first[f];
  });
  const double dropping = time([](Piece* piece, int) { piece->drop_negative = true; });
  const double unordered = time([&](Piece* piece, int f) {
    piece->segments.data = longs(all_disordered) + first[f];
  });
  const double separate = Milliseconds([&] {
    for (int f = 0; f < n; ++f) {
      const Piece& piece = pieces[f];
      float* gathered = reinterpret_cast<float*>(rows.data());
      float* part = reinterpret_cast<float*>(parts.data()) + f * shape.batch * shape.width;
      Gather<<<Grid(piece.num_ids * shape.width), kThreads>>>(
          reinterpret_cast<const float*>(piece.table), static_cast<const int64_t*>(piece.ids),
          piece.num_ids, shape.width, gathered);
      SumRows<<<Grid(shape.batch * shape.width), kThreads>>>(
          gathered, longs(all_splits) + f * (shape.batch + 1), shape.batch, shape.width, part);
    }
    Concatenate<<<Grid(shape.batch * row_floats), kThreads>>>(
        reinterpret_cast<const float*>(parts.data()), n, shape.batch, shape.width,
        reinterpret_cast<float*>(out.data()));
  });
  const double bytes = total * (4.0 * shape.width + 16) + 4.0 * shape.batch * row_floats;
  std::printf("%-34s packed %7.3f ms, %5.1f%% of a copy | splits %7.3f | weights %7.3f | "
              "dropping %7.3f | out of order %8.3f | N launches/packed %5.2fx\n",
              shape.name, packed, 100 * bytes / packed * 1e-6 / copy, by_splits, weighted, dropping,
              unordered, separate / packed);
}

double CopyGigabytesPerSecond() {
  const size_t bytes = size_t{1} << 30;
  DeviceMemory from(bytes), to(bytes);
  const double ms = Milliseconds(
      [&] { CUDA(cudaMemcpyAsync(to.data(), from.data(), bytes, cudaMemcpyDeviceToDevice)); });
  return 2 * bytes / ms * 1e-6;
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
  const Shape shapes[] = {{"100 x 10k x 16, 512 rows of 0-20", 100, 10000, 16, 512, 20},
                          {"26 x 100k x 32, 4096 rows of 0-20", 26, 100000, 32, 4096, 20},
                          {"26 x 100k x 32, 4096 rows of 0-3", 26, 100000, 32, 4096, 3},
                          {"8 x 1M x 128, 4096 rows of 0-100", 8, 1000000, 128, 4096, 100}};
  for (const Shape& shape : shapes) Time(shape, copy);
  return right ? 0 : 1;
}
