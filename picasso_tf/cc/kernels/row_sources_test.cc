// Stand-alone test of tables in shards and of clipped rows: no TensorFlow, no test
// framework. Each is compared with a loop that follows the definition, in the packed
// lookup and in the pooled one. Buffers have no byte to spare, so that the address
// sanitizer sees any access beyond them.

#include <cmath>
#include <limits>
#include <vector>

#include "picasso_tf/cc/kernels/clip_rows.h"
#include "picasso_tf/cc/kernels/kernel_test.h"
#include "picasso_tf/cc/kernels/packed_lookup_cpu.h"
#include "picasso_tf/cc/kernels/pooled_lookup_cpu.h"
#include "picasso_tf/cc/kernels/shards.h"

namespace {

using namespace picasso;
using namespace kernel_test;

// A table of float rows in shards, and the same rows in one piece.
struct Table {
  Table(int64_t num, int64_t total, int64_t width, bool consecutive) : width(width) {
    shards.num = num;
    if (consecutive) {
      shards.rows = total / num;
      shards.extras = total % num;
    }
    whole.resize(total * width);
    for (float& element : whole) element = static_cast<float>(Random(-99, 99)) / 8;
    memory.resize(num);
    for (int64_t id = 0; id < total; ++id) {
      std::vector<float>& shard = memory[ShardOf(id)];
      shard.insert(shard.end(), &whole[id * width], &whole[id * width] + width);
    }
    for (const std::vector<float>& shard : memory) {
      list.push_back({reinterpret_cast<const char*>(shard.data()),
                      static_cast<int64_t>(shard.size()) / width});
    }
    shards.list = list.data();
  }

  int64_t ShardOf(int64_t id) const {
    if (shards.rows == 0) return id % shards.num;
    const int64_t in_longer = shards.extras * (shards.rows + 1);
    if (id < in_longer) return id / (shards.rows + 1);
    return shards.extras + (id - in_longer) / shards.rows;
  }

