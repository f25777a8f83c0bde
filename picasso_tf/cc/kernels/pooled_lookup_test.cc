// Stand-alone test of the packed pooled lookup: no TensorFlow, no test framework. From the
// project's root:
//
//   g++ -std=c++17 -g -O1 -ffp-contract=off -fsanitize=address,undefined -pthread -I.
//       -o pooled_lookup_test picasso_tf/cc/kernels/pooled_lookup_test.cc   (one line)
//   ./pooled_lookup_test
//
// Outputs are filled in blocks of several sizes and compared, bit by bit, with a loop that follows
// the definition. Buffers have no byte to spare, so that the address sanitizer sees any access
// beyond them.

#include "picasso_tf/cc/kernels/pooled_lookup.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <numeric>
#include <iterator>
#include <memory>
#include <vector>

#include "picasso_tf/cc/kernels/kernel_test.h"
#include "picasso_tf/cc/kernels/pooled_lookup_cpu.h"
#include "picasso_tf/cc/kernels/pooled_sort.h"
#include "picasso_tf/cc/kernels/row_blocks.h"

namespace {

using namespace picasso::pooled_lookup;
using namespace kernel_test;

using picasso::IdKind;

using Bytes = std::vector<char>;

enum class Form { kVector, kMatrix, kCube, kSplits, kLength };

// What a lookup is made of, in the plainest form.
struct Bag {
  std::vector<std::vector<int64_t>> ids;  // of each row
  int64_t table_rows = 1;
  int64_t width = 1;
  Combiner combiner = Combiner::kSum;
  bool drop_negative = false;
  int64_t fill = -1;
  Form form = Form::kVector;
  bool ids64 = false;
  bool segments64 = false;
  bool weighted = false;
  bool drop_weightless = false;
  bool masked = false;
  bool in_turn = false;
};

// Integers as one of the two types.
struct Integers {
  std::vector<int32_t> narrow;
  std::vector<int64_t> wide;

