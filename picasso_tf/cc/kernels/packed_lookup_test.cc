// Stand-alone test of the packed lookup: no TensorFlow, no test framework. From the project's root:
//
//   g++ -std=c++17 -g -O1 -fsanitize=address,undefined -pthread -I. -o packed_lookup_test
//       picasso_tf/cc/kernels/packed_lookup_test.cc   (one line)
//   ./packed_lookup_test
//
// Each output is filled by the CPU code and by the GPU's tile code, run on the host, and both are
// compared with a loop that follows the definition. Buffers have no byte to spare, so that the
// address sanitizer sees any access beyond them.

#include "picasso_tf/cc/kernels/packed_lookup.h"

#include <deque>
#include <vector>

#include "picasso_tf/cc/kernels/kernel_test.h"
#include "picasso_tf/cc/kernels/packed_lookup_cpu.h"
#include "picasso_tf/cc/kernels/packed_lookup_gpu.h"
#include "picasso_tf/cc/kernels/parallel_blocks.h"

namespace {

using namespace picasso::packed_lookup;

using namespace kernel_test;

using Bytes = std::vector<char>;

Bytes RandomBytes(int64_t size) {
  Bytes bytes(size);
  for (char& byte : bytes) byte = Random(0, 256);
  return bytes;
}

// One output and all that its pieces point to. `skew` shifts every buffer, to try each alignment.
class Output {
 public:
  Output(int64_t rows, int64_t skew) : rows_(rows), skew_(skew) {}

  // A piece of ids in columns [first, first + columns) of a matrix `pitch` wide; each is in range
  // after it is narrowed and wrapped.
  Piece& AddLookup(IdKind kind, int64_t table_rows, int64_t row_bytes, int64_t columns = 1,
                   int64_t pitch = 1, int64_t first = 0, bool wrap = false) {
    Piece piece;
    piece.table_rows = table_rows;
    piece.row_bytes = row_bytes;
    piece.id_kind = kind;
    piece.ids_columns = columns;
    piece.ids_pitch = pitch;
    piece.ids_first = first;
    piece.ids_per_row = columns;
    piece.wrap = wrap ? table_rows : 0;
    std::vector<int64_t>& ids = ids_.emplace_back(rows_ * pitch);
    for (int64_t& id : ids) {
      id = wrap ? Random(-table_rows, table_rows) : Random(0, table_rows);
      if (kind == IdKind::kInt64AsInt32) id += Random(-9, 9) * (int64_t{1} << 32);
    }
    return Add(piece);
  }

  Piece& AddDense(int64_t row_bytes) {
    Piece piece;
    piece.table_rows = rows_;
    piece.row_bytes = row_bytes;
    ids_.emplace_back();
    return Add(piece);
  }

  int64_t& Id(size_t piece, int64_t at) { return ids_[piece][at]; }

  // Lays the pieces out, after the last one was added or an id was changed.
  void Finish() {
    row_bytes_ = 0;
    for (const Piece& piece : pieces_) row_bytes_ += piece.ids_per_row * piece.row_bytes;
    narrow_ids_.clear();
    int64_t offset = 0;
    for (size_t i = 0; i < pieces_.size(); ++i) {
      Piece& piece = pieces_[i];
      const std::vector<int64_t>& ids = ids_[i];
      narrow_ids_.emplace_back(ids.begin(), ids.end());
      if (piece.id_kind == IdKind::kInt32) piece.ids = narrow_ids_.back().data();
      if (piece.id_kind == IdKind::kInt64 || piece.id_kind == IdKind::kInt64AsInt32) {
        piece.ids = ids.data();
      }
      piece.num_ids = rows_ * piece.ids_per_row;
      piece.out_pitch = row_bytes_;
      offsets_.resize(i + 1);
      offsets_[i] = offset;
      offset += piece.ids_per_row * piece.row_bytes;
    }
  }

  // By the definition; a bad id gives zeros.
  Bytes Wanted() const {
    Bytes out(rows_ * row_bytes_);
    for (size_t i = 0; i < pieces_.size(); ++i) {
      const Piece& piece = pieces_[i];
      for (int64_t row = 0; row < rows_; ++row) {
        for (int64_t k = 0; k < piece.ids_per_row; ++k) {
          int64_t id = row;
          if (piece.id_kind != IdKind::kRowNumber) {
            id = ids_[i][row * piece.ids_pitch + piece.ids_first + k];
            if (piece.id_kind == IdKind::kInt64AsInt32) id = static_cast<int32_t>(id);
            if (id < 0) id += piece.wrap;
          }
          if (id < 0 || id >= piece.table_rows) continue;
          for (int64_t b = 0; b < piece.row_bytes; ++b) {
            out[row * row_bytes_ + offsets_[i] + k * piece.row_bytes + b] =
                piece.table[id * piece.row_bytes + b];
          }
        }
      }
    }
    return out;
  }

