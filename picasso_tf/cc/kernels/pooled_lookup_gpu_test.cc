// Stand-alone test of the GPU side of the packed pooled lookup, run on the host: no GPU, no
// TensorFlow, no test framework. From the project's root:
//
//   g++ -std=c++17 -g -O1 -ffp-contract=off -fsanitize=address,undefined -pthread -I.
//       -o pooled_lookup_gpu_test picasso_tf/cc/kernels/pooled_lookup_gpu_test.cc   (one line)
//   ./pooled_lookup_gpu_test
//
// Each thread of each launch is run in turn. Outputs are compared, bit by bit, with those of the
// CPU's kernel.

#include "picasso_tf/cc/kernels/pooled_lookup_gpu.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <vector>

#include "picasso_tf/cc/kernels/kernel_test.h"
#include "picasso_tf/cc/kernels/pooled_lookup_gpu_cases.h"

namespace {

using namespace picasso::pooled_lookup;
using namespace picasso::pooled_lookup::cases;

// ---- The launches, thread by thread ----

// Calls run(piece, tile) for the blocks of a grid, the last one first.
template <typename Run>
void ForBlocks(const GpuWork& work, const int64_t* first_tiles, int64_t num_tiles, const Run& run) {
  CHECK(first_tiles[0] == 0 && first_tiles[work.num_pieces] == num_tiles);
  for (int64_t i = work.num_pieces - 1; i >= 0; --i) {
    for (int64_t tile = first_tiles[i + 1] - 1; tile >= first_tiles[i]; --tile) {
      run(&work.pieces[i], tile - first_tiles[i]);
    }
  }
}

template <typename T>
void RunOnHost(const std::vector<Piece>& pieces) {
  const GpuPlan<T> layout(pieces.data(), pieces.size());
  CHECK(layout.Fits());
  // Not a byte to spare, so that the address sanitizer sees any access beyond it; no
  // memory is zero unless it was set.
  const std::unique_ptr<char, decltype(&std::free)> memory(
      static_cast<char*>(std::malloc(layout.Bytes())), std::free);
  std::memset(memory.get(), 0xa5, layout.Bytes());
  std::vector<int64_t> plan;
  const GpuWork work = layout.Write(memory.get(), &plan);
  std::memcpy(memory.get(), plan.data(), plan.size() * sizeof(plan[0]));
  ForBlocks(work, work.first_start_tiles, work.num_start_tiles, [](GpuPiece* piece, int64_t tile) {
    for (int64_t i = 0; i < kGpuThreads; ++i) FindStart(piece, tile * kGpuThreads + i);
  });
  std::vector<int64_t> sums(kSortThreads);
  for (const GpuPiece* piece = work.pieces; piece < work.pieces + work.num_pieces; ++piece) {
    if (!piece->is_disordered) continue;
    for (int phase = 0; phase < static_cast<int>(SortPhase::kEnd); ++phase) {
      for (int thread = kSortThreads - 1; thread >= 0; --thread) {
        SortIds(*piece, static_cast<SortPhase>(phase), thread, sums.data());
      }
    }
  }
  ForBlocks(work, work.first_fill_tiles, work.num_fill_tiles, [](GpuPiece* piece, int64_t tile) {
    for (int i = 0; i < kGpuThreads; ++i) FillTile<T>(*piece, tile, i);
  });
}

template <typename T>
void CheckCase(const Case<T>& one) {
  std::vector<Bytes> found = one.parts();
  RunOnHost<T>(one.Pieces([&](size_t part) { return found[part].data(); }));
  CHECK(found == one.Wanted());  // and what is no output is as it was
}

// ---- Tests ----

template <typename T>
void TestRandomCases() {
  Random random(1);
  for (int i = 0; i < 120; ++i) CheckCase(RandomCase<T>(random, 60));
}

template <typename T>
void TestAllWidths() {
  Random random(2);
  for (int64_t width = 1; width <= 130; ++width) {
    Case<T> one;
    one.AddOutput(40);
    for (Combiner combiner : {Combiner::kSum, Combiner::kMean, Combiner::kSqrtN}) {
      Bag bag = AllCounts(width, combiner);
      one.AddLookup(random, bag);
      bag.weighted = true;
      one.AddLookup(random, bag);
    }
    one.Finish();
    CheckCase(one);
  }
}

template <typename T>
void TestForms() {
  Random random(3);
  for (int i = 0; i < 256; ++i) {
    Case<T> one;
    one.AddOutput(40);
    Bag bag = AllCounts(i % 5 + 6, Combiner::kMean);
    bag.form = static_cast<Form>(i % 4);
    bag.ids64 = i & 4;
    bag.segments64 = i & 8;
    bag.weighted = i & 16;
    bag.drop_weightless = bag.weighted && i & 32;
    bag.drop_negative = i & 64;
    bag.disordered = i & 128 && bag.form != Form::kSplits;
    one.AddLookup(random, bag);
    one.AddDense(random, 3);
    std::reverse(bag.counts.begin(), bag.counts.end());
    bag.fill = 7;
    one.AddLookup(random, bag);
    one.Finish();
    CheckCase(one);
  }
}

// More rows than a block has threads, rows of no ids between rows of many.
void TestManyRowsAndIds() {
  Random random(4);
  for (bool disordered : {false, true}) {
    Case<float> one;
    one.AddOutput(1500);
    Bag bag;
    bag.disordered = disordered;
    for (int64_t width : {1, 12, 1100}) {
      bag.width = width;
      bag.counts.assign(1500, 0);
      for (const auto& [row, count] : {std::pair{0, 3}, {700, 300}, {701, 1}, {1400, 9}}) {
        bag.counts[row] = count;
      }
      one.AddLookup(random, bag);
    }
    one.Finish();
    CheckCase(one);
  }
}

void TestNothing() {
  Random random(5);
  Case<float> one;
  for (int64_t rows : {0, 7}) {
    one.AddOutput(rows);
    for (Form form : {Form::kVector, Form::kMatrix, Form::kSplits}) {
      Bag bag;
      bag.form = form;
      bag.counts.assign(rows, 0);
      one.AddLookup(random, bag);
      bag.fill = 3;
      one.AddLookup(random, bag);
      bag.table_rows = 0;
      one.AddLookup(random, bag);
    }
    one.AddDense(random, 2);
  }
  one.Finish();
  CheckCase(one);
}

// Row splits and segments that hold anything lead to no access out of bounds.
void TestGarbage() {
  Random random(6);
  for (int i = 0; i < 40; ++i) {
    Case<float> one;
    one.AddOutput(40);
    Bag bag = AllCounts(5, Combiner::kSum);
    bag.form = static_cast<Form>(i % 4);
    bag.segments64 = i % 8 < 4;
    one.AddLookup(random, bag);
    one.Finish();
    std::vector<Bytes> parts = one.parts();
    const std::vector<Piece> pieces = one.Pieces([&](size_t part) { return parts[part].data(); });
    for (Bytes& part : parts) {
      if (part.data() != pieces[0].segments.data) continue;
      for (size_t at = 0; at < part.size(); ++at) {
        if (Draw(random, 0, 8) == 0) part[at] = static_cast<char>(Draw(random, -128, 128));
      }
    }
    RunOnHost<float>(pieces);
  }
}

void TestHeapSort() {
  Random random(7);
  for (int64_t count = 0; count < 70; ++count) {
    std::vector<int32_t> numbers(count), sorted(count);
    std::iota(sorted.begin(), sorted.end(), 0);
    numbers = sorted;
    std::shuffle(numbers.begin(), numbers.end(), random);
    HeapSort(numbers.data(), count);
    CHECK(numbers == sorted);
  }
}

void TestPlan() {
  Piece piece;
  piece.rows = 3;
  piece.num_ids = 1000;
  piece.id_kind = picasso::IdKind::kInt64;
  piece.row_bytes = piece.out_pitch = int64_t{1} << 31;
  CHECK(!GpuPlan<float>(&piece, 1).Fits());
  piece.row_bytes = piece.out_pitch = 64;
  const GpuPlan<float> plan(&piece, 1);
  CHECK(plan.Fits());
  std::vector<int64_t> data;
  const GpuWork work = plan.Write(nullptr, &data);
  CHECK(work.num_fill_tiles == 1 && work.num_start_tiles == 4);
  CHECK(plan.Bytes() == static_cast<int64_t>(data.size() * 8) + 4 * 8 + 1000 * 4);
  piece.segments.are_splits = true;
  CHECK(GpuPlan<float>(&piece, 1).Write(nullptr, &data).num_start_tiles == 0);
  piece.rows = int64_t{1} << 40;
  CHECK(!GpuPlan<float>(&piece, 1).Fits());
  CHECK(reinterpret_cast<GpuPiece*>(data.data())->chunk_bytes == 16);
  CHECK(GpuPlan<float>(nullptr, 0).Fits());
}

template <typename T>
void TestType() {
  TestRandomCases<T>();
  TestAllWidths<T>();
}

}  // namespace

int main() {
  TestType<float>();
  TestType<double>();
  TestType<Half>();
  TestType<Bfloat16>();
  TestForms<float>();
  TestForms<Half>();
  TestManyRowsAndIds();
  TestNothing();
  TestGarbage();
  TestHeapSort();
  TestPlan();
  return kernel_test::Report();
}
