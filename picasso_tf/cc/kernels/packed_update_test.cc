// Stand-alone test of the packed update: no TensorFlow, no test framework. From the project's root:
//
//   g++ -std=c++17 -g -O1 -ffp-contract=off -fsanitize=address,undefined -pthread -I.
//       -o packed_update_test picasso_tf/cc/kernels/packed_update_test.cc   (one line)
//   ./packed_update_test
//
// Each call is made by the CPU code, in tasks on a pool of threads, and compared with a slow
// interpreter that follows the definition. Buffers have no byte to spare, so that the address
// sanitizer sees any access beyond them.

#include <cmath>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "picasso_tf/cc/kernels/kernel_test.h"
#include "picasso_tf/cc/kernels/packed_update_cpu.h"
#include "picasso_tf/cc/kernels/parallel_blocks.h"
#include "picasso_tf/cc/kernels/update_pools.h"

namespace {

using namespace picasso::packed_update;
using picasso::IdKind;

using namespace kernel_test;

template <typename T>
std::vector<T> RandomValues(int64_t size) {
  std::vector<T> values(size);
  for (T& value : values) value = Value<T>::Store(Random(1, 64) / 16.0f);
  return values;
}

Program Parsed(const Counts& counts, const std::vector<std::string>& instructions,
               const std::vector<std::string>& results) {
  Program program;
  const std::string problem = ProgramParser(counts, &program).Parse(instructions, results);
  if (!problem.empty()) std::printf("%s\n", problem.c_str());
  CHECK(problem.empty());
  return program;
}

// Tables with everything that they point to.
template <typename T>
class Model {
 public:
  explicit Model(const Program& program) : program_(program) {
    parameters_ = RandomValues<T>(program.counts.parameters);
    for (const T& parameter : parameters_) parameter_pointers_.push_back(&parameter);
  }

  // Ids of each segment: how many, below which row, and in how many columns; or, where
  // they were pooled, of how many rows, and which row of the table fills empty ones.
  struct Ids {
    int64_t count;
    int64_t rows;
    int64_t columns = 1;
    int64_t pooled = -1;
    int64_t fill = -1;
  };

  void AddTable(int64_t rows, int64_t row, const std::vector<Ids>& segments) {
    const Counts& counts = program_.counts;
    Table table;
    table.rows = rows;
    table.row = row;
    for (int i = 0; i < counts.states; ++i) states_.push_back(RandomValues<T>(rows * row));
    auto& fields = table_gradient_pointers_.emplace_back();
    for (int i = 0; i < counts.table_gradients; ++i) {
      fields.push_back(values_.emplace_back(RandomValues<T>(rows * row)).data());
    }
    table.table_gradients = fields.data();
    table.parameters = parameter_pointers_.data();
    auto& list = segments_.emplace_back();
    for (const Ids& ids : segments) list.push_back(MakeSegment(table, ids));
    for (Segment& segment : list) {
      segment.first_id = table.num_ids;
      table.num_ids += segment.NumNumbers();
    }
    table.segments = list.data();
    table.num_segments = list.size();
    tables_.push_back(table);
  }

  // The states after the CPU code, or after the slow interpreter.
  std::deque<std::vector<T>> ByCpu(bool all_rows, int threads) const;
  std::deque<std::vector<T>> Wanted(bool all_rows) const;

  std::vector<Table>& tables() { return tables_; }

 private:
  Segment MakeSegment(const Table& table, const Ids& ids) {
    Segment segment;
    segment.table_rows = table.rows;
    segment.num_ids = ids.count / ids.columns * ids.columns;
    segment.ids_columns = ids.columns;
    segment.ids_pitch = ids.columns + 1;
    segment.ids_first = 1;
    segment.id_kind = IdKind::kInt64;
    auto& values = ids_.emplace_back(ids.count / ids.columns * segment.ids_pitch);
    for (int64_t& id : values) id = Random(ids.fill >= 0 ? -ids.rows : 0, ids.rows);
    segment.ids = values.data();
    segment.fill = ids.fill;
    if (ids.fill >= 0) segment.num_fills = ids.pooled;
    auto& gradients = gradients_.emplace_back();
    for (int i = 0; i < program_.counts.row_gradients; ++i) {
      GradientRows rows;
      rows.first = i;
      rows.ids_per_row = ids.columns;
      rows.pitch = rows.first + ids.columns * table.row;
      if (ids.pooled >= 0) rows.pool = MakePool(table, segment, ids.pooled);
      const int64_t num_rows = ids.pooled >= 0 ? ids.pooled : segment.num_ids / ids.columns;
      rows.data = values_.emplace_back(RandomValues<T>(num_rows * rows.pitch)).data();
      gradients.push_back(rows);
    }
    segment.gradients = gradients.data();
    return segment;
  }

