// Stand-alone test of hashed crosses: every loop against a plain walk over all combinations. Built
// and run as pooled_lookup_test.cc is.

#include <deque>
#include <vector>

#include "picasso_tf/cc/kernels/cross_loops.h"
#include "picasso_tf/cc/kernels/kernel_test.h"

namespace {

using namespace kernel_test;
using namespace picasso::crosses;

using Ints = std::vector<int64_t>;

// Columns of one number of rows, with a feature to spare nowhere.
struct Columns {
  int64_t rows;
  std::deque<std::vector<uint64_t>> features;
  std::deque<Ints> begins;
  std::deque<Column> columns;

  const Column* Dense(int64_t width) {
    features.push_back(Features(rows * width));
    columns.push_back({features.back().data(), nullptr, width});
    return &columns.back();
  }

  const Column* Sparse(int64_t most) {
    Ints begin = {0};
    for (int64_t row = 0; row < rows; ++row) begin.push_back(begin.back() + Random(0, most + 1));
    features.push_back(Features(begin.back()));
    begins.push_back(begin);
    columns.push_back({features.back().data(), begins.back().data(), 0});
    return &columns.back();
  }

  static std::vector<uint64_t> Features(int64_t size) {
    std::vector<uint64_t> features;
    for (int64_t i = 0; i < size; ++i) features.push_back(random_source());
    return features;
  }
};

// The hashes of a row, one column after the other.
void Walk(const Cross& cross, int64_t row, size_t column, uint64_t hash, Ints* hashes) {
  if (column == cross.columns.size()) {
    hashes->push_back(static_cast<int64_t>(hash % Modulus(cross)));
    return;
  }
  const Column& found = *cross.columns[column];
  for (int64_t at = found.Begin(row); at < found.Begin(row + 1); ++at) {
    Walk(cross, row, column + 1, Combine(hash, found.features[at]), hashes);
  }
}

void CheckCross(const Cross& cross, int64_t rows) {
  Ints begin;
  const int64_t most = CountCrosses(cross, rows, &begin);
  Ints indices(2 * begin[rows]), values(begin[rows]), dense(rows * most, -7);
  const Results results = {indices.data(), values.data(), dense.data(), most};
  const int64_t middle = rows / 2;
  WriteRows(cross, begin, middle, rows, results);
  WriteRows(cross, begin, 0, middle, results);
  int64_t at = 0, longest = 0;
  bool good = true;
  for (int64_t row = 0; row < rows; ++row) {
    Ints wanted;
    Walk(cross, row, 0, cross.key, &wanted);
    const int64_t count = static_cast<int64_t>(wanted.size());
    good &= begin[row] == at && begin[row + 1] == at + count;
    for (int64_t i = 0; i < most; ++i) good &= dense[row * most + i] == (i < count ? wanted[i] : 0);
    for (int64_t i = 0; i < count; ++i, ++at) {
      good &= values[at] == wanted[i] && indices[2 * at] == row && indices[2 * at + 1] == i;
    }
    longest = std::max(longest, count);
  }
  CHECK(good && longest == most);
  Ints only_values(begin[rows]);
  WriteRows(cross, begin, 0, rows, {nullptr, only_values.data()});
  CHECK(only_values == values);
  if (!IsPlain(cross)) return;
  Ints plain(rows), plain_indices(2 * rows), plain_dense(rows);
  WritePlain(cross, 0, middle, {plain_indices.data(), plain.data(), plain_dense.data(), 1});
  WritePlain(cross, middle, rows, {plain_indices.data(), plain.data(), plain_dense.data(), 1});
  CHECK(plain == values && plain_indices == indices && plain_dense == dense);
}

void TestCrosses() {
  for (const int64_t rows : {0, 1, 2, 7, 100}) {
    for (const int64_t buckets : {int64_t{0}, int64_t{1}, int64_t{10}, int64_t{1} << 62}) {
      Columns made = {rows, {}, {}, {}};
      const Column *one = made.Dense(1), *other = made.Dense(1), *wide = made.Dense(3),
                   *none = made.Dense(0), *some = made.Sparse(3), *few = made.Sparse(1);
      const std::vector<std::vector<const Column*>> crossed = {
          {one}, {one, other}, {one, other, one}, {wide, one}, {one, none},
          {some, few}, {few, some, wide, one}, {some, some}};
      for (const auto& columns : crossed) CheckCross({columns, random_source(), buckets}, rows);
      CHECK(IsPlain({crossed[2], 0, 0}) && !IsPlain({crossed[3], 0, 0}) &&
            !IsPlain({crossed[5], 0, 0}));
    }
  }
}

// What SparseCross gives for a row with the integer 123 under the key 77.
void TestKnownHash() {
  CHECK(Combine(77, 123) % Modulus({{}, 0, 0}) == 1198198130977274982);
}

void TestRows() {
  const Ints indices = {0, 0, 0, 1, 2, 0};
  CHECK((FindRows(indices.data(), 3, 3) == Ints{0, 2, 2, 3}));
  CHECK((FindRows(indices.data(), 3, 1) == Ints{0, 2}));
  CHECK((FindRows(indices.data(), 3, 0) == Ints{0}));
  CHECK((FindRows(nullptr, 0, 2) == Ints{0, 0, 0}));
  const Ints mixed = {1, 0, 0, 0};
  CHECK((FindRows(mixed.data(), 2, 2) == Ints{0, 0, 1}));
}

void TestTooMany() {
  Columns made = {2, {}, {}, {}};
  const Column huge = {nullptr, nullptr, int64_t{1} << 40};
  Ints begin;
  CHECK(CountCrosses({{&huge, &huge}, 0, 0}, 2, &begin) == -1);
  CHECK(CountCrosses({{&huge}, 0, 0}, 2, &begin) == int64_t{1} << 40);
}

}  // namespace

int main() {
  TestCrosses();
  TestKnownHash();
  TestRows();
  TestTooMany();
  return Report();
}
