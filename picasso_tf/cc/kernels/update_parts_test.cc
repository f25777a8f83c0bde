// Stand-alone test of what the packed update is made of: half types, the sort of ids, and the
// loops and chains of each instruction set. Built and run as packed_update_test.cc is.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "picasso_tf/cc/kernels/kernel_test.h"
#include "picasso_tf/cc/kernels/row_sort.h"
#include "picasso_tf/cc/kernels/update_chain.h"
#include "picasso_tf/cc/kernels/update_loops.h"

namespace {

using namespace kernel_test;
using namespace picasso::packed_update;
using picasso::IdKind;

template <typename T>
std::vector<Compute<T>> RandomNumbers(int64_t size) {
  std::vector<Compute<T>> numbers(size);
  for (auto& number : numbers) number = Rounded<T>(Random(1, 64) / 16.0f);
  return numbers;
}

void TestHalfTypes() {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const Half half = {static_cast<uint16_t>(bits)};
    const float x = Value<Half>::Load(half);
    const int exponent = bits >> 10 & 31;
    const float magnitude = exponent == 0 ? std::ldexp(bits & 1023, -24)
                                          : std::ldexp(1024 + (bits & 1023), exponent - 25);
    if (exponent < 31) CHECK(x == (bits & 0x8000 ? -magnitude : magnitude));
    if (x == x) CHECK(Value<Half>::Store(x).bits == bits);
    if (x != x) CHECK((Value<Half>::Store(x).bits & 0x7e00) == 0x7e00);
    const Bfloat16 brain = {static_cast<uint16_t>(bits)};
    const float y = Value<Bfloat16>::Load(brain);
    if (y == y) CHECK(Value<Bfloat16>::Store(y).bits == bits);
    if (y != y) CHECK(Value<Bfloat16>::Load(Value<Bfloat16>::Store(y)) != y);
    if (bits >= 0x7bff) continue;
    // Between two halves the even one is taken, else the nearer.
    const float next = Value<Half>::Load({static_cast<uint16_t>(bits + 1)});
    const float middle = (x + next) / 2;
    CHECK(Value<Half>::Store(middle).bits == bits + (bits & 1));
    CHECK(Value<Half>::Store(std::nextafter(middle, 0.0f)).bits == bits);
    CHECK(Value<Half>::Store(std::nextafter(middle, 1e9f)).bits == bits + 1);
  }
  CHECK(Value<Half>::Store(65519.99f).bits == 0x7bff);
  CHECK(Value<Half>::Store(65520.0f).bits == 0x7c00);
  CHECK(Value<Half>::Store(1e30f).bits == 0x7c00);
  CHECK(Value<Half>::Store(1e-30f).bits == 0);
}

// Of ids with only their rows and numbers: in order of rows, or of groups of rows.
void CheckOrder(const SortedIds& ids, const std::vector<int32_t>& values, int64_t rows) {
  CHECK(ids.size() == static_cast<int64_t>(values.size()) -
                          std::count(values.begin(), values.end(), -1));
  const int64_t group = ids.GroupRows();
  int64_t begin = 0;
  for (int64_t first = 0; first < rows && begin < ids.size(); first += group) {
    CHECK(ids.Find(first) == begin);
    int64_t last_id = -1;
    for (; begin < ids.size() && ids.Row(begin) < first + group; ++begin) {
      CHECK(values[ids.Id(begin)] == ids.Row(begin) && ids.Row(begin) >= first);
      CHECK(ids.Id(begin) > last_id);
      last_id = ids.Id(begin);
    }
  }
  CHECK(begin == ids.size());
}

void CheckRows(const SortedIds& ids) {
  for (int64_t i = 0; i < ids.size(); ++i) {
    const bool begins = i == 0 || ids.Row(i - 1) != ids.Row(i);
    if (begins) CHECK(ids.RowStart(i) == i);
    if (!begins) CHECK(ids.RowStart(i) == ids.RowEnd(i - 1));
  }
}

