// Cases for the tests of the GPU's packed update, on the host and on a GPU: random
// tables and ids, and a slow loop that follows the definition.

#ifndef PICASSO_TF_CC_KERNELS_PACKED_UPDATE_GPU_CASES_H_
#define PICASSO_TF_CC_KERNELS_PACKED_UPDATE_GPU_CASES_H_

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "picasso_tf/cc/kernels/packed_update.h"
#include "picasso_tf/cc/kernels/packed_update_gpu_rules.h"
#include "picasso_tf/cc/kernels/update_arithmetic.h"
#include "picasso_tf/cc/kernels/update_program.h"

namespace picasso {
namespace packed_update {
namespace cases {

// All data of a case is in one piece of memory, a copy of which may be on a GPU.
template <typename T>
class Case {
 public:
  explicit Case(const Rule& rule) {
    const std::string problem = Parse(rule, &program_);
    if (problem.empty()) return;
    std::printf("%s\n", problem.c_str());
    std::abort();
  }

  void AddTable(Random& random, int64_t rows, int64_t row) {
    const Counts& counts = program_.counts;
    tables_.push_back({rows, row, {}, {}, {}, {}});
    for (int i = 0; i < counts.states; ++i) {
      tables_.back().states.push_back(AddNumbers(random, rows * row));
      states_.push_back({tables_.back().states.back(), rows * row});
    }
    for (int i = 0; i < counts.table_gradients; ++i) {
      tables_.back().table_gradients.push_back(AddNumbers(random, rows * row));
    }
    for (int i = 0; i < counts.parameters; ++i) {
      tables_.back().parameters.push_back(AddNumbers(random, 1));
    }
  }

  // A segment of the last table: `count` rows of ids and gradients, in some columns
  // of matrices. Ids are below `end`; some are out of range if that is.
  void AddSegment(Random& random, int64_t count, int64_t end) {
    OneTable& table = tables_.back();
    OneSegment& segment = table.segments.emplace_back();
    IdList& list = segment.list;
    list.id_kind = static_cast<IdKind>(Draw(random, 1, 4));
    list.table_rows = table.rows;
    list.ids_columns = Draw(random, 1, 4);
    list.ids_first = Draw(random, 0, 3);
    list.ids_pitch = list.ids_first + list.ids_columns + Draw(random, 0, 2);
    list.num_ids = count * list.ids_columns;
    list.wrap = Draw(random, 0, 2) * table.rows;
    std::vector<int64_t> ids(count * list.ids_pitch);
    for (int64_t& id : ids) {
      id = Draw(random, list.wrap > 0 ? -end : -1, end);
      if (list.id_kind == IdKind::kInt64AsInt32) id += Draw(random, -2, 3) * (int64_t{1} << 32);
    }
    const std::vector<int32_t> narrow(ids.begin(), ids.end());
    segment.ids = list.id_kind == IdKind::kInt32 ? Add(narrow) : Add(ids);
    for (int i = 0; i < program_.counts.row_gradients; ++i) {
      GradientRows rows;
      rows.ids_per_row = Draw(random, 0, 2) == 0 ? 1 : list.ids_columns;
      rows.first = Draw(random, 0, 3);
      rows.pitch = rows.first + rows.ids_per_row * table.row + Draw(random, 0, 3);
      segment.gradients.push_back(
          {AddNumbers(random, list.num_ids / rows.ids_per_row * rows.pitch), rows});
    }
  }

  const Program& program() const { return program_; }
  const std::vector<char>& memory() const { return memory_; }

  // The tables, where the case's memory is at `base`. They point into this case.
  std::vector<Table> Tables(void* base) {
    const auto at = [&](size_t offset) -> void* {
      return static_cast<char*>(base) + offset;
    };
    std::vector<Table> tables;
    for (OneTable& one : tables_) {
      Table& table = tables.emplace_back();
      table.rows = one.rows;
      table.row = one.row;
      one.pointers.clear();
      one.pointers.reserve(one.states.size() + one.table_gradients.size() + one.parameters.size());
      const auto list = [&](const std::vector<size_t>& offsets) {
        void** first = one.pointers.data() + one.pointers.size();
        for (size_t offset : offsets) one.pointers.push_back(at(offset));
        return first;
      };
      table.states = list(one.states);
      table.table_gradients = list(one.table_gradients);
      table.parameters = list(one.parameters);
      one.bound.clear();
      for (OneSegment& from : one.segments) {
        from.bound.clear();
        for (const auto& [offset, rows] : from.gradients) {
          from.bound.push_back(rows);
          from.bound.back().data = at(offset);
        }
        Segment& segment = one.bound.emplace_back();
        static_cast<IdList&>(segment) = from.list;
        segment.ids = at(from.ids);
        segment.first_id = table.num_ids;
        segment.gradients = from.bound.data();
        table.num_ids += segment.num_ids;
      }
      table.segments = one.bound.data();
      table.num_segments = one.bound.size();
    }
    return tables;
  }

  // The memory after the update, by the definition.
  std::vector<char> Wanted(bool all_rows) {
    std::vector<char> after = memory_;
    for (const Table& table : Tables(after.data())) {
      std::map<int64_t, std::vector<int64_t>> ids_of_rows;
      for (int64_t s = 0; s < table.num_segments; ++s) {
        const Segment& segment = table.segments[s];
        for (int64_t j = 0; j < segment.num_ids; ++j) {
          const int64_t row = IdAt(segment, j);
          if (InRange(segment, row)) ids_of_rows[row].push_back(segment.first_id + j);
        }
      }
      for (int64_t row = 0; row < table.rows; ++row) {
        const auto& ids = ids_of_rows[row];
        if (ids.empty() && !all_rows) continue;
        for (int64_t k = 0; k < table.row; ++k) UpdateElement(table, row, k, ids);
      }
    }
    return after;
  }