  const void* Data(bool is_wide) const {
    return is_wide ? static_cast<const void*>(wide.data()) : narrow.data();
  }
  void Set(const std::vector<int64_t>& values) {
    wide = values;
    narrow.assign(values.begin(), values.end());
  }
  void Copy(const Integers& other, int64_t from, int64_t to) {
    narrow[to] = other.narrow[from];
    wide[to] = other.wide[from];
  }
};

template <typename T>
T RandomValue() {
  return Value<T>::Store(static_cast<Compute<T>>(Random(-1000, 1000)) / Compute<T>(7));
}

// One combined row, column by column, as ReduceImpl writes it down.
template <typename T>
T Combined(const std::vector<T>& column, Combiner combiner) {
  using C = Compute<T>;
  const int64_t num = column.size();
  if (num == 1) return column[0];
  C size = 1;
  if (combiner == Combiner::kMean) size = num;
  if (combiner == Combiner::kSqrtN) size = std::sqrt(static_cast<double>(num));
  int64_t group = num % 8;
  if (group < 2) group += 8;
  C total = 0;
  for (int64_t i = 0; i < num; group = 8) {
    C sum = Value<T>::Load(column[i]);
    for (int64_t k = 1; k < group; ++k) sum += Value<T>::Load(column[i + k]);
    total = i > 0 ? total + sum : sum * (num < 10 ? C(1) / size : C(1));
    i += group;
  }
  return Value<T>::Store(num < 10 ? total : total / size);
}

// The same of a column whose rows have weights. SegmentSum adds in four chains what is in
// whole packets, `in_packet`.
template <typename T>
T WeightedCombined(const std::vector<T>& column, const std::vector<Compute<T>>& weights,
                   Combiner combiner, bool in_packet) {
  using C = Compute<T>;
  const auto sum = [](const std::vector<C>& terms, bool in_chains) {
    if (terms.size() == 1) return terms[0];
    C chains[4] = {};
    size_t i = 0;
    if (in_chains && terms.size() >= 16) {
      for (; i < terms.size() / 4 * 4; ++i) chains[i % 4] += terms[i];
    }
    C total = chains[0] + chains[1];
    total = total + chains[2];
    total = total + chains[3];
    for (; i < terms.size(); ++i) total += terms[i];
    return total;
  };
  std::vector<C> products, parts = weights;
  for (size_t i = 0; i < column.size(); ++i) {
    products.push_back(Value<T>::Load(column[i]) * weights[i]);
  }
  C total = sum(products, in_packet);
  if (combiner == Combiner::kSqrtN) {
    for (C& weight : parts) weight *= weight;
  }
  C divisor = sum(parts, false);
  if (combiner == Combiner::kSqrtN) divisor = std::sqrt(divisor);
  if (combiner != Combiner::kSum) total = divisor == 0 ? C(0) : total / divisor;
  return Value<T>::Store(total);
}

// The sum of terms in the order of Eigen's, along the last dimension.
template <typename C>
C SumInPackets(const std::vector<C>& terms) {
  constexpr size_t kLanes = 32 / sizeof(C);
  if (terms.size() == 1) return terms[0];
  C lanes[4][kLanes] = {};
  size_t i = 0;
  for (; i < terms.size() / (4 * kLanes) * 4 * kLanes; ++i) {
    lanes[i / kLanes % 4][i % kLanes] += terms[i];
  }
  for (size_t chain = 1; chain < 4; ++chain) {
    for (size_t lane = 0; lane < kLanes; ++lane) lanes[0][lane] += lanes[chain][lane];
  }
  for (; i < terms.size() / kLanes * kLanes; ++i) lanes[0][i % kLanes] += terms[i];
  C rest = 0;
  for (; i < terms.size(); ++i) rest += terms[i];
  for (size_t half = kLanes / 2; half > 0; half /= 2) {
    for (size_t lane = 0; lane < half; ++lane) lanes[0][lane] += lanes[0][lane + half];
  }
  return rest + lanes[0][0];
}

// One element of a sum or mean over rows of a matrix of ids; `at` is its number in the
// result [rows, width].
template <typename T>
T AlongAxis(const std::vector<T>& column, const std::vector<Compute<T>>& weights, Combiner combiner,
            int64_t at, int64_t width) {
  using C = Compute<T>;
  constexpr int64_t kPacket = 32 / sizeof(C);
  if (combiner == Combiner::kMean) {
    const C sum = Value<T>::Load(AlongAxis(column, weights, Combiner::kSum, at, width));
    return Value<T>::Store(sum / static_cast<C>(column.size()));
  }
  if (width > 1) {
    const bool in_packet = at / kPacket * kPacket % width + kPacket <= width;
    return WeightedCombined(column, weights, combiner, in_packet);
  }
  std::vector<C> terms;
  for (size_t i = 0; i < column.size(); ++i) {
    terms.push_back(Value<T>::Load(column[i]) * weights[i]);
  }
  return Value<T>::Store(SumInPackets(terms));
}

// One output and all that its pieces point to.
template <typename T>
class Output {
 public:
  explicit Output(int64_t rows) : rows_(rows) {}

  void AddDense(int64_t width) {
    Bag& bag = bags_.emplace_back();
    bag.width = width;
    bag.table_rows = rows_;
    Piece& piece = AddTable(bag);
    piece.rows = piece.num_ids = rows_;
  }

  void Add(const Bag& bag) {
    bags_.push_back(bag);
    Piece& piece = AddTable(bag);
    std::vector<int64_t> ids, owners, splits{0};
    for (int64_t row = 0; row < rows_; ++row) {
      ids.insert(ids.end(), bag.ids[row].begin(), bag.ids[row].end());
      owners.insert(owners.end(), bag.ids[row].size(), row);
      splits.push_back(ids.size());
    }
    ids_.emplace_back().Set(ids);
    piece.ids = ids_.back().Data(bag.ids64);
    piece.id_kind = bag.ids64 ? IdKind::kInt64 : IdKind::kInt32;
    piece.num_ids = ids.size();
    piece.rows = rows_;
    piece.drop_negative = bag.drop_negative;
    piece.fill = bag.fill;
    piece.combiner = bag.combiner;
    piece.in_turn = bag.in_turn;
    if (bag.weighted) AddWeights(bag, &piece);
    if (bag.masked) AddMask(&piece);
    if (bag.form == Form::kLength) piece.segments.length = bag.ids[0].size();
    piece.segments.is_int64 = bag.segments64;
    piece.segments.are_splits = bag.form == Form::kSplits;
    segments_.emplace_back().Set(InForm(bag.form, owners, splits, &piece.segments));
    piece.segments.data = segments_.back().Data(bag.segments64);
  }

