// The arithmetic of hashed crosses, as SparseCross does it: each combination of one feature of
// every column becomes a hash, row by row, the last column's features changing fastest.

#ifndef PICASSO_TF_CC_KERNELS_CROSS_LOOPS_H_
#define PICASSO_TF_CC_KERNELS_CROSS_LOOPS_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace picasso {
namespace crosses {

// The features of all rows, one after the other: hashes of strings, or integers as they are.
struct Column {
  const uint64_t* features = nullptr;
  const int64_t* row_begin = nullptr;  // of each row, and the end; null: rows have `width` each
  int64_t width = 0;

  int64_t Begin(int64_t row) const { return row_begin ? row_begin[row] : row * width; }
  int64_t Count(int64_t row) const { return Begin(row + 1) - Begin(row); }
};

struct Cross {
  std::vector<const Column*> columns;  // at least one
  uint64_t key;
  int64_t num_buckets;  // 0: as many as there are
};

// Where results go; what nobody reads is null.
struct Results {
  int64_t* indices = nullptr;  // [crosses, 2]
  int64_t* values = nullptr;   // [crosses]
  int64_t* dense = nullptr;    // [rows, row_size], with zeros behind a row's crosses
  int64_t row_size = 0;
};

inline uint64_t ShiftMix(uint64_t value) { return value ^ (value >> 47); }

// The fingerprint of two fingerprints, as TensorFlow's FingerprintCat64 defines it.
inline uint64_t Combine(uint64_t first, uint64_t second) {
  constexpr uint64_t kMul = 0xc6a4a7935bd1e995;
  const uint64_t mixed = ((first ^ kMul) ^ (ShiftMix(second * kMul) * kMul)) * kMul;
  return ShiftMix(ShiftMix(mixed) * kMul);
}

// How many hashes there are. Without a number of buckets all that are not negative, but for one.
inline uint64_t Modulus(const Cross& cross) {
  return cross.num_buckets > 0 ? cross.num_buckets : std::numeric_limits<int64_t>::max();
}

// Where the rows of a SparseTensor begin, by its `size` indices [row, position]. A row ends where
// the next index names another one; an index whose row has passed, and all after it, are in none.
inline std::vector<int64_t> FindRows(const int64_t* indices, int64_t size, int64_t rows) {
  std::vector<int64_t> begin(rows + 1);
  int64_t at = 0;
  for (int64_t row = 0; row < rows; ++row) {
    begin[row] = at;
    while (at < size && indices[2 * at] == row) ++at;
  }
  begin[rows] = at;
  return begin;
}

// Where the crosses of each row begin, and the end. Returns the most that a row has, or -1 when
// there are more than can be counted.
inline int64_t CountCrosses(const Cross& cross, int64_t rows, std::vector<int64_t>* begin) {
  begin->assign(rows + 1, 0);
  int64_t most = 0;
  for (int64_t row = 0; row < rows; ++row) {
    int64_t count = 1;
    for (const Column* column : cross.columns) {
      if (__builtin_mul_overflow(count, column->Count(row), &count)) return -1;
    }
    most = std::max(most, count);
    if (__builtin_add_overflow((*begin)[row], count, &(*begin)[row + 1])) return -1;
  }
  return most;
}

// One feature in each row of each column, which is what most models cross.
inline bool IsPlain(const Cross& cross) {
  return std::all_of(cross.columns.begin(), cross.columns.end(), [](const Column* column) {
    return column->row_begin == nullptr && column->width == 1;
  });
}

inline void WriteHash(const Results& results, int64_t at, int64_t row, int64_t position,
                      int64_t hash) {
  if (results.indices) {
    results.indices[2 * at] = row;
    results.indices[2 * at + 1] = position;
  }
  if (results.values) results.values[at] = hash;
  if (results.dense) results.dense[row * results.row_size + position] = hash;
}

// Writes what rows [first, last) of a plain cross are.
inline void WritePlain(const Cross& cross, int64_t first, int64_t last, const Results& results) {
  const uint64_t modulus = Modulus(cross);
  for (int64_t row = first; row < last; ++row) {
    uint64_t hash = cross.key;
    for (const Column* column : cross.columns) hash = Combine(hash, column->features[row]);
    WriteHash(results, row, row, 0, hash % modulus);
  }
}

// Writes what rows [first, last) of any cross are. `begin` is of CountCrosses. Hashes of the first
// columns' combinations are made once for all that follow.
inline void WriteRows(const Cross& cross, const std::vector<int64_t>& begin, int64_t first,
                      int64_t last, const Results& results) {
  const uint64_t modulus = Modulus(cross);
  std::vector<uint64_t> hashes, longer;
  for (int64_t row = first; row < last; ++row) {
    const int64_t count = begin[row + 1] - begin[row];
    hashes.assign(count > 0 ? 1 : 0, cross.key);
    for (size_t i = 0; i < cross.columns.size() && count > 0; ++i) {
      const Column& column = *cross.columns[i];
      longer.clear();
      for (const uint64_t hash : hashes) {
        for (int64_t at = column.Begin(row); at < column.Begin(row + 1); ++at) {
          longer.push_back(Combine(hash, column.features[at]));
        }
      }
      hashes.swap(longer);
    }
    for (int64_t i = 0; i < count; ++i) {
      WriteHash(results, begin[row] + i, row, i, hashes[i] % modulus);
    }
    if (results.dense) {
      int64_t* const of_row = results.dense + row * results.row_size;
      std::fill(of_row + count, of_row + results.row_size, 0);
    }
  }
}

}  // namespace crosses
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_CROSS_LOOPS_H_
