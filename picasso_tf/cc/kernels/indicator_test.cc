// Stand-alone test of indicator columns: counts against a plain walk over all ids. Built and run as
// pooled_lookup_test.cc is.

#include <vector>

#include "picasso_tf/cc/kernels/indicator_loops.h"
#include "picasso_tf/cc/kernels/kernel_test.h"

namespace {

using namespace kernel_test;
using namespace picasso::indicators;

using Ints = std::vector<int64_t>;

void TestCounts() {
  for (const int64_t rows : {0, 1, 2, 50}) {
    for (const int64_t depth : {0, 1, 7}) {
      for (const int64_t stride : {0, 1}) {
        Ints indices, ids;
        const int64_t columns = 9;
        for (int64_t row = 0; row < rows; ++row) {
          for (int64_t column = Random(0, 12); column < columns; column += Random(1, 4)) {
            indices.insert(indices.end(), {row, column});
            ids.push_back(Random(-2, depth + 2));
          }
        }
        if (stride == 0) ids.assign(1, 3);
        const int64_t size = indices.size() / 2;
        const Feature feature = {indices.data(), ids.data(), stride, size, rows, columns, depth};
        CHECK(FindBadIndex(feature) == -1);
        std::vector<float> wanted(rows * depth), found(rows * depth, -7);
        for (int64_t i = 0; i < size; ++i) {
          const int64_t id = ids[i * stride];
          if (id >= 0 && id < depth) ++wanted[indices[2 * i] * depth + id];
        }
        const int64_t middle = rows / 3;
        WriteCounts(feature, middle, rows, found.data());
        WriteCounts(feature, 0, middle, found.data());
        CHECK(found == wanted);
      }
    }
  }
}

void TestBadIndices() {
  const auto bad = [](const Ints& indices) {
    const int64_t size = indices.size() / 2;
    return FindBadIndex({indices.data(), nullptr, 0, size, 3, 2, 5});
  };
  CHECK(bad({}) == -1);
  CHECK(bad({0, 0, 0, 1, 2, 0, 2, 1}) == -1);
  CHECK(bad({0, 0, 0, 0}) == 1);
  CHECK(bad({0, 1, 0, 0}) == 1);
  CHECK(bad({1, 0, 0, 1}) == 1);
  CHECK(bad({-1, 0}) == 0);
  CHECK(bad({0, -1}) == 0);
  CHECK(bad({3, 0}) == 0);
  CHECK(bad({0, 0, 1, 2}) == 1);
}

}  // namespace

int main() {
  TestCounts();
  TestBadIndices();
  return Report();
}