  // Of random rows, as a vector or as the first column of a matrix; or, where ids can
  // share them evenly, of rows that follow each other.
  const Pool* MakePool(const Table& table, const Segment& ids, int64_t num_rows) {
    ScaledPool& pool = pools_.emplace_back();
    Expected& expected = expected_[&pool];
    const Combiner combiner = static_cast<Combiner>(Random(0, 3));
    pool.pitch = Random(1, 3);
    pool.num_rows = num_rows;
    pool.rows_are_int64 = Random(0, 2);
    auto& wide = ids_.emplace_back(ids.num_ids * pool.pitch, -1);
    auto& narrow = narrow_.emplace_back(ids.num_ids * pool.pitch, -1);
    std::vector<int64_t> counts(num_rows);
    const bool is_even = ids.fill < 0 && ids.num_ids % num_rows == 0 && Random(0, 2);
    if (is_even) pool.length = std::max<int64_t>(ids.num_ids / num_rows, 1);
    for (int64_t j = 0; j < ids.num_ids; ++j) {
      expected.rows.push_back(is_even ? j / pool.length : Random(0, num_rows));
    }
    // With a fill ids are numbered by rows; the slow code below knows them as they come.
    if (ids.fill >= 0 || Random(0, 2) > 0) std::sort(expected.rows.begin(), expected.rows.end());
    for (int64_t j = 0; j < ids.num_ids; ++j) {
      const int64_t row = expected.rows[j];
      wide[j * pool.pitch] = narrow[j * pool.pitch] = row;
      if (ids.fill < 0 || IdAt(ids, j) >= 0) ++counts[row];
    }
    pool.rows = pool.rows_are_int64 ? static_cast<const void*>(wide.data()) : narrow.data();
    if (is_even) pool.rows = nullptr;
    pool.zeros = values_.emplace_back(table.row).data();
    for (const int64_t count : counts) {
      const double n = std::max<int64_t>(count, 1);
      expected.has_id.push_back(count > 0);
      expected.scales.push_back(combiner == Combiner::kMean    ? 1 / n
                                : combiner == Combiner::kSqrtN ? 1 / std::sqrt(n)
                                                               : 1);
    }
    CHECK(pool.FindScales(combiner, ids));
    if (combiner == Combiner::kSum && Random(0, 2) > 0) {
      expected.weights = RandomValues<T>(ids.num_ids);
      pool.weights = expected.weights.data();
      pool.weights_are_double = sizeof(T) == sizeof(double);
    } else if (ids.fill < 0 && Random(0, 2)) {
      expected.mask = std::make_unique<bool[]>(ids.num_ids);
      for (int64_t j = 0; j < ids.num_ids; ++j) expected.mask[j] = Random(0, 2);
      pool.mask = expected.mask.get();
    }
    return &pool;
  }

  // Element `k` of gradient `g` of id number `id`, slowly.
  Compute<T> GradientAt(const Table& table, int g, int64_t id, int64_t k) const {
    const Segment& segment = SegmentOf(table, id);
    const GradientRows& rows = segment.gradients[g];
    const int64_t j = id - segment.first_id;
    if (rows.pool == nullptr) return Value<T>::Load(GradientRow<T>(table, g, id)[k]);
    if (j >= segment.num_ids) return Compute<T>(0);
    const Expected& expected = expected_.at(rows.pool);
    if (expected.mask != nullptr && !expected.mask[j]) return Compute<T>(0);
    const int64_t row = expected.rows[j];
    const T* data = static_cast<const T*>(rows.data);
    const Compute<T> scale = expected.weights.empty()
                                 ? static_cast<Compute<T>>(expected.scales[row])
                                 : Value<T>::Load(expected.weights[j]);
    return Value<T>::Load(data[row * rows.pitch + rows.first + k]) * scale;
  }