  // By the CPU code, in blocks of the given number of rows.
  Bytes ByCpu(int64_t block_rows, bool* good) {
    Bytes out(skew_ + rows_ * row_bytes_);
    const std::vector<Piece> pieces = PlacedIn(out);
    *good = true;
    for (int64_t begin = 0; begin < rows_; begin += block_rows) {
      *good &= FillRows(pieces.data(), pieces.size(), begin, std::min(begin + block_rows, rows_));
    }
    return Bytes(out.begin() + skew_, out.end());
  }

  // By the GPU's code: the plan, then every thread of every tile.
  Bytes ByTiles(int threads) {
    Bytes out(skew_ + rows_ * row_bytes_, 1);
    const std::vector<Piece> pieces = PlacedIn(out);
    const int64_t n = pieces.size();
    std::vector<int64_t> plan((PlanBytes(n) + 7) / 8);
    const int64_t tiles = WritePlan(pieces.data(), n, plan.data());
    const int64_t* first_tile = FirstTiles(plan.data(), n);
    CHECK(first_tile[0] == 0 && first_tile[n] == tiles);
    const Piece* planned = reinterpret_cast<const Piece*>(plan.data());
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t tile = first_tile[i]; tile < first_tile[i + 1]; ++tile) {
        for (int t = 0; t < threads; ++t) FillTile(planned[i], tile - first_tile[i], t, threads);
      }
    }
    return Bytes(out.begin() + skew_, out.end());
  }

  const std::vector<Piece>& pieces() const { return pieces_; }

 private:
  Piece& Add(Piece piece) {
    tables_.push_back(RandomBytes(skew_ + piece.table_rows * piece.row_bytes));
    piece.table = tables_.back().data() + skew_;
    pieces_.push_back(piece);
    return pieces_.back();
  }

  std::vector<Piece> PlacedIn(Bytes& out) const {
    std::vector<Piece> pieces = pieces_;
    for (size_t i = 0; i < pieces.size(); ++i) pieces[i].out = out.data() + skew_ + offsets_[i];
    return pieces;
  }

  int64_t rows_;
  int64_t skew_;
  int64_t row_bytes_ = 0;
  std::vector<Piece> pieces_;
  std::vector<int64_t> offsets_;
  std::deque<Bytes> tables_;
  std::deque<std::vector<int64_t>> ids_;
  std::deque<std::vector<int32_t>> narrow_ids_;
};

void CheckFilled(Output& output) {
  output.Finish();
  const Bytes wanted = output.Wanted();
  for (int64_t block_rows : {1, 7, 128, 100000}) {
    bool good = false;
    CHECK(output.ByCpu(block_rows, &good) == wanted);
    CHECK(good);
  }
  CHECK(output.ByTiles(kGpuThreads) == wanted);
  CHECK(output.ByTiles(5) == wanted);
  for (const Piece& piece : output.pieces()) CHECK(FirstBadId(piece) == -1);
}

// Row sizes with and without an inner loop of their own, and of every alignment.
void TestRowSizes() {
  for (int64_t row_bytes : {2, 4, 6, 8, 12, 16, 32, 50, 64, 128, 256, 400, 512, 800, 20000}) {
    for (int64_t skew : {0, 2, 4, 8}) {
      Output output(33, skew);
      output.AddLookup(IdKind::kInt32, 11, row_bytes);
      output.AddLookup(IdKind::kInt64, 1, row_bytes);
      CheckFilled(output);
    }
  }
}

void TestIdKinds() {
  for (IdKind kind : {IdKind::kInt32, IdKind::kInt64, IdKind::kInt64AsInt32}) {
    for (bool wrap : {false, true}) {
      Output output(300, 0);
      output.AddLookup(kind, 50, 16, 1, 1, 0, wrap);
      output.AddLookup(kind, 50, 12, 1, 6, 4, wrap);
      output.AddLookup(kind, 50, 4, 3, 6, 2, wrap);
      output.AddLookup(kind, 50, 64, 6, 6, 0, wrap);
      CheckFilled(output);
    }
  }
}

void TestDensePassesThrough() {
  Output output(300, 0);
  output.AddDense(52);
  output.AddLookup(IdKind::kInt32, 50, 32);
  output.AddDense(8);
  CheckFilled(output);
}