  // Puts another segment in the place of one.
  void SetSegment(size_t piece, int64_t at, int64_t value) {
    segments_[piece].wide[at] = value;
    segments_[piece].narrow[at] = value;
  }

  // Puts the ids of a piece into another order, those of one row in the order that they
  // had. Row splits cannot tell it.
  void Disorder(size_t piece) {
    const Bag& bag = bags_[piece];
    std::vector<int64_t> owners, next{0}, order;
    for (int64_t row = 0; row < rows_; ++row) {
      owners.insert(owners.end(), bag.ids[row].size(), row);
      next.push_back(owners.size());
    }
    std::shuffle(owners.begin(), owners.end(), random_source);
    for (const int64_t row : owners) order.push_back(next[row]++);
    const int64_t pitch = pieces_[piece].segments.pitch;
    const Integers ids = ids_[piece], segments = segments_[piece];
    for (size_t j = 0; j < order.size(); ++j) {
      ids_[piece].Copy(ids, order[j], j);
      if (bag.weighted) weights_[piece][j] = weights_as_given_[piece][order[j]];
      for (int64_t c = 0; c < pitch; ++c) {
        segments_[piece].Copy(segments, order[j] * pitch + c, j * pitch + c);
      }
    }
  }

  void Place(Bytes* out, std::vector<Piece>* pieces) const {
    int64_t pitch = 0;
    for (const Piece& piece : pieces_) pitch += piece.row_bytes;
    out->assign(rows_ * pitch, 1);
    *pieces = std::vector<Piece>(pieces_.begin(), pieces_.end());
    int64_t offset = 0;
    for (Piece& piece : *pieces) {
      piece.out = out->data() + offset;
      piece.out_pitch = pitch;
      offset += piece.row_bytes;
    }
  }

  Bytes Wanted() const {
    Bytes out;
    std::vector<Piece> pieces;
    Place(&out, &pieces);
    for (size_t i = 0; i < pieces.size(); ++i) {
      for (int64_t row = 0; row < rows_; ++row) {
        T* to = reinterpret_cast<T*>(pieces[i].out + row * pieces[i].out_pitch);
        for (int64_t k = 0; k < bags_[i].width; ++k) to[k] = WantedAt(i, row, k);
      }
    }
    return out;
  }

  Bytes Filled(int64_t block_rows, bool* good) const {
    Bytes out;
    std::vector<Piece> pieces;
    Place(&out, &pieces);
    const Matrix matrix{pieces.data(), static_cast<int64_t>(pieces.size()), rows_};
    std::deque<std::vector<int64_t>> starts;
    *good = true;
    for (Piece& piece : pieces) {
      if (piece.IsDense()) continue;
      piece.starts = starts.emplace_back(piece.rows + 1).data();
      *good &= FindStarts(piece);
    }
    if (!*good) return out;
    for (int64_t begin = 0; begin < rows_; begin += block_rows) {
      *good &= FillRows<T>(matrix, begin, std::min(begin + block_rows, rows_));
    }
    return out;
  }

  Piece& piece(size_t i) { return pieces_[i]; }

 private:
  using C = Compute<T>;

  // Some are zero or negative.
  void AddWeights(const Bag& bag, Piece* piece) {
    std::vector<C>& weights = weights_as_given_.back();
    weights.resize(piece->num_ids);
    for (C& weight : weights) weight = static_cast<C>(Random(-1, 6)) / C(3);
    weights_.back() = weights;
    piece->weights = weights_.back().data();
    piece->weights_are_double = sizeof(C) == sizeof(double);
    piece->drop_weightless = bag.drop_weightless;
  }

  void AddMask(Piece* piece) {
    auto& mask = masks_.emplace_back(std::make_unique<bool[]>(piece->num_ids));
    for (int64_t j = 0; j < piece->num_ids; ++j) mask[j] = Random(0, 2);
    piece->mask = mask.get();
  }

