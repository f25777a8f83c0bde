// Where the last whole packet of elements ends in the tensors that stock TensorFlow
// computes with: what comes after it takes another form of some instructions.

#ifndef PICASSO_TF_CC_KERNELS_UPDATE_ENDS_H_
#define PICASSO_TF_CC_KERNELS_UPDATE_ENDS_H_

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "picasso_tf/cc/kernels/row_sort.h"
#include "picasso_tf/cc/kernels/update_program.h"
#include "picasso_tf/cc/kernels/update_values.h"

namespace picasso {
namespace packed_update {

// Of a tensor with the distinct rows that ids name, in the order in which they are
// named first.
class EndOfDistinctRows {
 public:
  EndOfDistinctRows() = default;

  // `packet`: elements of one packet.
  EndOfDistinctRows(const Table& table, const SortedIds& ids, int64_t packet) {
    int64_t distinct = 0;
    std::vector<std::pair<int64_t, int64_t>> last;  // (first id, row), at most a packet of them
    for (int64_t at = 0; at < ids.size(); at = ids.RowEnd(at), ++distinct) {
      const std::pair<int64_t, int64_t> one(ids.Id(at), ids.Row(at));
      last.insert(std::upper_bound(last.begin(), last.end(), one), one);
      if (last.size() > static_cast<size_t>(packet)) last.erase(last.begin());
    }
    int64_t left = distinct * table.row % packet;
    for (; left > 0; left -= table.row, last.pop_back()) {
      columns_.emplace_back(last.back().second, std::max<int64_t>(table.row - left, 0));
    }
  }

  // The first column of row `row` that comes after the last whole packet; `none` if
  // none does.
  int64_t FirstColumn(int64_t row, int64_t none) const {
    for (const auto& one : columns_) {
      if (one.first == row) return one.second;
    }
    return none;
  }

 private:
  std::vector<std::pair<int64_t, int64_t>> columns_;  // (row, first column)
};

// Where rows and ids of one table have elements that are in no whole packet.
template <typename T>
class PacketEnds {
 public:
  PacketEnds(const Program& program, const Table& table, const SortedIds& ids) : table_(table) {
    if (NeedsSortedRows(program, table)) distinct_ = EndOfDistinctRows(table, ids, kPacket);
  }

  // Whether it must see the ids in the order of their rows.
  static bool NeedsSortedRows(const Program& program, const Table& table) {
    if (table.row % kPacket == 0) return false;
    return std::any_of(program.instructions.begin(), program.instructions.end(),
                       [](const Instruction& one) { return one.opcode == Opcode::kUniqueRsqrt; });
  }

  // Whether there are any.
  bool AnyLeft() const { return table_.row % kPacket != 0; }

  // The first such column of a row, or of the id with that number; it may be less
  // than 0, or beyond the row.
  int64_t FirstColumn(Opcode opcode, Level level, int64_t number) const {
    const int64_t row = table_.row;
    if (opcode == Opcode::kRowRsqrt) return row - row % kPacket;
    if (opcode == Opcode::kUniqueRsqrt) return distinct_.FirstColumn(number, row);
    const int64_t all = (level == Level::kId ? table_.num_ids : table_.rows) * row;
    return all - all % kPacket - number * row;
  }

 private:
  static constexpr int64_t kPacket = 32 / sizeof(Compute<T>);  // TensorFlow is built for AVX

  const Table& table_;
  EndOfDistinctRows distinct_;
};

}  // namespace packed_update
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_UPDATE_ENDS_H_
