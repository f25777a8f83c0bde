// CPU side of the packed lookup.
//
// A gather of short rows waits for memory, not for the processor. So ids are
// first turned into row addresses, a batch across pieces at a time, and the
// copy loop then prefetches kAhead rows before the one it copies: the next
// table's rows are on their way before the current table is done.

#ifndef PICASSO_TF_CC_KERNELS_PACKED_LOOKUP_CPU_H_
#define PICASSO_TF_CC_KERNELS_PACKED_LOOKUP_CPU_H_

#include "picasso_tf/cc/kernels/clip_rows.h"
#include "picasso_tf/cc/kernels/packed_lookup.h"

namespace picasso {
namespace packed_lookup {

constexpr int64_t kAhead = 48;
constexpr int64_t kBatchIds = 1024;
constexpr int64_t kCacheLine = 64;
constexpr int64_t kPrefetchedBytes = 512;  // the hardware sees longer streams

inline void PrefetchRow(const char* row, int64_t row_bytes) {
  const int64_t bytes = std::min(row_bytes, kPrefetchedBytes);
  for (int64_t at = 0; at < bytes; at += kCacheLine) {
    __builtin_prefetch(row + at, 0, 3);
  }
}

// Turns ids [first, first + n) into row addresses. False: one is out of range.
template <IdKind kKind>
bool ResolveAs(const Piece& piece, int64_t first, int64_t n, const char** rows) {
  bool good = true;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t id = LoadId<kKind>(piece, IdPosition(piece, first + i));
    const bool in_range = InRange(piece, id);
    good &= in_range;
    rows[i] = piece.table + (in_range ? id : 0) * piece.row_bytes;
  }
  return good;
}

// The same where the table has shards.
inline bool ResolveInShards(const Piece& piece, int64_t first, int64_t n, const char** rows) {
  for (int64_t i = 0; i < n; ++i) {
    const int64_t id = IdAt(piece, first + i);
    if (!FindRow(*piece.shards, id, piece.row_bytes, &rows[i])) return false;
  }
  return true;
}

inline bool Resolve(const Piece& piece, int64_t first, int64_t n, const char** rows) {
  if (piece.shards != nullptr) return ResolveInShards(piece, first, n, rows);
  switch (piece.id_kind) {
    case IdKind::kInt32:
      return ResolveAs<IdKind::kInt32>(piece, first, n, rows);
    case IdKind::kInt64:
      return ResolveAs<IdKind::kInt64>(piece, first, n, rows);
    case IdKind::kInt64AsInt32:
      return ResolveAs<IdKind::kInt64AsInt32>(piece, first, n, rows);
    default:
      return ResolveAs<IdKind::kRowNumber>(piece, first, n, rows);
  }
}

// Copies n rows to where ids first, first + 1, ... of the piece go. kBytes is
// the row size where it is known at compile time, else 0. `rows` may be read
// kAhead entries past n.
template <int64_t kBytes>
void CopyRowsOf(const Piece& piece, int64_t first, int64_t n, const char* const* rows) {
  const int64_t bytes = kBytes == 0 ? piece.row_bytes : kBytes;
  int64_t column = first % piece.ids_per_row;
  char* out_row = piece.out + first / piece.ids_per_row * piece.out_pitch;
  char* out = out_row + column * bytes;
  for (int64_t i = 0; i < n; ++i) {
    PrefetchRow(rows[i + kAhead], bytes);
    std::memcpy(out, rows[i], bytes);
    out += bytes;
    if (++column == piece.ids_per_row) {
      column = 0;
      out_row += piece.out_pitch;
      out = out_row;
    }
  }
}

inline void CopyRows(const Piece& piece, int64_t first, int64_t n, const char* const* rows) {
  switch (piece.row_bytes) {
    case 0:
      return;  // rows without elements; their addresses may be null
    case 4:
      return CopyRowsOf<4>(piece, first, n, rows);
    case 8:
      return CopyRowsOf<8>(piece, first, n, rows);
    case 16:
      return CopyRowsOf<16>(piece, first, n, rows);
    case 32:
      return CopyRowsOf<32>(piece, first, n, rows);
    case 64:
      return CopyRowsOf<64>(piece, first, n, rows);
    case 128:
      return CopyRowsOf<128>(piece, first, n, rows);
    case 256:
      return CopyRowsOf<256>(piece, first, n, rows);
    case 512:
      return CopyRowsOf<512>(piece, first, n, rows);
    default:
      return CopyRowsOf<0>(piece, first, n, rows);
  }
}

template <typename T>
void ClipRowsOf(const Piece& piece, int64_t first, int64_t n) {
  const int64_t width = piece.row_bytes / sizeof(T);
  for (int64_t j = first; j < first + n; ++j) {
    char* row = piece.out + j / piece.ids_per_row * piece.out_pitch +
                j % piece.ids_per_row * piece.row_bytes;
    ClipRow(reinterpret_cast<T*>(row), width, static_cast<T>(piece.max_norm));
  }
}

// Clips the rows that were copied to where ids first, first + 1, ... go.
inline void ClipRows(const Piece& piece, int64_t first, int64_t n) {
  piece.is_double ? ClipRowsOf<double>(piece, first, n) : ClipRowsOf<float>(piece, first, n);
}

// Row addresses of runs of ids, collected across pieces, then copied at once.
class Batch {
 public:
  // Takes up to n ids; returns how many, or -1 when one is out of range.
  int64_t Add(const Piece& piece, int64_t first, int64_t n) {
    n = std::min(n, kBatchIds - num_rows_);
    if (!Resolve(piece, first, n, rows_ + num_rows_)) return -1;
    runs_[num_runs_++] = {&piece, first, n};
    num_rows_ += n;
    return n;
  }