  // NaNs of all kinds are one.
  bool IsRight(const std::vector<char>& found, const std::vector<char>& wanted) const {
    std::vector<char> same = found;
    for (const auto& [offset, count] : states_) {
      for (int64_t i = 0; i < count; ++i) {
        const size_t at = offset + i * sizeof(T);
        T a, b;
        std::memcpy(&a, &found[at], sizeof(T));
        std::memcpy(&b, &wanted[at], sizeof(T));
        const Compute<T> x = Value<T>::Load(a), y = Value<T>::Load(b);
        if (x != x && y != y) std::memcpy(&same[at], &b, sizeof(T));
      }
    }
    return same == wanted;
  }

 private:
  struct OneSegment {
    IdList list;
    size_t ids;
    std::vector<std::pair<size_t, GradientRows>> gradients;
    std::vector<GradientRows> bound;
  };
  struct OneTable {
    int64_t rows, row;
    std::vector<size_t> states, table_gradients, parameters;  // where they are
    std::vector<OneSegment> segments;
    std::vector<void*> pointers;
    std::vector<Segment> bound;
  };

  template <typename E>
  size_t Add(const std::vector<E>& list) {
    const size_t at = (memory_.size() + 15) / 16 * 16;
    memory_.resize(at + list.size() * sizeof(E));
    if (!list.empty()) std::memcpy(&memory_[at], list.data(), list.size() * sizeof(E));
    return at;
  }

  // Multiples of 1/16, whose products are not exact in half types.
  size_t AddNumbers(Random& random, int64_t count) {
    std::vector<T> list(count);
    for (T& number : list) {
      number = Value<T>::Store(static_cast<Compute<T>>(Draw(random, -32, 33)) / 16);
    }
    return Add(list);
  }

  void UpdateElement(const Table& table, int64_t row, int64_t k, const std::vector<int64_t>& ids) {
    using C = Compute<T>;
    const Counts& counts = program_.counts;
    const int64_t at = row * table.row + k;
    std::vector<std::vector<C>> values;  // a number for each id, or one
    const auto add = [&](T number) { values.push_back({Value<T>::Load(number)}); };
    for (int i = 0; i < counts.states; ++i) add(static_cast<T*>(table.states[i])[at]);
    for (int i = 0; i < counts.row_gradients; ++i) {
      values.emplace_back();
      for (int64_t id : ids) {
        values.back().push_back(Value<T>::Load(GradientRow<T>(table, i, id)[k]));
      }
    }
    for (int i = 0; i < counts.table_gradients; ++i) {
      add(static_cast<const T*>(table.table_gradients[i])[at]);
    }
    for (int i = 0; i < counts.parameters; ++i) add(*static_cast<const T*>(table.parameters[i]));
    for (const Instruction& instruction : program_.instructions) {
      values.push_back(Execute(instruction, values, ids.size()));
    }
    for (int i = 0; i < counts.states; ++i) {
      if (!program_.IsWritten(i)) continue;
      static_cast<T*>(table.states[i])[at] = Value<T>::Store(values[program_.results[i]][0]);
    }
  }

  std::vector<Compute<T>> Execute(const Instruction& instruction,
                                  const std::vector<std::vector<Compute<T>>>& values,
                                  size_t ids) const {
    const Opcode opcode = instruction.opcode;
    const auto operand = [&](int i, size_t id) {
      const int32_t value = instruction.operands[i];
      return values[value][program_.levels[value] == Level::kId ? id : 0];
    };
    const auto step = [&](Compute<T> so_far, Compute<T> x) {
      if (Step(opcode) == Opcode::kSelect) return x;
      return Evaluate<T>(Step(opcode), so_far, x, x);
    };
    const int last = instruction.num_operands - 1;
    if (IsElementwise(opcode)) {
      bool on_ids = false;
      for (int i = 0; i <= last; ++i) {
        on_ids |= program_.levels[instruction.operands[i]] == Level::kId;
      }
      std::vector<Compute<T>> out;
      for (size_t id = 0; id < (on_ids ? ids : 1); ++id) {
        out.push_back(Evaluate<T>(opcode, operand(0, id), operand(last > 0 ? 1 : 0, id),
                                  operand(last, id)));
      }
      return out;
    }
    Compute<T> out = opcode == Opcode::kSegmentSum ? Compute<T>(0) : operand(0, 0);
    if (IsTouched(opcode)) return {ids == 0 ? out : step(out, operand(last, 0))};
    for (size_t id = 0; id < ids; ++id) out = step(out, operand(last, id));
    return {out};
  }

  Program program_;
  std::vector<char> memory_;
  std::vector<OneTable> tables_;
  std::vector<std::pair<size_t, int64_t>> states_;  // where they are, and their lengths
};

// Several tables with up to `most` rows of ids in each segment.
template <typename T>
Case<T> RandomCase(Random& random, const Rule& rule, int64_t most) {
  Case<T> one(rule);
  const int64_t tables = Draw(random, 1, 6);
  for (int64_t i = 0; i < tables; ++i) {
    const int64_t rows = Draw(random, 1, 40);
    const int64_t widths[] = {1, 2, 3, 4, 5, 8, 16, 33};
    one.AddTable(random, rows, widths[Draw(random, 0, 8)]);
    for (int64_t segments = Draw(random, 0, 4); segments > 0; --segments) {
      const int64_t ends[] = {1, 2, rows, rows + 2};  // hot rows, all rows, bad ids
      one.AddSegment(random, Draw(random, 0, most + 1), ends[Draw(random, 0, 4)]);
    }
  }
  return one;
}

}  // namespace cases
}  // namespace packed_update
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_PACKED_UPDATE_GPU_CASES_H_