  int64_t width;
  std::vector<float> whole;
  std::vector<std::vector<float>> memory;
  std::vector<Shard> list;
  Shards shards;
};

void TestEveryId(int64_t num, int64_t total, bool consecutive) {
  const Table table(num, total, 3, consecutive);
  for (int64_t id = -total - 5; id < 2 * total + 5; ++id) {
    const char* row = nullptr;
    const bool found = FindRow(table.shards, id, 3 * sizeof(float), &row);
    CHECK(found == (id >= 0 && id < total));
    if (!found) continue;
    CHECK(std::memcmp(row, &table.whole[id * 3], 3 * sizeof(float)) == 0);
  }
  const char* ignored = nullptr;
  for (const int64_t id :
       {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::min() + total}) {
    if (!consecutive) CHECK(!FindRow(table.shards, id, 0, &ignored));
  }
}

// Shards are numbered by int32 in TensorFlow, which cuts larger numbers.
void TestShardNumbersAreCut() {
  const Table table(3, 30, 2, /*consecutive=*/true);
  const char *row = nullptr, *wanted = nullptr;
  CHECK(FindRow(table.shards, (int64_t{1} << 32) * 10 + 7, 8, &row));
  CHECK(FindRow(table.shards, 7, 8, &wanted));
  CHECK(row == wanted);
}

template <typename T>
T SlowSumOfSquares(const std::vector<T>& row) {
  const size_t packet = 32 / sizeof(T), chains = row.size() < 8 * packet ? 1 : 4;
  const size_t in_packets = row.size() / packet * packet;
  const size_t in_chains = row.size() / (chains * packet) * chains * packet;
  std::vector<T> lanes(packet);
  for (size_t lane = 0; lane < packet; ++lane) {
    for (size_t chain = 0; chain < chains; ++chain) {
      T sum(0);
      for (size_t i = chain * packet + lane; i < in_chains; i += chains * packet) {
        sum = sum + row[i] * row[i];
      }
      lanes[lane] = lanes[lane] + sum;
    }
    for (size_t i = in_chains + lane; i < in_packets; i += packet) {
      lanes[lane] = lanes[lane] + row[i] * row[i];
    }
  }
  for (size_t half = packet / 2; half > 0; half /= 2) {
    for (size_t i = 0; i < half; ++i) lanes[i] = lanes[i] + lanes[i + half];
  }
  T rest(0);
  for (size_t i = in_packets; i < row.size(); ++i) rest = rest + row[i] * row[i];
  return lanes[0] + rest;
}

template <typename T>
void TestClipping() {
  for (int64_t size = 1; size < 300; ++size) {
    std::vector<T> row(size);
    for (T& element : row) element = static_cast<T>(Random(-999, 999)) / 97;
    CHECK(SumOfSquares(row.data(), size) == SlowSumOfSquares(row));
    const T norm = std::sqrt(SlowSumOfSquares(row));
    for (const T most : {T(0.5), T(1e6)}) {
      std::vector<T> clipped = row;
      ClipRow(clipped.data(), size, most);
      for (int64_t i = 0; i < size; ++i) CHECK(clipped[i] == row[i] * most / std::max(norm, most));
    }
  }
  std::vector<T> zeros(5), bad(5, std::numeric_limits<T>::quiet_NaN());
  ClipRow(zeros.data(), 5, T(2));
  ClipRow(bad.data(), 5, T(2));
  for (int i = 0; i < 5; ++i) CHECK(zeros[i] == 0 && std::isnan(bad[i]));
}

// Some ids of a table in shards, looked up, each row clipped where `max_norm` is above 0.
void TestLookups(const Table& table, float max_norm) {
  const int64_t width = table.width, count = Random(1, 400);
  const int64_t total = table.whole.size() / width;
  std::vector<int64_t> ids(count), segments(count);
  for (int64_t j = 0; j < count; ++j) {
    ids[j] = Random(0, total);
    segments[j] = j / 3;
  }
  std::vector<float> rows(count * width), sums((count + 2) / 3 * width, -0.0f);
  for (int64_t j = 0; j < count; ++j) {
    std::copy_n(&table.whole[ids[j] * width], width, &rows[j * width]);
    if (max_norm > 0) ClipRow(&rows[j * width], width, max_norm);
    for (int64_t k = 0; k < width; ++k) sums[j / 3 * width + k] += rows[j * width + k];
  }
  std::vector<float> found(rows.size()), pooled(sums.size());

  packed_lookup::Piece piece;
  piece.ids = ids.data();
  piece.id_kind = IdKind::kInt64;
  piece.num_ids = count;
  piece.shards = &table.shards;
  piece.row_bytes = piece.out_pitch = width * sizeof(float);
  piece.max_norm = max_norm;
  piece.out = reinterpret_cast<char*>(found.data());
  CHECK(packed_lookup::FillRows(&piece, 1, 0, count));
  CHECK(found == rows);
  ids[count / 2] = total + table.shards.num;
  CHECK(!packed_lookup::FillRows(&piece, 1, 0, count));
  CHECK(FirstBadId(piece) == count / 2);

  pooled_lookup::Piece bags;
  static_cast<IdList&>(bags) = piece;
  bags.drop_negative = true;
  bags.segments.data = segments.data();
  bags.segments.is_int64 = true;
  bags.rows = (count + 2) / 3;
  bags.row_bytes = bags.out_pitch = width * sizeof(float);
  bags.max_norm = max_norm;
  bags.out = reinterpret_cast<char*>(pooled.data());
  std::vector<int64_t> starts(bags.rows + 1);
  bags.starts = starts.data();
  CHECK(pooled_lookup::FindStarts(bags));
  const pooled_lookup::Matrix matrix{&bags, 1, bags.rows};
  CHECK(!pooled_lookup::FillRows<float>(matrix, 0, bags.rows));
  ids[count / 2] = -3;  // as if it was not there
  const int64_t row = segments[count / 2];
  for (int64_t k = 0; k < width; ++k) {
    float& sum = sums[row * width + k] = 0;
    for (int64_t j = 3 * row; j < std::min(3 * row + 3, count); ++j) {
      if (j != count / 2) sum += rows[j * width + k];
    }
  }
  CHECK(pooled_lookup::FillRows<float>(matrix, 0, bags.rows));
  CHECK(pooled == sums);
}

}  // namespace

int main() {
  for (const bool consecutive : {false, true}) {
    for (int64_t num = 2; num < 7; ++num) {
      for (int64_t total = num; total < 40; ++total) TestEveryId(num, total, consecutive);
    }
  }
  TestShardNumbersAreCut();
  TestClipping<float>();
  TestClipping<double>();
  for (int round = 0; round < 200; ++round) {
    const int64_t num = Random(2, 6);
    const Table table(num, Random(num, 50), Random(1, 90), round % 2 == 0);
    TestLookups(table, round % 3 == 0 ? 2.0f : 0.0f);
  }
  return Report();
}
