// CPU side of the packed pooled lookup.
//
// As in the packed lookup, ids are first turned into row addresses, a batch across
// pieces at a time, and rows are prefetched kAhead before they are added up.
//
// Where the rows begin among the ids is found before, for each lookup once; that checks
// the segments too. Ids are checked when they are used.

#ifndef PICASSO_TF_CC_KERNELS_POOLED_LOOKUP_CPU_H_
#define PICASSO_TF_CC_KERNELS_POOLED_LOOKUP_CPU_H_

#include <algorithm>
#include <cstring>
#include <deque>
#include <limits>
#include <type_traits>
#include <vector>

#include "picasso_tf/cc/kernels/clip_rows.h"
#include "picasso_tf/cc/kernels/pooled_loops.h"
#include "picasso_tf/cc/kernels/pooled_lookup.h"
#include "picasso_tf/cc/kernels/pooled_segments.h"

namespace picasso {
namespace pooled_lookup {

constexpr int64_t kBatchIds = 1024;
constexpr int64_t kBatchRows = 512;

// ---- Rows of the output ----------------------------------------------------------

// Addresses of table rows, collected across pieces, then combined at once.
template <typename T>
class Batch {
  using C = Compute<T>;

 public:
  Batch() : rows_(kBatchIds + kAhead) {}

  // Adds output rows [begin, end) of a piece. False: an id or the row that fills is out of
  // range.
  bool Add(const Piece& piece, int64_t begin, int64_t end) {
    if (piece.mask != nullptr) MakeZeros(piece.row_bytes);
    switch (piece.id_kind) {
      case IdKind::kInt32:
        return AddAs<IdKind::kInt32>(piece, begin, end);
      case IdKind::kInt64AsInt32:
        return AddAs<IdKind::kInt64AsInt32>(piece, begin, end);
      default:
        return AddAs<IdKind::kInt64>(piece, begin, end);
    }
  }

  void Pool() {
    if (num_out_ == 0) return;
    std::fill_n(&rows_[num_rows_], kAhead, rows_[num_rows_ - 1]);
    PoolRows(out_, num_out_, rows_.data());
    num_rows_ = 0;
    num_out_ = 0;
    clipped_.clear();
  }

 private:
  template <IdKind kKind>
  bool AddAs(const Piece& piece, int64_t begin, int64_t end) {
    const int64_t width = piece.row_bytes / sizeof(T);
    for (int64_t row = begin; row < end; ++row) {
      const int64_t first = piece.starts[row], last = piece.starts[row + 1];
      MakeRoom(std::max<int64_t>(last - first, 1), piece.weights != nullptr);
      const bool plain = piece.weights == nullptr && piece.shards == nullptr && piece.max_norm == 0;
      int64_t num = plain ? Resolve<kKind>(piece, first, last)
                          : ResolveOneByOne<kKind>(piece, first, last);
      if (num < 0) return false;
      const C* weights = piece.weights == nullptr ? nullptr : &weights_[num_rows_];
      T* out = reinterpret_cast<T*>(piece.out + row * piece.out_pitch);
      // SegmentSum adds up each row by itself.
      const Columns packets = PacketsOfRow<C>(piece.segments.length >= 0 ? row : 0, width);
      if (num == 0) {
        if (piece.fill < 0) {
          std::fill_n(out, width, OfNoRow(piece));
          continue;
        }
        if (!Take(piece, piece.fill, &rows_[num_rows_])) return false;
        num = 1;
        weights = nullptr;  // its weight is 1
      }
      out_[num_out_++] = {out,     num, width, piece.combiner, OrderOf(piece, weights, width),
                          packets, weights};
      num_rows_ += num;
    }
    return true;
  }

  // `weights`: those of one row of the output, which one that is filled has none of.
  static Order OrderOf(const Piece& piece, const C* weights, int64_t width) {
    if (piece.in_turn) return Order::kInTurn;
    if (piece.segments.length >= 0) return width == 1 ? Order::kInnermost : Order::kColumns;
    return weights == nullptr ? Order::kGroups : Order::kColumns;
  }

  // Mean divides the sum of no row, zero, by zero.
  static T OfNoRow(const Piece& piece) {
    const bool divides = piece.segments.length >= 0 && piece.combiner == Combiner::kMean;
    return divides ? Value<T>::Store(std::numeric_limits<C>::quiet_NaN()) : T{};
  }

  // Appends the addresses of ids [first, last). Returns how many rows these are, or
  // -1 where an id is out of range.
  template <IdKind kKind>
  int64_t Resolve(const Piece& piece, int64_t first, int64_t last) {
    const T** rows = &rows_[num_rows_];
    const IdList list = piece;  // what is stored below may not change it
    const int64_t shift = IdPosition(list, first) - first;  // within a row of a matrix
    int64_t num = 0;
    bool good = true;
    for (int64_t j = first; j < last; ++j) {
      const int64_t id = LoadId<kKind>(list, j + shift);
      const bool in_range = InRange(list, id);
      good &= in_range | (piece.drop_negative & (id < 0));
      rows[num] = RowOf(piece, in_range ? id : 0);
      num += in_range;
    }
    if (piece.mask != nullptr && good) HideRows(piece.mask, first, last);
    return good ? num : -1;
  }

  // Puts zeros in the place of appended rows that a mask hides.
  void HideRows(const bool* mask, int64_t first, int64_t last) {
    const T* zeros = reinterpret_cast<const T*>(zeros_.data());
    for (int64_t j = first; j < last; ++j) {
      if (!mask[j]) rows_[num_rows_ + j - first] = zeros;
    }
  }

