// The ids of one table, sorted by the row that they select.

#ifndef PICASSO_TF_CC_KERNELS_ROW_SORT_H_
#define PICASSO_TF_CC_KERNELS_ROW_SORT_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "picasso_tf/cc/kernels/packed_update.h"

namespace picasso {
namespace packed_update {

// Bits that a number in [0, n) takes.
inline int BitsFor(int64_t n) { return n <= 1 ? 0 : 64 - __builtin_clzll(n - 1); }

// Keys are row << id_bits | id, id being the number of the id in its table: one integer
// each. None but ids that are alike have equal keys, so that any sort is a stable one.
class SortedIds {
 public:
  // With `group_bits` the ids are only brought into groups of 1 << group_bits rows,
  // and keep their order within a group. With `by_pool` an id's number is the row of the
  // gradient that it was pooled to; such numbers tell nothing else, and are never less
  // than those of ids before.
  //
  // False: an id is out of range, and there are no keys.
  bool Build(const Table& table, bool drop_negative, int group_bits = 0, bool by_pool = false) {
    group_bits_ = group_bits;
    by_pool_ = by_pool;
    id_bits_ = by_pool ? BitsFor(table.segments[0].gradients[0].pool->num_rows + 1)
                       : BitsFor(table.num_ids);
    row_bits_ = BitsFor(table.rows);
    keys_.reset(new uint64_t[table.num_ids]);
    size_ = 0;
    for (int64_t i = 0; i < table.num_segments; ++i) {
      const Segment& segment = table.segments[i];
      if (!Append(segment, drop_negative || segment.fill >= 0)) return false;
      if (segment.fill >= 0) AppendFills(segment);
    }
    Sort();
    return true;
  }

  // Whether row and id of the table fit one key.
  static bool Fits(const Table& table) {
    return BitsFor(table.num_ids) + BitsFor(table.rows) <= 64;
  }

  int64_t size() const { return size_; }
  bool grouped() const { return group_bits_ > 0; }
  bool by_pool() const { return by_pool_; }
  int64_t GroupRows() const { return int64_t{1} << group_bits_; }
  int64_t Row(int64_t at) const { return static_cast<int64_t>(keys_[at] >> id_bits_); }
  int64_t Id(int64_t at) const {
    return static_cast<int64_t>(keys_[at] & ((uint64_t{1} << id_bits_) - 1));
  }

  // The first key of row `row`, which begins a group, or of one after it.
  int64_t Find(int64_t row) const {
    if (row_bits_ < 64 && row >> row_bits_ != 0) return size_;
    return std::lower_bound(keys_.get(), keys_.get() + size_,
                            static_cast<uint64_t>(row) << id_bits_) -
           keys_.get();
  }

  // What follows is of ids that are not grouped.

  // The first key at `at` or after it that begins a row.
  int64_t RowStart(int64_t at) const {
    if (at == 0 || at >= size_ || Row(at) != Row(at - 1)) return std::min(at, size_);
    return Find(Row(at) + 1);  // a search: very many ids may name one row
  }

  // Whether the row that `at` begins has no other key.
  bool IsAlone(int64_t at) const { return at + 1 == size_ || Row(at + 1) != Row(at); }

  // The first key after those of the row that `at` begins.
  int64_t RowEnd(int64_t at) const {
    while (!IsAlone(at)) ++at;
    return at + 1;
  }

 private:
  static constexpr int kDigitBits = 11;      // counters of one pass stay in the L1 cache
  static constexpr int64_t kFewKeys = 64;   // below this counters cost more than comparing

  bool Append(const Segment& segment, bool drop_negative) {
    if (segment.fill >= 0 && segment.gradients[0].pool->order != nullptr) {
      return AppendByRow(segment);
    }
    if (by_pool_) {
      const Pool rows = *segment.gradients[0].pool;  // what is stored may not change it
      return AppendAny(segment, drop_negative, [&rows](int64_t j) { return rows.RowOf(j); });
    }
    const int64_t first = segment.first_id;
    return AppendAny(segment, drop_negative, [first](int64_t j) { return first + j; });
  }