  const Program& program_;
  std::vector<Table> tables_;
  std::deque<std::vector<T>> states_;  // as they are before
  std::deque<std::vector<T>> values_;
  std::deque<std::vector<int64_t>> ids_;
  std::deque<std::vector<int32_t>> narrow_;
  std::deque<std::vector<Segment>> segments_;
  std::deque<std::vector<GradientRows>> gradients_;
  std::deque<ScaledPool> pools_;
  struct Expected {
    std::vector<int64_t> rows;   // of each id
    std::vector<double> scales;  // of each row
    std::vector<T> weights;      // of each id
    std::unique_ptr<bool[]> mask;
    std::vector<bool> has_id;
  };
  std::map<const Pool*, Expected> expected_;
  std::deque<std::vector<const void*>> table_gradient_pointers_;
  std::vector<T> parameters_;
  std::vector<const void*> parameter_pointers_;
};

int64_t num_by_pool = 0;  // tables whose ids were numbered by the rows they were pooled to

template <typename T>
std::deque<std::vector<T>> Model<T>::ByCpu(bool all_rows, int threads) const {
  auto states = states_;
  std::vector<Table> tables = tables_;
  std::deque<std::vector<void*>> pointers;
  for (size_t i = 0; i < states.size(); ++i) {
    if (i % program_.counts.states == 0) pointers.emplace_back();
    pointers.back().push_back(states[i].data());
  }
  std::vector<SortedIds> ids(tables.size());
  for (size_t i = 0; i < tables.size(); ++i) {
    tables[i].states = pointers[i].data();
    const bool by_pool = NumberByPool<T>(program_, tables[i]);
    CHECK(ids[i].Build(tables[i], /*drop_negative=*/true, GroupBits<T>(program_, tables[i]),
                       by_pool));
    num_by_pool += by_pool;
  }
  const Plans<T> plans(program_);
  const std::vector<Task> tasks = CutTasks<T>(program_, tables, ids, all_rows);
  TestPool pool(threads);
  picasso::ParallelBlocks(&pool, tasks.size(), threads, [&](int64_t i) {
    const int64_t table = tasks[i].table;
    RunTask<T>(plans, tables[table], ids[table], all_rows, tasks[i]);
  });
  return states;
}

// One row at a time: a value is a list of rows, one for the row of the table or one for each id.
template <typename T>
std::deque<std::vector<T>> Model<T>::Wanted(bool all_rows) const {
  const Counts& counts = program_.counts;
  auto states = states_;
  for (size_t t = 0; t < tables_.size(); ++t) {
    const Table& table = tables_[t];
    std::vector<std::vector<int64_t>> ids_of(table.rows);
    for (int64_t s = 0; s < table.num_segments; ++s) {
      const Segment& segment = table.segments[s];
      for (int64_t j = 0; j < segment.num_ids; ++j) {
        const int64_t row = IdAt(segment, j);
        if (row >= 0) ids_of[row].push_back(segment.first_id + j);
      }
      for (int64_t row = 0; row < segment.num_fills; ++row) {
        if (expected_.at(segment.gradients[0].pool).has_id[row]) continue;
        ids_of[segment.fill].push_back(segment.first_id + segment.num_ids + row);
      }
    }
    for (int64_t at = 0; at < table.rows * table.row; ++at) {
      const std::vector<int64_t>& ids = ids_of[at / table.row];
      if (!all_rows && ids.empty()) continue;
      std::vector<std::vector<Compute<T>>> values(program_.NumValues());
      for (int v = 0; v < counts.FirstResult(); ++v) {
        if (v < counts.states) {
          values[v] = {Value<T>::Load(states_[t * counts.states + v][at])};
        } else if (v < counts.FirstTableGradient()) {
          for (int64_t id : ids) {
            values[v].push_back(GradientAt(table, v - counts.states, id, at % table.row));
          }
        } else if (v < counts.FirstParameter()) {
          const int i = v - counts.FirstTableGradient();
          values[v] = {Value<T>::Load(static_cast<const T*>(table.table_gradients[i])[at])};
        } else {
          values[v] = {Value<T>::Load(parameters_[v - counts.FirstParameter()])};
        }
      }
      for (size_t i = 0; i < program_.instructions.size(); ++i) {
        const Instruction& instruction = program_.instructions[i];
        const auto in = [&](int k, size_t j) {
          const int v = instruction.operands[k];
          return values[v][program_.levels[v] == Level::kId ? j : 0];
        };
        auto& out = values[counts.FirstResult() + i];
        if (IsElementwise(instruction.opcode)) {
          const bool on_ids = program_.levels[counts.FirstResult() + i] == Level::kId;
          for (size_t j = 0; j < (on_ids ? ids.size() : 1); ++j) {
            Compute<T> x[3];
            for (int k = 0; k < instruction.num_operands; ++k) x[k] = in(k, j);
            out.push_back(Evaluate<T>(instruction.opcode, x[0], x[1], x[2]));
          }
          continue;
        }
        const int last = instruction.num_operands - 1;
        Compute<T> row = last == 0 ? Compute<T>(0) : in(0, 0);
        const size_t steps = IsTouched(instruction.opcode) ? !ids.empty() : ids.size();
        for (size_t j = 0; j < steps; ++j) {
          const Opcode step = Step(instruction.opcode);
          row = step == Opcode::kSelect ? in(last, j) : Evaluate<T>(step, row, in(last, j), row);
        }
        out = {row};
      }
      for (int state = 0; state < counts.states; ++state) {
        states[t * counts.states + state][at] = Value<T>::Store(values[program_.results[state]][0]);
      }
    }
  }
  return states;
}

template <typename T>
bool Same(const std::deque<std::vector<T>>& a, const std::deque<std::vector<T>>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t k = 0; k < a[i].size(); ++k) {
      const bool nan = Value<T>::Load(a[i][k]) != Value<T>::Load(a[i][k]) &&
                       Value<T>::Load(b[i][k]) != Value<T>::Load(b[i][k]);
      if (!nan && std::memcmp(&a[i][k], &b[i][k], sizeof(T)) != 0) return false;
    }
  }
  return true;
}