  bool Full() const { return num_rows_ == kBatchIds || num_runs_ == kMaxRuns; }

  void Copy() {
    if (num_rows_ == 0) return;
    std::fill_n(rows_ + num_rows_, kAhead, rows_[num_rows_ - 1]);
    const char* const* rows = rows_;
    for (int i = 0; i < num_runs_; ++i) {
      CopyRows(*runs_[i].piece, runs_[i].first, runs_[i].n, rows);
      if (runs_[i].piece->max_norm > 0) ClipRows(*runs_[i].piece, runs_[i].first, runs_[i].n);
      rows += runs_[i].n;
    }
    num_rows_ = 0;
    num_runs_ = 0;
  }

 private:
  struct Run {
    const Piece* piece;
    int64_t first;
    int64_t n;
  };
  static constexpr int kMaxRuns = 64;

  const char* rows_[kBatchIds + kAhead];
  Run runs_[kMaxRuns];
  int64_t num_rows_ = 0;
  int num_runs_ = 0;
};

// Fills rows [begin, end) of one output matrix from all of its pieces. False:
// an id is out of range; nothing outside a table was read, and what was written
// is of no use.
inline bool FillRows(const Piece* pieces, int64_t num_pieces, int64_t begin, int64_t end) {
  Batch batch;
  for (const Piece* piece = pieces; piece < pieces + num_pieces; ++piece) {
    const int64_t last = end * piece->ids_per_row;
    for (int64_t j = begin * piece->ids_per_row; j < last;) {
      const int64_t taken = batch.Add(*piece, j, last - j);
      if (taken < 0) return false;
      j += taken;
      if (batch.Full()) batch.Copy();
    }
  }
  batch.Copy();
  return true;
}

// Work is cut into blocks of rows of about this much memory traffic: they stay
// in a core's own cache while piece after piece is written into them.
constexpr int64_t kBlockBytes = 256 << 10;

// Bytes that one row of the output moves. A table row costs a cache line at
// least, however short it is.
inline int64_t RowTraffic(const Matrix& matrix) {
  int64_t bytes = 0;
  for (int64_t i = 0; i < matrix.num_pieces; ++i) {
    const Piece& piece = matrix.pieces[i];
    bytes += piece.ids_per_row * std::max(piece.row_bytes, kCacheLine);
  }
  return bytes;
}

inline int64_t BlockRows(const Matrix& matrix) {
  return std::max<int64_t>(kBlockBytes / RowTraffic(matrix), 1);
}

}  // namespace packed_lookup
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_PACKED_LOOKUP_CPU_H_