  template <typename Number>
  bool AppendAny(const Segment& segment, bool drop_negative, const Number& number) {
    switch (segment.id_kind) {
      case IdKind::kInt32:
        return AppendAs<IdKind::kInt32>(segment, drop_negative, number);
      case IdKind::kInt64:
        return AppendAs<IdKind::kInt64>(segment, drop_negative, number);
      case IdKind::kInt64AsInt32:
        return AppendAs<IdKind::kInt64AsInt32>(segment, drop_negative, number);
      default:
        return AppendAs<IdKind::kRowNumber>(segment, drop_negative, number);
    }
  }

  template <IdKind kKind, typename Number>
  bool AppendAs(const Segment& segment, bool drop_negative, const Number& number) {
    uint64_t* keys = keys_.get() + size_;
    const IdList list = segment;
    bool good = true;
    for (int64_t j = 0; j < segment.num_ids; ++j) {
      const int64_t row = LoadId<kKind>(list, IdPosition(list, j));
      const bool in_range = InRange(list, row);
      *keys = static_cast<uint64_t>(row) << id_bits_ | static_cast<uint64_t>(number(j));
      keys += in_range;
      good &= in_range || (drop_negative && row < 0);
    }
    size_ = keys - keys_.get();
    return good;
  }

  // Ids that do not come in the order of the rows that they were pooled to.
  bool AppendByRow(const Segment& segment) {
    for (int64_t j = 0; j < segment.num_ids; ++j) {
      const int64_t row = IdOf(segment, j);
      if (row < 0) continue;
      if (row >= segment.table_rows) return false;
      keys_[size_++] = static_cast<uint64_t>(row) << id_bits_ |
                       static_cast<uint64_t>(segment.first_id + j);
    }
    return true;
  }

  // An id for each row of the gradient that no id is left for.
  void AppendFills(const Segment& segment) {
    const Pool& pool = *segment.gradients[0].pool;
    for (int64_t row = 0; row < segment.num_fills; ++row) {
      if (pool.counts[row] > 0) continue;
      const int64_t number =
          by_pool_ ? pool.num_rows : segment.first_id + segment.num_ids + row;
      keys_[size_++] = static_cast<uint64_t>(segment.fill) << id_bits_ | number;
    }
  }

  void Sort() {
    uint64_t* keys = keys_.get();
    if (std::is_sorted(keys, keys + size_)) return;
    if (size_ <= kFewKeys) return std::sort(keys, keys + size_);
    const int bits = row_bits_ - group_bits_;
    if (bits <= 0) return;  // one group
    const int passes = (bits + kDigitBits - 1) / kDigitBits;
    const int digit_bits = (bits + passes - 1) / passes;
    std::unique_ptr<uint64_t[]> other(new uint64_t[size_]);
    for (int pass = 0; pass < passes; ++pass) {
      SortByDigit(id_bits_ + group_bits_ + pass * digit_bits, digit_bits, other.get());
      keys_.swap(other);
    }
  }

  void SortByDigit(int shift, int digit_bits, uint64_t* to) const {
    const uint64_t mask = (uint64_t{1} << digit_bits) - 1;
    int64_t places[1 << kDigitBits];
    std::fill_n(places, mask + 1, 0);
    for (int64_t i = 0; i < size_; ++i) ++places[keys_[i] >> shift & mask];
    int64_t sum = 0;
    for (uint64_t digit = 0; digit <= mask; ++digit) {
      sum += places[digit];
      places[digit] = sum - places[digit];
    }
    for (int64_t i = 0; i < size_; ++i) to[places[keys_[i] >> shift & mask]++] = keys_[i];
  }

  std::unique_ptr<uint64_t[]> keys_;
  int64_t size_ = 0;
  int id_bits_ = 0;
  int row_bits_ = 0;
  int group_bits_ = 0;
  bool by_pool_ = false;
};

}  // namespace packed_update
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_ROW_SORT_H_