void TestNothingToDo() {
  Output no_rows(0, 0);
  no_rows.AddLookup(IdKind::kInt32, 5, 32);
  CheckFilled(no_rows);
  Output no_bytes(9, 0);
  no_bytes.AddLookup(IdKind::kInt32, 5, 0);
  CheckFilled(no_bytes);
}

// More ids in a row, and more pieces, than one batch holds.
void TestBatchesOverflow() {
  Output wide(3, 0);
  wide.AddLookup(IdKind::kInt64, 50, 8, 3000, 3001, 1);
  CheckFilled(wide);
  Output many(5, 0);
  for (int i = 0; i < 200; ++i) many.AddLookup(IdKind::kInt32, 20, 4 * (i % 9 + 1));
  CheckFilled(many);
}

void TestRandomOutputs() {
  for (int i = 0; i < 200; ++i) {
    Output output(Random(0, 80), 2 * Random(0, 8));
    const int64_t pieces = Random(1, 12);
    for (int64_t p = 0; p < pieces; ++p) {
      const int64_t row_bytes = 2 * Random(1, 80);
      if (Random(0, 5) == 0) {
        output.AddDense(row_bytes);
        continue;
      }
      const int64_t pitch = Random(1, 9);
      const int64_t first = Random(0, pitch);
      output.AddLookup(static_cast<IdKind>(Random(1, 4)), Random(1, 30), row_bytes,
                       Random(1, pitch - first + 1), pitch, first, Random(0, 2));
    }
    CheckFilled(output);
  }
}

void TestBadIds() {
  for (int64_t bad : {int64_t{50}, int64_t{-1}, INT64_MAX, INT64_MIN, int64_t{INT32_MIN}}) {
    const bool fits = bad == static_cast<int32_t>(bad);
    Output output(300, 0);
    output.AddLookup(IdKind::kInt64, 50, 16);
    output.AddLookup(fits ? IdKind::kInt32 : IdKind::kInt64, 50, 32, 2, 3, 1);
    output.Id(1, 3 * 207 + 2) = bad;
    output.Id(1, 3 * 290 + 1) = bad;
    output.Finish();
    bool good = true;
    output.ByCpu(128, &good);
    CHECK(!good);
    CHECK(FirstBadId(output.pieces()[0]) == -1);
    CHECK(FirstBadId(output.pieces()[1]) == 2 * 207 + 1);
    CHECK(IdAt(output.pieces()[1], 2 * 207 + 1) == bad);
    CHECK(output.ByTiles(kGpuThreads) == output.Wanted());
  }
}

void TestEmptyTable() {
  Output output(4, 0);
  output.AddLookup(IdKind::kInt32, 1, 16).table_rows = 0;
  output.Finish();
  bool good = true;
  output.ByCpu(2, &good);
  CHECK(!good);
  CHECK(output.ByTiles(kGpuThreads) == Bytes(4 * 16));
}

void TestPlanRefusesRowsBeyond32Bits() {
  Piece piece;
  piece.row_bytes = int64_t{1} << 31;
  std::vector<int64_t> plan(PlanBytes(1) / 8);
  CHECK(WritePlan(&piece, 1, plan.data()) == -1);
  piece.row_bytes = 1 << 20;
  piece.ids_per_row = 1 << 11;
  CHECK(WritePlan(&piece, 1, plan.data()) == -1);
}

void TestBlocks() {
  Piece piece;
  piece.row_bytes = 4;
  CHECK(BlockRows({&piece, 1, 10}) == kBlockBytes / kCacheLine);
  piece.row_bytes = kBlockBytes + 4;
  CHECK(BlockRows({&piece, 1, 10}) == 1);
  const std::vector<Piece> pieces(8, piece);
  CHECK(RowTraffic({pieces.data(), 8, 10}) == 8 * (kBlockBytes + 4));
}

void TestParallelBlocks() {
  for (int threads : {1, 2, 8}) {
    for (int64_t blocks : {0, 1, 2, 500}) {
      for (int64_t max_threads : {0, 1, 100}) {
        std::vector<int> runs(blocks);  // no atomics: each block belongs to one thread
        TestPool pool(threads);
        picasso::ParallelBlocks(&pool, blocks, max_threads, [&](int64_t block) { ++runs[block]; });
        CHECK(runs == std::vector<int>(blocks, 1));
      }
    }
  }
}

}  // namespace

int main() {
  TestRowSizes();
  TestIdKinds();
  TestDensePassesThrough();
  TestNothingToDo();
  TestBatchesOverflow();
  TestRandomOutputs();
  TestBadIds();
  TestEmptyTable();
  TestPlanRefusesRowsBeyond32Bits();
  TestBlocks();
  TestParallelBlocks();
  return Report();
}