  Piece& AddTable(const Bag& bag) {
    weights_.emplace_back();
    weights_as_given_.emplace_back();
    std::vector<T>& table = tables_.emplace_back(bag.table_rows * bag.width);
    for (T& value : table) value = RandomValue<T>();
    Piece& piece = pieces_.emplace_back();
    piece.table = reinterpret_cast<const char*>(table.data());
    piece.table_rows = bag.table_rows;
    piece.row_bytes = bag.width * sizeof(T);
    return piece;
  }

  static std::vector<int64_t> InForm(Form form, const std::vector<int64_t>& owners,
                                     const std::vector<int64_t>& splits, Segments* segments) {
    if (form == Form::kVector || form == Form::kLength) return owners;
    if (form == Form::kSplits) return splits;
    std::vector<int64_t> matrix;
    segments->pitch = form == Form::kMatrix ? 2 : 3;
    segments->columns = segments->pitch - 1;
    if (form == Form::kCube) segments->strides[0] = 5;
    if (form == Form::kCube) segments->strides[1] = 1;
    for (const int64_t owner : owners) {
      if (form == Form::kMatrix) matrix.insert(matrix.end(), {owner, 99});
      if (form == Form::kCube) matrix.insert(matrix.end(), {owner / 5, owner % 5, 99});
    }
    return matrix;
  }

  T WantedAt(size_t i, int64_t row, int64_t k) const {
    const Bag& bag = bags_[i];
    if (pieces_[i].IsDense()) return tables_[i][row * bag.width + k];
    size_t at = 0;
    for (int64_t before = 0; before < row; ++before) at += bag.ids[before].size();
    std::vector<T> column;
    std::vector<C> weights;
    for (const int64_t id : bag.ids[row]) {
      const C weight = bag.weighted ? weights_as_given_[i][at] : C(1);
      const bool is_hidden = bag.masked && !pieces_[i].mask[at];
      ++at;
      if (id < 0 || (bag.drop_weightless && weight <= 0)) continue;
      column.push_back(is_hidden ? T{} : tables_[i][id * bag.width + k]);
      weights.push_back(weight);
    }
    if (column.empty() && bag.fill >= 0) return tables_[i][bag.fill * bag.width + k];
    if (column.empty()) return T{};
    if (bag.form == Form::kLength) {
      return AlongAxis(column, weights, bag.combiner, row * bag.width + k, bag.width);
    }
    if (bag.in_turn && column.size() == 1) return Value<T>::Store(C(0) + Value<T>::Load(column[0]));
    if (bag.in_turn) return WeightedCombined(column, weights, bag.combiner, /*in_packet=*/false);
    if (!bag.weighted) return Combined(column, bag.combiner);
    constexpr int64_t kPacket = 32 / sizeof(C);
    const bool in_packet = k < bag.width / kPacket * kPacket;
    return WeightedCombined(column, weights, bag.combiner, in_packet);
  }

