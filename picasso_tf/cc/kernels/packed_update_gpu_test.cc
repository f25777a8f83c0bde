// Stand-alone test of the GPU side of the packed update, run on the host: no GPU, no
// TensorFlow, no test framework. From the project's root:
//
//   g++ -std=c++17 -g -O1 -ffp-contract=off -fsanitize=address,undefined -I.
//       -o packed_update_gpu_test picasso_tf/cc/kernels/packed_update_gpu_test.cc   (one line)
//   ./packed_update_gpu_test
//
// Each thread of each launch is run in turn; the standard library stands in for CUB.

#include "picasso_tf/cc/kernels/packed_update_gpu.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <numeric>
#include <vector>

#include "picasso_tf/cc/kernels/packed_update_gpu_cases.h"

namespace {

using namespace picasso::packed_update;
using namespace picasso::packed_update::cases;

int passed = 0;
int failed = 0;

#define CHECK(condition)                                                          \
  do {                                                                            \
    (condition) ? ++passed : ++failed;                                            \
    if (!(condition)) std::printf("line %d is wrong: %s\n", __LINE__, #condition); \
  } while (false)

// ---- The launches, thread by thread ----

// Sorts by the lowest `bits` bits of each key; equal ones stay in order.
void Sort(const Work& work, int bits) {
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  std::vector<int64_t> order(work.num_ids);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return (work.keys[a] & mask) < (work.keys[b] & mask);
  });
  for (int64_t i = 0; i < work.num_ids; ++i) {
    work.sorted_keys[i] = work.keys[order[i]];
    work.sorted_positions[i] = work.positions[order[i]];
  }
}

// Threads of a block do not work together, so any order will do.
template <typename T>
void UpdateInBlocks(const Work& work) {
  const int64_t threads = GpuThreads(work.num_slots);
  std::vector<PackOf<T>> slots(threads * work.num_slots);
  if (work.all_rows) {
    for (int64_t tile = work.num_tiles - 1; tile >= 0; --tile) {
      for (int64_t i = 0; i < threads; ++i) {
        UpdateTile<T>(work, tile, i, threads, slots.data() + i, threads);
      }
    }
  } else {
    for (int64_t i = work.num_ids * work.lanes_per_row - 1; i >= 0; --i) {
      UpdateRuns<T>(work, i, slots.data() + i % threads, threads);
    }
  }
}

template <typename T>
void RunOnHost(WorkLayout<T>& layout) {
  // Not a byte to spare, so that the address sanitizer sees any access beyond it; no
  // memory is zero unless it was set.
  const size_t bytes = layout.Bytes(/*sort_bytes=*/0);
  const std::unique_ptr<char, decltype(&std::free)> memory(
      static_cast<char*>(std::aligned_alloc(256, (bytes + 255) / 256 * 256)), std::free);
  std::memset(memory.get(), 0xa5, bytes);
  std::vector<int64_t> plan;
  const Work work = layout.Write(memory.get(), 0, &plan);
  CHECK(plan.size() * sizeof(plan[0]) <= bytes);
  CHECK(static_cast<const void*>(work.tables) == memory.get());
  std::memcpy(memory.get(), plan.data(), plan.size() * sizeof(plan[0]));

  for (int64_t i = std::max(work.num_ids, work.num_tables) + 9; i >= 0; --i) Prepare<T>(work, i);
  if (work.num_ids > 0) {
    Sort(work, layout.KeyBits());
    for (int64_t at = 0; at < work.num_ids; ++at) MarkHead(work, at);
    std::partial_sum(work.heads, work.heads + work.num_ids, work.run_numbers);
    if (work.all_rows) std::fill_n(work.run_of_row, work.num_rows, 0);
    for (int64_t at = work.num_ids - 1; at >= 0; --at) ListRun<T>(work, at);
  }
  UpdateInBlocks<T>(work);
}

template <typename T>
void CheckCase(Case<T>& one) {
  const GpuCode code(one.program());
  CHECK(code.num_slots() <= kGpuMaxSlots);
  for (bool all_rows : {false, true}) {
    std::vector<char> memory = one.memory();
    const std::vector<Table> tables = one.Tables(memory.data());
    WorkLayout<T> layout(code, tables, all_rows);
    CHECK(layout.Problem().empty());
    if (!layout.HasNothingToDo()) RunOnHost(layout);
    CHECK(one.IsRight(memory, one.Wanted(all_rows)));
  }
}

// ---- Tests ----