template <typename T>
void CheckUpdated(const Model<T>& model) {
  for (bool all_rows : {false, true}) {
    const auto wanted = model.Wanted(all_rows);
    for (int threads : {1, 4}) CHECK(Same(model.ByCpu(all_rows, threads), wanted));
  }
}

struct Rule {
  std::vector<std::string> program, results;
  Counts counts;
};

const Rule kRules[] = {
    {{"mul g0 p0", "scatter_sub s0 v0"}, {"v1"}, {1, 1, 0, 1}},
    {{"square g0", "scatter_add s1 v0", "mul g0 p0", "add v1 p1", "sqrt v3", "div v2 v4",
      "scatter_sub s0 v5"},
     {"v6", "v1"},
     {2, 1, 0, 2}},
    {{"segment_sum g0", "sub v0 s1", "mul v1 p0", "add s1 v2", "square g0", "segment_sum v4",
      "sub v5 s2", "mul v6 p1", "add s2 v7", "mul v3 p2", "sqrt v8", "add v10 p3", "div v9 v11",
      "sub s0 v12"},
     {"v13", "v3", "v8"},
     {3, 1, 0, 4}},
    // Results that cross, and tables' own gradients.
    {{"add t0 p0", "touched_update s1 v0", "mul s1 s2"}, {"s1", "v1", "s0"}, {3, 1, 1, 1}},
    {{"greater s0 p0", "select v0 s0 t0", "segment_sum s1", "touched_add v1 v2"},
     {"v3", "p0"},
     {2, 2, 1, 1}},
};

template <typename T>
void TestRules() {
  for (const Rule& rule : kRules) {
    const Program program = Parsed(rule.counts, rule.program, rule.results);
    Model<T> model(program);
    model.AddTable(70, 8, {{90, 70}});
    model.AddTable(50, 33, {{20, 50}, {0, 1}, {60, 10, 3}});
    model.AddTable(300, 1, {{400, 300, 4}});
    model.AddTable(2000, 16, {{500, 2000}});
    model.AddTable(5, 1, {{5000, 5}});   // more ids of a row than a buffer holds
    model.AddTable(3, 2500, {{7, 3}});   // rows longer than a buffer
    model.AddTable(8, 3100, {{2, 8}});
    model.AddTable(9, 0, {{7, 9}});
    model.AddTable(0, 4, {});
    model.AddTable(600, 5, {});
    CheckUpdated(model);
  }
}