void TestSortedIds() {
  for (int64_t rows : {1, 2, 100, 5000, 3000000}) {
    for (int64_t count : {0, 1, 40, 3000}) {
      std::vector<int32_t> values(count);
      for (int32_t& id : values) id = Random(0, 4) == 0 ? -1 : Random(0, rows);
      Segment segment;
      segment.table_rows = rows;
      segment.ids = values.data();
      segment.id_kind = IdKind::kInt32;
      segment.num_ids = count;
      Table table;
      table.rows = rows;
      table.segments = &segment;
      table.num_segments = 1;
      table.num_ids = count;
      SortedIds ids, grouped;
      CHECK(ids.Build(table, true));
      CheckOrder(ids, values, rows);
      CheckRows(ids);
      for (int bits : {1, 5, 20}) {
        CHECK(grouped.Build(table, true, bits));
        CHECK(grouped.grouped() && grouped.GroupRows() == 1 << bits);
        if (count > 64) CheckOrder(grouped, values, rows);  // fewer are sorted by row
      }
      CHECK(ids.Find(rows) == ids.size());
      if (count == 0) continue;
      values[count / 2] = rows;
      SortedIds bad;
      CHECK(!bad.Build(table, true));
      CHECK(FirstBadId(segment, true) == count / 2);
    }
  }
}

// The loops of every instruction set that this machine has give the same bits.
template <typename T>
void TestInstructionSets() {
  using C = Compute<T>;
  std::vector<Loops<T>> sets = {Loops<T>::OfThisMachine()};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) sets.push_back(Avx2Loops<T>::All());
#endif
  const Loops<T> baseline = BaselineLoops<T>::All();
  const std::vector<C> a = RandomNumbers<T>(77), b = RandomNumbers<T>(77);
  for (int opcode = 0; opcode < static_cast<int>(Opcode::kSegmentSum); ++opcode) {
    const Opcode code = static_cast<Opcode>(opcode);
    const int operands = code == Opcode::kSelect ? 3 : code < Opcode::kNeg ? 2 : 1;
    const Instruction instruction = {code, operands, {}};
    for (int scalars = 0; scalars < (operands == 1 ? 1 : operands == 2 ? 3 : 7); ++scalars) {
      const Operand<C> in[] = {{a.data(), (scalars & 1) != 0},
                               {b.data(), (scalars & 2) != 0},
                               {a.data() + 1, (scalars & 4) != 0}};
      std::vector<C> wanted(76), found(76);
      baseline.map(instruction, wanted.data(), in, 76);
      for (const Loops<T>& set : sets) {
        set.map(instruction, found.data(), in, 76);
        CHECK(std::memcmp(found.data(), wanted.data(), 76 * sizeof(C)) == 0);
      }
    }
  }
}

#if defined(__x86_64__)
// Chains too; the programs above run only those of the best instruction set.
template <typename C>
void TestChainsOfAvx2() {
  if (!__builtin_cpu_supports("avx2")) return;
  const Chains<C> chains = Avx2Chains<C>::All();
  const int64_t n = 2 * chains.block;
  const std::vector<C> a = RandomNumbers<C>(n), b = RandomNumbers<C>(n);
  std::vector<C> out(n);
  const Link<C> links[] = {
      chains.Make(Verb::kLoad, false, a.data()),     chains.Make(Verb::kFrom, false, b.data()),
      chains.Make(Verb::kMul, true, b.data()),
      chains.Make(Verb::kStore, false, nullptr, out.data()),
      chains.Make(Verb::kSquare, false, nullptr),    chains.Make(Verb::kSqrt, false, nullptr),
      chains.Make(Verb::kInto, true, a.data()),      chains.Make(Verb::kAdd, false, out.data()),
      chains.Make(Verb::kSub, true, a.data()),       chains.Make(Verb::kDiv, false, b.data()),
      chains.Make(Verb::kStore, false, nullptr, out.data()),
      chains.Make(Verb::kEnd, false, nullptr)};
  for (int64_t at = 0; at < n; at += chains.block) chains.run(links, at);
  for (int64_t i = 0; i < n; ++i) {
    const C x = (b[i] - a[i]) * b[0];
    CHECK(out[i] == (a[0] / std::sqrt(x * x) + x - a[0]) / b[i] || x == 0);
  }
}
#endif

}  // namespace

int main() {
  TestHalfTypes();
  TestSortedIds();
  TestInstructionSets<float>();
  TestInstructionSets<double>();
  TestInstructionSets<Half>();
  TestInstructionSets<Bfloat16>();
#if defined(__x86_64__)
  TestChainsOfAvx2<float>();
  TestChainsOfAvx2<double>();
#endif
  return Report();
}