template <typename T>
void TestRules() {
  Random random(1);
  for (const Rule& rule : {kSgd, kAdagrad, kAdam}) {
    for (int i = 0; i < 6; ++i) {
      Case<T> one = RandomCase<T>(random, rule, 20);
      CheckCase(one);
    }
  }
}

template <typename T>
void TestRandomRules(int count) {
  Random random(2);
  for (int i = 0; i < count; ++i) {
    Case<T> one = RandomCase<T>(random, RandomRule(random, Draw(random, 1, 25), /*pow=*/true), 12);
    CheckCase(one);
  }
}

// More ids of one row than are fetched ahead, and more tiles than one.
void TestManyIdsAndRows() {
  Random random(3);
  Case<float> one(kAdam);
  one.AddTable(random, 700, 9);
  one.AddSegment(random, 50, 1);
  one.AddTable(random, 1, 1500);
  one.AddSegment(random, 8, 1);
  one.AddTable(random, 1100, 1);
  one.AddSegment(random, 200, 1100);
  CheckCase(one);
}

void TestNothingToDo() {
  Random random(4);
  Case<float> no_ids(kAdam);
  no_ids.AddTable(random, 10, 4);
  CheckCase(no_ids);
  Case<float> empty(kAdam);
  empty.AddTable(random, 0, 4);
  empty.AddSegment(random, 5, 1);  // all ids are bad
  CheckCase(empty);
  empty.AddTable(random, 7, 0);
  empty.AddSegment(random, 5, 7);
  CheckCase(empty);
  empty.AddTable(random, 7, 3);
  empty.AddSegment(random, 0, 7);
  CheckCase(empty);
}

void TestCode() {
  Program program;
  const auto loops = [&](const Rule& rule) {
    CHECK(Parse(rule, &program).empty());
    const GpuCode code(program);
    int count = 0;
    for (const GpuPhase& phase : code.phases()) count += phase.row_end < phase.id_end;
    return count;
  };
  CHECK(loops(kSgd) == 1);
  CHECK(loops(kAdagrad) == 2);  // the second sum needs the first
  CHECK(loops(kAdam) == 1);     // both sums at once
  CHECK(GpuCode(program).num_slots() <= 8);
  const Rule unused = {{2, 1, 0, 0}, {"segment_sum g0", "add s0 s1"}, {"v1", "s1"}};
  CHECK(loops(unused) == 0);
  CHECK(GpuCode(program).gradients().empty());
  CHECK(GpuCode(program).stores().size() == 1);
}

// `count` values that are all needed at the end.
Rule RuleOf(int count) {
  Rule rule = {{1, 0, 0, 0}, {}, {}};
  for (int i = 0; i < count; ++i) rule.program.push_back("mul s0 s0");
  for (int i = 1; i < count; ++i) {
    const int sum = rule.program.size() - 1;
    rule.program.push_back("add v" + std::to_string(i - 1) + " v" + std::to_string(sum));
  }
  rule.results.push_back("v" + std::to_string(rule.program.size() - 1));
  return rule;
}

void TestSlots() {
  CHECK(GpuThreads(0) == kGpuMaxThreads);
  CHECK(GpuThreads(12) == 256 && GpuThreads(13) == 128);
  CHECK(GpuThreads(kGpuMaxSlots) == 32 && GpuThreads(kGpuMaxSlots + 1) == 0);
  Random random(5);
  Program program;
  CHECK(Parse(RuleOf(200), &program).empty());
  CHECK(GpuThreads(GpuCode(program).num_slots()) == 0);
  Case<double> large(RuleOf(80));
  large.AddTable(random, 50, 7);
  large.AddSegment(random, 9, 50);
  CHECK(GpuThreads(GpuCode(large.program()).num_slots()) == 32);
  CheckCase(large);
}

void TestProblems() {
  Program program;
  CHECK(Parse(kSgd, &program).empty());
  const GpuCode code(program);
  std::vector<Table> tables(1);
  tables[0].num_ids = int64_t{1} << 31;
  CHECK(WorkLayout<float>(code, tables, false).Problem().find("too many") != std::string::npos);
  tables[0].num_ids = 1;
  tables[0].row = int64_t{1} << 30;
  CHECK(WorkLayout<float>(code, tables, false).Problem().find("too long") != std::string::npos);
}

}  // namespace

int main() {
  TestRules<float>();
  TestRules<double>();
  TestRules<Half>();
  TestRules<Bfloat16>();
  TestRandomRules<float>(100);
  TestRandomRules<double>(30);
  TestRandomRules<Half>(30);
  TestManyIdsAndRows();
  TestNothingToDo();
  TestCode();
  TestSlots();
  TestProblems();
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}