// Pooled segments, filled and not, beside others; crowded tables and sparse ones.
template <typename T>
void TestPools() {
  for (const Rule& rule : kRules) {
    if (rule.counts.row_gradients == 0) continue;
    const Program program = Parsed(rule.counts, rule.program, rule.results);
    Model<T> model(program);
    model.AddTable(70, 8, {{90, 70, 1, 30}});
    model.AddTable(70, 3, {{90, 70, 1, 200, 69}});
    model.AddTable(50, 33, {{20, 50}, {0, 1, 1, 5}, {60, 10, 3}, {40, 50, 1, 7, 0}, {9, 50}});
    model.AddTable(3000, 16, {{100, 3000, 1, 20, 17}, {100, 3000, 1, 1}});
    model.AddTable(9, 1, {{0, 1, 1, 3000, 4}});     // more fills of a row than a buffer holds
    model.AddTable(5, 4, {{5000, 5, 1, 6, 2}});
    model.AddTable(5, 4, {{0, 1, 1, 0, 2}});        // nothing at all
    model.AddTable(3, 2500, {{7, 3, 1, 4, 1}});     // rows longer than a buffer
    model.AddTable(60, 2100, {{7, 60, 1, 4, 59}});
    model.AddTable(9, 0, {{7, 9, 1, 2, 3}});
    CheckUpdated(model);
  }
}

template <typename T>
void TestRandomPools(const Program& program, int count) {
  for (int round = 0; round < count; ++round) {
    Model<T> model(program);
    for (int table = 0; table < 3; ++table) {
      const int64_t rows = Random(1, 700);
      std::vector<typename Model<T>::Ids> segments;
      for (int64_t left = Random(0, 4); left > 0; --left) {
        segments.push_back({Random(0, 200), Random(1, rows + 1)});
        if (Random(0, 4) == 0) continue;
        segments.back().pooled = Random(1, 60);
        segments.back().fill = Random(0, 2) ? Random(0, rows) : -1;
        if (Random(0, 2)) segments.back().count = segments.back().pooled * Random(0, 4);
      }
      model.AddTable(rows, Random(1, 40), segments);
    }
    CheckUpdated(model);
  }
}

// An entry that is no row of the gradient is found, unless its id is left out.
void TestBadPools() {
  for (const int64_t bad : {int64_t{3}, int64_t{-1}, INT64_MAX, INT64_MIN}) {
    for (const Combiner combiner : {Combiner::kSum, Combiner::kMean, Combiner::kSqrtN}) {
      const std::vector<int64_t> ids = {1, -4, 0}, rows = {0, bad, 2};
      Segment segment;
      segment.table_rows = 5;
      segment.ids = ids.data();
      segment.id_kind = IdKind::kInt64;
      segment.num_ids = 3;
      ScaledPool pool;
      pool.rows = rows.data();
      pool.rows_are_int64 = true;
      pool.num_rows = 3;
      CHECK(!pool.FindScales(combiner, segment));
      segment.fill = 0;
      CHECK(pool.FindScales(combiner, segment));
      segment.num_fills = 3;
      GradientRows gradient;
      gradient.pool = &pool;
      segment.gradients = &gradient;
      Table table;
      table.rows = 5;
      table.segments = &segment;
      table.num_segments = 1;
      table.num_ids = segment.NumNumbers();
      SortedIds sorted;
      CHECK(sorted.Build(table, /*drop_negative=*/false));
      CHECK(sorted.size() == 3);  // ids 0 and 2, and number 4 for row 1 of the gradient
      CHECK(sorted.Row(0) == 0 && sorted.Id(0) == 2);
      CHECK(sorted.Row(1) == 0 && sorted.Id(1) == 4);
      CHECK(sorted.Row(2) == 1 && sorted.Id(2) == 0);
    }
  }
}