  // For a piece with a mask.
  void MakeZeros(size_t row_bytes) {
    if (zeros_.size() >= row_bytes) return;
    Pool();  // rows that were collected before may point to the old ones
    zeros_.resize(row_bytes);
  }

  // The same for a table with shards, for rows that are clipped, and for ids that have
  // weights, which are appended beside the addresses.
  template <IdKind kKind>
  int64_t ResolveOneByOne(const Piece& piece, int64_t first, int64_t last) {
    const C* given = static_cast<const C*>(piece.weights);
    const int64_t shift = IdPosition(piece, first) - first;
    int64_t num = 0;
    for (int64_t j = first; j < last; ++j) {
      if (IsLeftOut(piece, j)) continue;
      if (!Take(piece, LoadId<kKind>(piece, j + shift), &rows_[num_rows_ + num])) return -1;
      if (given != nullptr) weights_[num_rows_ + num] = given[j];
      ++num;
    }
    if (piece.mask != nullptr) HideRows(piece.mask, first, last);  // none is left out then
    return num;
  }

  // For one more row of the output, with `num` ids.
  void MakeRoom(int64_t num, bool weighted) {
    if (num_rows_ + num > kBatchIds || num_out_ == kBatchRows) Pool();
    const size_t wanted = num + kAhead;
    if (wanted > rows_.size()) rows_.resize(wanted);
    // Rows that were collected before point to their weights; with any, there is room.
    if (weighted && weights_.size() < rows_.size()) weights_.resize(rows_.size());
  }

  // Sets `row` to row `id`, where there is one, or to a clipped copy of it.
  bool Take(const Piece& piece, int64_t id, const T** row) {
    if (!Find(piece, id, row)) return false;
    if constexpr (std::is_same_v<T, C>) {
      if (piece.max_norm > 0) {
        std::vector<T>& copy = clipped_.emplace_back(*row, *row + piece.row_bytes / sizeof(T));
        ClipRow(copy.data(), copy.size(), static_cast<T>(piece.max_norm));
        *row = copy.data();
      }
    }
    return true;
  }

  // Sets `row` to the address of row `id`, where there is one.
  static bool Find(const Piece& piece, int64_t id, const T** row) {
    if (piece.shards == nullptr) {
      if (!InRange(piece, id)) return false;
      *row = RowOf(piece, id);
      return true;
    }
    const char* found = nullptr;
    const bool is_there = FindRow(*piece.shards, id, piece.row_bytes, &found);
    *row = reinterpret_cast<const T*>(found);
    return is_there;
  }

  static const T* RowOf(const Piece& piece, int64_t id) {
    return reinterpret_cast<const T*>(piece.table + id * piece.row_bytes);
  }

  std::vector<const T*> rows_;
  std::deque<std::vector<T>> clipped_;
  std::vector<C> weights_;   // as many as rows, once there is a lookup with weights
  std::vector<char> zeros_;  // a row, once there is a lookup with a mask
  PooledRow<T> out_[kBatchRows];
  int64_t num_rows_ = 0;
  int64_t num_out_ = 0;
};

inline void CopyDense(const Piece& piece, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    std::memcpy(piece.out + row * piece.out_pitch, piece.table + row * piece.row_bytes,
                piece.row_bytes);
  }
}

// Fills rows [begin, end) of one output matrix from all of its pieces, whose starts were
// found. False: an id is out of range; nothing outside a table was read, and what was
// written is of no use.
template <typename T>
bool FillRows(const Matrix& matrix, int64_t begin, int64_t end) {
  Batch<T> batch;
  for (int64_t i = 0; i < matrix.num_pieces; ++i) {
    const Piece& piece = matrix.pieces[i];
    if (piece.IsDense()) {
      CopyDense(piece, begin, end);
    } else if (!batch.Add(piece, begin, end)) {
      return false;
    }
  }
  batch.Pool();
  return true;
}

// ---- Blocks ----------------------------------------------------------------------

// Work is cut into blocks of rows of the output that stay in a core's own cache while
// piece after piece is written into them. There are some blocks at least, for threads
// to share.
constexpr int64_t kBlockBytes = 256 << 10;
constexpr int64_t kFewestBlocks = 16;

// Bytes that one row of the output moves on average. A table row costs a cache line at
// least, however short it is.
inline int64_t RowTraffic(const Matrix& matrix) {
  double bytes = 0;
  for (int64_t i = 0; i < matrix.num_pieces; ++i) {
    const Piece& piece = matrix.pieces[i];
    const double row = static_cast<double>(std::max(piece.row_bytes, kCacheLine));
    const double rows = static_cast<double>(std::max<int64_t>(matrix.rows, 1));
    bytes += row + row * static_cast<double>(piece.num_ids) / rows;
  }
  return std::max<int64_t>(static_cast<int64_t>(bytes), 1);
}

inline int64_t BlockRows(const Matrix& matrix) {
  int64_t bytes = 0;
  for (int64_t i = 0; i < matrix.num_pieces; ++i) bytes += matrix.pieces[i].row_bytes;
  bytes = std::max<int64_t>(bytes, 1);
  return std::max<int64_t>(1, std::min(kBlockBytes / bytes, matrix.rows / kFewestBlocks));
}

}  // namespace pooled_lookup
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_POOLED_LOOKUP_CPU_H_