  int64_t rows_;
  std::deque<Bag> bags_;
  std::deque<Piece> pieces_;
  std::deque<std::vector<T>> tables_;
  std::deque<Integers> ids_;
  std::deque<Integers> segments_;
  std::deque<std::vector<C>> weights_, weights_as_given_;  // before ids were disordered
  std::deque<std::unique_ptr<bool[]>> masks_;
};

template <typename T>
void CheckFilled(Output<T>& output) {
  const Bytes wanted = output.Wanted();
  for (int64_t block_rows : {1, 7, 128, 1024}) {
    bool good = false;
    CHECK(output.Filled(block_rows, &good) == wanted);
    CHECK(good);
  }
}

std::vector<int64_t> RandomIds(int64_t count, int64_t begin, int64_t end) {
  std::vector<int64_t> ids(count);
  for (int64_t& id : ids) id = Random(begin, end);
  return ids;
}

// Rows of 0, 1, 2, ... ids.
Bag AllCounts(int64_t width, Combiner combiner) {
  Bag bag;
  bag.table_rows = 20;
  bag.width = width;
  bag.combiner = combiner;
  for (int64_t count = 0; count < 40; ++count) bag.ids.push_back(RandomIds(count, 0, 20));
  return bag;
}

template <typename T>
void TestAllCounts() {
  for (int64_t width : {1, 2, 4, 8, 15, 16, 21, 32, 64, 100, 256, 300}) {
    for (Combiner combiner : {Combiner::kSum, Combiner::kMean, Combiner::kSqrtN}) {
      Output<T> output(40);
      Bag bag = AllCounts(width, combiner);
      output.Add(bag);
      bag.weighted = true;
      output.Add(bag);
      bag.drop_weightless = true;
      output.Add(bag);
      CheckFilled(output);
    }
  }
}

// Rows of equally many ids, and such as are added in turn.
template <typename T>
void TestSumsAlongAxis() {
  for (int64_t width : {1, 2, 7, 8, 9, 17, 24, 300}) {
    for (int64_t length : {1, 2, 7, 8, 15, 16, 19, 32, 41, 70}) {
      Bag bag;
      bag.table_rows = 20;
      bag.width = width;
      bag.ids64 = length & 1;
      for (int row = 0; row < 40; ++row) bag.ids.push_back(RandomIds(length, 0, 20));
      Output<T> output(40);
      bag.in_turn = true;
      output.Add(bag);
      bag.in_turn = false;
      bag.form = Form::kLength;
      output.Add(bag);
      bag.masked = true;
      output.Add(bag);
      bag.masked = false;
      bag.combiner = Combiner::kMean;
      output.Add(bag);
      bag.combiner = Combiner::kSum;
      bag.weighted = true;
      output.Add(bag);
      CheckFilled(output);
      CHECK(FirstBadSegment(output.piece(1)) == -1);
    }
  }
}

void TestFormsOfSegments() {
  for (Form form : {Form::kVector, Form::kMatrix, Form::kCube, Form::kSplits}) {
    for (int wide = 0; wide < 4; ++wide) {
      Output<float> output(40);
      Bag bag = AllCounts(8, Combiner::kMean);
      bag.form = form;
      bag.ids64 = wide & 1;
      bag.segments64 = wide & 2;
      output.Add(bag);
      output.AddDense(3);
      std::reverse(bag.ids.begin(), bag.ids.end());
      output.Add(bag);
      CheckFilled(output);
      CHECK(FirstBadSegment(output.piece(0)) == -1);
      CHECK(HasRowWithoutIds(output.piece(0)));
    }
  }
}

// More ids in a row, more rows and more pieces than one batch holds.
void TestBatchesOverflow() {
  Bag bag;
  bag.table_rows = 30;
  bag.width = 9;
  for (int64_t count : {3000, 0, 1, 1023, 1024, 1025, 5, 9000}) {
    bag.ids.push_back(RandomIds(count, 0, 30));
  }
  Output<float> wide(8);
  wide.Add(bag);
  wide.Add(bag);
  bag.weighted = true;
  wide.Add(bag);
  CheckFilled(wide);

  Output<Half> many(3);
  for (int i = 0; i < 700; ++i) {
    bag.ids = {RandomIds(i % 3, 0, 30), {}, RandomIds(1, 0, 30)};
    bag.width = i % 9 + 1;
    bag.weighted = i % 3 == 1;
    many.Add(bag);
  }
  CheckFilled(many);
}

template <typename T>
void TestRandomOutputs() {
  for (int i = 0; i < 60; ++i) {
    const int64_t rows = Random(0, 80);
    Output<T> output(rows);
    const int64_t pieces = Random(1, 8);
    for (int64_t p = 0; p < pieces; ++p) {
      if (Random(0, 5) == 0) {
        output.AddDense(Random(1, 9));
        continue;
      }
      Bag bag;
      bag.table_rows = Random(1, 30);
      bag.width = Random(1, 40);
      bag.combiner = static_cast<Combiner>(Random(0, 3));
      bag.drop_negative = Random(0, 2);
      bag.fill = Random(-1, bag.table_rows);
      bag.form = static_cast<Form>(Random(0, 4));
      bag.ids64 = Random(0, 2);
      bag.segments64 = Random(0, 2);
      bag.weighted = Random(0, 2);
      bag.drop_weightless = bag.weighted && Random(0, 2);
      const int64_t most = Random(1, 40);
      for (int64_t row = 0; row < rows; ++row) {
        const int64_t lowest = bag.drop_negative ? -bag.table_rows : 0;
        bag.ids.push_back(RandomIds(Random(0, most), lowest, bag.table_rows));
      }
      output.Add(bag);
    }
    CheckFilled(output);
  }
}

// Whether it is refused in whatever blocks.
bool Refused(const Output<float>& output) {
  bool refused = true;
  for (int64_t block_rows : {1, 3, 7, 40}) {
    bool good = true;
    output.Filled(block_rows, &good);
    refused &= !good;
  }
  return refused;
}

void TestBadIds() {
  for (int64_t bad : {int64_t{20}, int64_t{-1}, INT64_MAX, INT64_MIN}) {
    Bag bag = AllCounts(8, Combiner::kSum);
    bag.ids64 = true;
    bag.ids[30][17] = bad;
    bag.ids[38][2] = bad;
    const int64_t at = 29 * 30 / 2 + 17;
    Output<float> output(40);
    output.Add(bag);
    CHECK(Refused(output));
    CHECK(FirstBadSegment(output.piece(0)) == -1);
    CHECK(FirstIdOutOfRange(output.piece(0)) == at);
    bag.drop_negative = true;
    Output<float> dropping(40);
    dropping.Add(bag);
    CHECK(Refused(dropping) == (bad > 0));
    CHECK(FirstIdOutOfRange(dropping.piece(0)) == (bad > 0 ? at : -1));
  }
}

// What has no weight may name no row.
void TestBadIdsWithoutWeight() {
  Bag bag = AllCounts(8, Combiner::kMean);
  bag.weighted = true;
  bag.ids[30][17] = 20;
  const int64_t at = 29 * 30 / 2 + 17;
  for (const bool drop : {false, true}) {
    bag.drop_weightless = drop;
    for (const float weight : {0.0f, -1.0f, std::nanf(""), 1.0f}) {
      Output<float> output(40);
      output.Add(bag);
      const_cast<float*>(static_cast<const float*>(output.piece(0).weights))[at] = weight;
      const bool left_out = drop && !(weight > 0);
      CHECK(Refused(output) == !left_out);
      CHECK(FirstIdOutOfRange(output.piece(0)) == (left_out ? -1 : at));
    }
  }
}

void TestBadSegments() {
  const int64_t first = 29 * 30 / 2;  // id of row 30
  for (int64_t bad : {int64_t{29}, int64_t{0}, int64_t{40}, int64_t{-1}, INT64_MAX, INT64_MIN}) {
    for (Form form : {Form::kVector, Form::kMatrix}) {
      Bag bag = AllCounts(8, Combiner::kSum);
      bag.form = form;
      bag.segments64 = true;
      Output<float> output(40);
      output.Add(bag);
      const int64_t pitch = form == Form::kVector ? 1 : 2;
      output.SetSegment(0, (first + 5) * pitch, bad);
      CHECK(Refused(output));
      CHECK(FirstBadSegment(output.piece(0)) == first + 5);
    }
  }
}

void TestAnyDisorderIsFound() {
  for (int i = 0; i < 300; ++i) {
    Bag bag = AllCounts(2, Combiner::kSum);
    std::shuffle(bag.ids.begin(), bag.ids.end(), random_source);
    Output<float> output(40);
    output.Add(bag);
    for (int64_t changes = Random(1, 30); changes > 0; --changes) {
      output.SetSegment(0, Random(0, output.piece(0).num_ids), Random(-1, 41));
    }
    CHECK(Refused(output) == (FirstBadSegment(output.piece(0)) >= 0));
  }
}

void TestBadSplits() {
  Bag bag = AllCounts(8, Combiner::kSum);
  bag.form = Form::kSplits;
  const int64_t num_ids = 39 * 40 / 2;
  const int64_t cases[][3] = {
      {0, 1, 0}, {0, -1, 0}, {40, num_ids - 1, 40}, {40, num_ids + 1, 40}, {30, 0, 30},
      {30, num_ids + 9, 30}, {39, num_ids, -1}, {20, -5, 20},
  };
  for (const auto& [at, value, found] : cases) {
    Output<float> output(40);
    output.Add(bag);
    output.SetSegment(0, at, value);
    CHECK(FirstBadSegment(output.piece(0)) == found);
    if (found >= 0) CHECK(Refused(output));
  }
}

void TestSortByRow() {
  for (Form form : {Form::kVector, Form::kMatrix, Form::kCube}) {
    for (int wide = 0; wide < 8; ++wide) {
      Bag bag = AllCounts(8, Combiner::kMean);
      bag.form = form;
      bag.ids64 = wide & 1;
      bag.segments64 = wide & 2;
      bag.weighted = wide & 4;
      bag.drop_negative = true;
      for (int64_t row = 20; row < 30; ++row) bag.ids[row][row / 2] = -row;
      std::reverse(bag.ids.begin(), bag.ids.end());
      Output<float> output(40), ordered(40);
      output.Add(bag);
      ordered.Add(bag);
      SortedInput memory, kept;
      CHECK(SortByRow(&ordered.piece(0), &kept));  // in order, but some are dropped
      CheckFilled(ordered);
      output.Disorder(0);
      CHECK(Refused(output));
      CHECK(FirstBadSegment(output.piece(0)) >= 0);
      CHECK(FirstBadSegment(output.piece(0), /*in_any_order=*/true) == -1);
      CHECK(HasRowWithoutIds(output.piece(0)));
      CHECK(SortByRow(&output.piece(0), &memory));
      CHECK(output.piece(0).ids == memory.ids.data());
      CHECK(FirstBadSegment(output.piece(0)) == -1);
      std::vector<int64_t> wanted;
      for (const auto& ids : bag.ids) {
        std::copy_if(ids.begin(), ids.end(), std::back_inserter(wanted),
                     [](int64_t id) { return id >= 0; });
      }
      CHECK(memory.ids == wanted && kept.ids == wanted);
      CheckFilled(output);
      SortedInput unused;
      CHECK(!SortByRow(&output.piece(0), &unused));
    }
  }
}

// Row splits, no ids, one id; and what is wrong stays wrong.
void TestSortByRowOfSpecialInput() {
  SortedInput memory;
  Bag bag = AllCounts(8, Combiner::kSum);
  bag.form = Form::kSplits;
  Output<float> splits(40);
  splits.Add(bag);
  splits.SetSegment(0, 5, 0);
  CHECK(!SortByRow(&splits.piece(0), &memory));
  bag.form = Form::kVector;
  for (auto& ids : bag.ids) ids.clear();
  Output<float> none(40);
  none.Add(bag);
  CHECK(!SortByRow(&none.piece(0), &memory));
  bag.ids[7] = {3};
  Output<float> one(40);
  one.Add(bag);
  CHECK(!SortByRow(&one.piece(0), &memory));
  for (const int64_t bad : {int64_t{40}, int64_t{-1}, INT64_MAX, INT64_MIN}) {
    Bag many = AllCounts(8, Combiner::kSum);
    many.segments64 = true;
    Output<float> output(40);
    output.Add(many);
    output.SetSegment(0, 50, bad);
    CHECK(FirstBadSegment(output.piece(0), /*in_any_order=*/true) == 50);
    SortedInput of_many;
    CHECK(SortByRow(&output.piece(0), &of_many));
    CHECK(Refused(output));
    CHECK(FirstBadSegment(output.piece(0)) == (bad < 0 ? 0 : 39 * 40 / 2 - 1));
  }
}

void TestFillOutOfRange() {
  Bag bag = AllCounts(8, Combiner::kSum);
  bag.fill = 20;
  Output<float> output(40);
  output.Add(bag);
  CHECK(Refused(output));
  CHECK(HasRowWithoutIds(output.piece(0)));
  bag.ids[0] = {3};
  Output<float> unused(40);
  unused.Add(bag);
  CHECK(!Refused(unused));
  CHECK(!HasRowWithoutIds(unused.piece(0)));
}

void TestBlocks() {
  Piece piece;
  piece.row_bytes = 256;
  piece.num_ids = 700;
  CHECK(RowTraffic({&piece, 1, 100}) == 256 * 8);
  CHECK(BlockRows({&piece, 1, 100}) == 100 / kFewestBlocks);
  CHECK(BlockRows({&piece, 1, 0}) == 1);
  piece.row_bytes = 4;
  piece.num_ids = 0;
  CHECK(RowTraffic({&piece, 1, 100}) == kCacheLine);
  CHECK(BlockRows({&piece, 1, 100000}) == 100000 / kFewestBlocks);
  CHECK(RowTraffic({&piece, 1, 0}) == kCacheLine);
  piece.row_bytes = kBlockBytes + 4;
  CHECK(BlockRows({&piece, 1, 1000}) == 1);
  piece.row_bytes = kBlockBytes / 8;
  CHECK(BlockRows({&piece, 1, 1000}) == 8);
}

void TestFillBlocks() {
  const std::vector<picasso::RowBlocks> blocks = {{0, 3, 7}, {3, 5, 0}, {3, 2, 4}, {5, 100, 1}};
  CHECK(blocks[0].End() == 3 && blocks[1].End() == 3 && blocks[2].End() == 5);
  for (int threads : {1, 8}) {
    std::vector<std::vector<int>> runs{{0, 0, 0, 0, 0, 0, 0}, {}, {0, 0, 0, 0}, {0}};
    TestPool pool(threads);
    const bool good =
        picasso::FillBlocks(&pool, blocks, 1 << 30, [&](int64_t i, int64_t begin, int64_t end) {
          for (int64_t row = begin; row < end; ++row) ++runs[i][row];
          return true;
        });
    CHECK(good);
    for (const std::vector<int>& rows : runs) CHECK(rows == std::vector<int>(rows.size(), 1));
    CHECK(!picasso::FillBlocks(&pool, blocks, 1 << 30,
                               [](int64_t i, int64_t begin, int64_t) { return begin != 2; }));
  }
}

// Every instruction set that this machine has gives the same bits.
template <typename T>
void TestInstructionSets(bool weighted) {
  constexpr int64_t kWidth = 53;
  std::vector<T> table(20 * kWidth);
  for (T& value : table) value = RandomValue<T>();
  for (int64_t num = 1; num < 30; ++num) {
    std::vector<const T*> rows(num + kAhead);
    for (const T*& row : rows) row = &table[Random(0, 20) * kWidth];
    std::vector<Compute<T>> weights(num);
    for (Compute<T>& weight : weights) weight = Compute<T>(Random(-9, 9)) / Compute<T>(7);
    std::vector<std::vector<T>> outs(3, std::vector<T>(kWidth));
    const auto task = [&](int i) {
      const Compute<T>* given = weighted ? weights.data() : nullptr;
      const Order order = weighted ? Order::kColumns : Order::kGroups;
      return PooledRow<T>{outs[i].data(), num, kWidth, Combiner::kSqrtN, order, {3, 51}, given};
    };
    PooledRow<T> tasks[] = {task(0), task(1), task(2)};
    PoolRowsBaseline(&tasks[0], 1, rows.data());
    outs[1] = outs[2] = outs[0];
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) PoolRowsAvx2(&tasks[1], 1, rows.data());
    if (__builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw")) {
      PoolRowsAvx512(&tasks[2], 1, rows.data());
    }
#endif
    for (const std::vector<T>& out : outs) {
      CHECK(std::memcmp(out.data(), outs[0].data(), kWidth * sizeof(T)) == 0);
    }
  }
}

template <typename T>
void TestType() {
  TestAllCounts<T>();
  TestRandomOutputs<T>();
  TestInstructionSets<T>(/*weighted=*/false);
  TestInstructionSets<T>(/*weighted=*/true);
}

}  // namespace

int main() {
  TestType<float>();
  TestType<double>();
  TestType<Half>();
  TestType<Bfloat16>();
  TestSumsAlongAxis<float>();
  TestSumsAlongAxis<double>();
  TestFormsOfSegments();
  TestBatchesOverflow();
  TestBadIds();
  TestBadIdsWithoutWeight();
  TestBadSegments();
  TestAnyDisorderIsFound();
  TestBadSplits();
  TestSortByRow();
  TestSortByRowOfSpecialInput();
  TestFillOutOfRange();
  TestBlocks();
  TestFillBlocks();
  return Report();
}