// With a fill ids count in the order of their rows, those of one row in their own.
void TestOrderOfPools() {
  const std::vector<int64_t> ids = {4, 3, -1, 2, 3}, rows = {2, 0, 0, 2, 1};
  Segment segment;
  segment.table_rows = 5;
  segment.ids = ids.data();
  segment.id_kind = IdKind::kInt64;
  segment.num_ids = 5;
  ScaledPool pool;
  pool.rows = rows.data();
  pool.rows_are_int64 = true;
  pool.num_rows = 3;
  CHECK(pool.FindScales(Combiner::kSum, segment) && pool.order == nullptr);
  segment.fill = 0;
  segment.num_fills = 3;
  GradientRows gradient;
  gradient.pool = &pool;
  segment.gradients = &gradient;
  CHECK(pool.FindScales(Combiner::kSum, segment) && pool.order != nullptr);
  const int64_t wanted[] = {3, -1, 3, 4, 2};
  for (int64_t j = 0; j < 5; ++j) CHECK(IdOf(segment, j) == wanted[j]);
  Table table;
  table.rows = 5;
  table.segments = &segment;
  table.num_segments = 1;
  table.num_ids = segment.NumNumbers();
  SortedIds sorted;
  CHECK(sorted.Build(table, /*drop_negative=*/false));
  CHECK(sorted.size() == 4);  // no row of the gradient is without an id
  const int64_t numbers[] = {4, 0, 2, 3};
  for (int64_t i = 0; i < 4; ++i) CHECK(sorted.Id(i) == numbers[i]);
}

std::string RandomOperand(const Counts& counts, const std::vector<Level>& levels, bool of_rows) {
  while (true) {
    const int value = Random(0, levels.size());
    if (of_rows && levels[value] == Level::kId) continue;
    const int first[] = {0, counts.FirstRowGradient(), counts.FirstTableGradient(),
                         counts.FirstParameter(), counts.FirstResult()};
    int kind = 4;
    while (value < first[kind]) --kind;
    return "sgtpv"[kind] + std::to_string(value - first[kind]);
  }
}

template <typename T>
void TestRandomPrograms(int count) {
  const char* names[] = {"add",         "sub",         "mul",         "div",         "square",
                         "sqrt",        "neg",         "less",        "select",      "segment_sum",
                         "scatter_add", "scatter_sub", "scatter_update", "touched_add",
                         "touched_sub", "touched_update", "segment_sum", "scatter_add"};
  const int operands[] = {2, 2, 2, 2, 1, 1, 1, 2, 3, 1, 2, 2, 2, 2, 2, 2, 1, 2};
  for (int round = 0; round < count; ++round) {
    const Counts counts = {static_cast<int>(Random(1, 4)), 2, 1, 2};
    std::vector<std::string> text, results;
    Program program;
    while (text.size() < 9) {
      program = Program();
      ProgramParser(counts, &program).Parse(text, {});
      const int pick = Random(0, 18);
      std::string line = names[pick];
      for (int i = 0; i < operands[pick]; ++i) {
        const bool of_rows = pick >= 10 && (i == 0 || line[0] == 't') && operands[pick] == 2;
        line += " " + RandomOperand(counts, program.levels, of_rows);
      }
      text.push_back(line);
    }
    program = Program();
    ProgramParser(counts, &program).Parse(text, {});
    for (int i = 0; i < counts.states; ++i) {
      results.push_back(RandomOperand(counts, program.levels, true));
    }
    program = Parsed(counts, text, results);
    Model<T> model(program);
    model.AddTable(Random(1, 400), Random(1, 20), {{Random(0, 300), 1, 1}, {Random(0, 60), 1, 2}});
    const int64_t rows = Random(1, 900);
    model.AddTable(rows, Random(1, 9), {{Random(0, 500), rows}});
    CheckUpdated(model);
  }
}

template <typename T>
void TestRandomPools(int count) {
  TestRandomPools<T>(Parsed({2, 2, 1, 1},
                            {"greater s0 p0", "select v0 s0 t0", "mul g0 g1", "scatter_add v1 v2",
                             "touched_add v3 p0", "scatter_sub s1 g1"},
                            {"v4", "v5"}),
                     count);
  const int64_t before = num_by_pool;
  TestRandomPools<T>(Parsed({2, 1, 0, 1},
                            {"segment_sum g0", "square v0", "touched_add s1 v1", "mul v0 p0",
                             "sqrt v2", "div v3 v4", "touched_sub s0 v5"},
                            {"v6", "v2"}),
                     count);
  CHECK(num_by_pool > before);
}

template <typename T>
void TestAllOf(int programs) {
  TestRules<T>();
  TestRandomPrograms<T>(programs);
}

}  // namespace

int main() {
  TestAllOf<float>(60);
  TestAllOf<double>(20);
  TestAllOf<Half>(20);
  TestAllOf<Bfloat16>(20);
  TestPools<float>();
  TestPools<double>();
  TestRandomPools<float>(60);
  TestRandomPools<double>(20);
  TestBadPools();
  TestOrderOfPools();
  return Report();
}
