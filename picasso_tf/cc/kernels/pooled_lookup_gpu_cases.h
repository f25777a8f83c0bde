// Cases for the tests of the GPU's packed pooled lookup, on the host and on a GPU: random
// outputs, and what the CPU's kernel makes of the same input.

#ifndef PICASSO_TF_CC_KERNELS_POOLED_LOOKUP_GPU_CASES_H_
#define PICASSO_TF_CC_KERNELS_POOLED_LOOKUP_GPU_CASES_H_

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <vector>

#include "picasso_tf/cc/kernels/pooled_lookup.h"
#include "picasso_tf/cc/kernels/pooled_lookup_cpu.h"

namespace picasso {
namespace pooled_lookup {
namespace cases {

using Random = std::mt19937_64;
using Bytes = std::vector<char>;

inline int64_t Draw(Random& random, int64_t begin, int64_t end) {
  return begin + static_cast<int64_t>(random() % (end - begin));
}

enum class Form { kVector, kMatrix, kCube, kSplits };

// What a lookup is made of.
struct Bag {
  int64_t table_rows = 20;
  int64_t width = 8;
  Combiner combiner = Combiner::kSum;
  bool drop_negative = false;
  int64_t fill = -1;
  Form form = Form::kVector;
  bool ids64 = true;
  bool segments64 = true;
  bool weighted = false;
  bool drop_weightless = false;
  bool disordered = false;  // not for row splits
  bool bad = false;         // some ids and segments are out of range
  std::vector<int64_t> counts;  // ids of each row
};

// Outputs and all that their pieces read. Each tensor is a part by itself, with not a byte
// to spare, a copy of which may be on a GPU.
template <typename T>
class Case {
 public:
  void AddOutput(int64_t rows) {
    outputs_.push_back({rows, 0, {}});
  }

  // The last output gets one more piece.
  void AddDense(Random& random, int64_t width) {
    Placed& placed = Place(width);
    Piece& piece = placed.piece;
    piece.rows = piece.num_ids = outputs_.back().rows;
    placed.table = AddTable(random, piece.rows, width, /*zeros=*/0);
    placed.cpu_table = placed.table;
  }

  void AddLookup(Random& random, const Bag& bag) {
    Placed& placed = Place(bag.width);
    Piece& piece = placed.piece;
    piece.table_rows = bag.table_rows;
    piece.rows = outputs_.back().rows;
    piece.combiner = bag.combiner;
    piece.drop_negative = bag.drop_negative;
    piece.drop_weightless = bag.drop_weightless;
    piece.fill = bag.fill;
    piece.id_kind = bag.ids64 ? IdKind::kInt64 : IdKind::kInt32;
    piece.weights_are_double = sizeof(C) == sizeof(double);
    placed.cpu_table = AddTable(random, bag.table_rows, bag.width, /*zeros=*/1);
    Bytes table = parts_[placed.cpu_table];
    table.resize(bag.table_rows * piece.row_bytes);
    placed.table = Add(table);

    std::vector<int64_t> owners;
    for (size_t row = 0; row < bag.counts.size(); ++row) {
      owners.insert(owners.end(), bag.counts[row], row);
    }
    if (bag.disordered) std::shuffle(owners.begin(), owners.end(), random);
    piece.num_ids = owners.size();
    std::vector<int64_t> ids(owners.size());
    for (size_t j = 0; j < ids.size(); ++j) {
      ids[j] = Draw(random, bag.drop_negative ? -bag.table_rows / 2 : 0, bag.table_rows);
      if (bag.bad && Draw(random, 0, 6) == 0) ids[j] = bag.table_rows + Draw(random, 0, 3);
      if (bag.bad && Draw(random, 0, 6) == 0) ids[j] = -1;
      if (!bag.bad || bag.form == Form::kSplits || Draw(random, 0, 6) != 0) continue;
      owners[j] = Draw(random, 0, 2) == 0 ? -1 : piece.rows + Draw(random, 0, 3);
    }
    std::vector<C> weights(bag.weighted ? ids.size() : 0);  // some are zero or negative
    for (C& weight : weights) weight = static_cast<C>(Draw(random, -1, 6)) / C(3);

    placed.ids = AddIntegers(ids, bag.ids64);
    placed.weights = bag.weighted ? Add(weights) : -1;
    placed.segments = AddSegments(bag, owners, &piece.segments);
    PrepareForCpu(bag, ids, owners, weights, &placed);
  }

  const std::vector<Bytes>& parts() const { return parts_; }
  bool IsOutput(size_t part) const {
    return std::any_of(outputs_.begin(), outputs_.end(),
                       [&](const Output& output) { return output.part == part; });
  }

  // Once all pieces are there: makes room for the outputs.
  void Finish() {
    for (Output& output : outputs_) {
      int64_t pitch = 0;
      for (const Placed& placed : output.pieces) pitch += placed.piece.row_bytes;
      output.part = Add(Bytes(output.rows * pitch, 1));
    }
  }

  // The pieces of all outputs, where part i is at address(i).
  std::vector<Piece> Pieces(const std::function<char*(size_t)>& address) const {
    return AllPieces([&](const Placed& placed) {
      const auto at = [&](int64_t part) { return part < 0 ? nullptr : address(part); };
      Piece piece = placed.piece;
      piece.table = at(placed.table);
      piece.ids = at(placed.ids);
      piece.segments.data = at(placed.segments);
      piece.weights = at(placed.weights);
      return piece;
    }, address);
  }

  // What the CPU's kernel writes into the parts that are outputs.
  std::vector<Bytes> Wanted() const {
    std::vector<Bytes> wanted = parts_;
    const auto address = [&](size_t part) { return wanted[part].data(); };
    std::vector<Piece> pieces = AllPieces([&](const Placed& placed) {
      Piece piece = placed.piece;
      piece.table = parts_[placed.cpu_table].data();
      if (piece.IsDense()) return piece;
      piece.table_rows += 1;
      piece.fill = std::min(piece.fill, placed.piece.table_rows);
      piece.id_kind = IdKind::kInt64;
      piece.ids = placed.cpu_ids.data();
      piece.num_ids = placed.cpu_ids.size();
      piece.segments = Segments();
      piece.segments.is_int64 = true;
      piece.segments.data = placed.cpu_segments.data();
      if (placed.weights >= 0) piece.weights = placed.cpu_weights.data();
      return piece;
    }, address);
    const Piece* next = pieces.data();
    for (const Output& output : outputs_) {
      const Matrix matrix = {next, static_cast<int64_t>(output.pieces.size()), output.rows};
      next += output.pieces.size();
      std::deque<std::vector<int64_t>> starts;
      bool good = true;
      for (int64_t i = 0; i < matrix.num_pieces; ++i) {
        Piece& piece = pieces[&matrix.pieces[i] - pieces.data()];
        if (piece.IsDense()) continue;
        piece.starts = starts.emplace_back(piece.rows + 1).data();
        good &= FindStarts(piece);
      }
      if (good && FillRows<T>(matrix, 0, output.rows)) continue;
      std::printf("the CPU's kernel refuses the input\n");
      std::abort();
    }
    return wanted;
  }

 private:
  using C = Compute<T>;

  // Numbers are those of parts, -1: none. The CPU's kernel takes no input that is out of
  // range or out of order, so it gets ids in order, and a row of zeros for bad ones.
  struct Placed {
    Piece piece;
    int64_t table = -1, cpu_table = -1, ids = -1, segments = -1, weights = -1;
    std::vector<int64_t> cpu_ids, cpu_segments;
    std::vector<C> cpu_weights;
  };
  struct Output {
    int64_t rows;
    size_t part;
    std::vector<Placed> pieces;
  };

  Placed& Place(int64_t width) {
    Placed& placed = outputs_.back().pieces.emplace_back();
    placed.piece.row_bytes = width * sizeof(T);
    return placed;
  }

  int64_t Add(Bytes bytes) {
    parts_.push_back(std::move(bytes));
    return parts_.size() - 1;
  }
  template <typename E>
  int64_t Add(const std::vector<E>& elements) {
    Bytes bytes(elements.size() * sizeof(E));
    if (!bytes.empty()) std::memcpy(bytes.data(), elements.data(), bytes.size());
    return Add(std::move(bytes));
  }

  int64_t AddIntegers(const std::vector<int64_t>& values, bool wide) {
    return wide ? Add(values) : Add(std::vector<int32_t>(values.begin(), values.end()));
  }

  // `zeros` rows at the end are zeros.
  int64_t AddTable(Random& random, int64_t rows, int64_t width, int64_t zeros) {
    std::vector<T> table((rows + zeros) * width);
    for (int64_t i = 0; i < rows * width; ++i) {
      table[i] = Value<T>::Store(static_cast<C>(Draw(random, -1000, 1000)) / C(7));
    }
    return Add(table);
  }

  int64_t AddSegments(const Bag& bag, const std::vector<int64_t>& owners, Segments* segments) {
    std::vector<int64_t> values = owners;
    segments->is_int64 = bag.segments64;
    segments->are_splits = bag.form == Form::kSplits;
    if (segments->are_splits) {
      values.assign(1, 0);
      for (const int64_t count : bag.counts) values.push_back(values.back() + count);
    } else if (bag.form != Form::kVector) {
      values.clear();
      segments->pitch = bag.form == Form::kMatrix ? 2 : 3;
      segments->columns = segments->pitch - 1;
      segments->strides[0] = bag.form == Form::kMatrix ? 1 : 5;
      segments->strides[1] = 1;
      for (const int64_t owner : owners) {
        if (bag.form == Form::kMatrix) values.insert(values.end(), {owner, 99});
        if (bag.form == Form::kCube) values.insert(values.end(), {owner / 5, owner % 5, 99});
      }
    }
    return AddIntegers(values, bag.segments64);
  }

  static void PrepareForCpu(const Bag& bag, const std::vector<int64_t>& ids,
                            const std::vector<int64_t>& owners, const std::vector<C>& weights,
                            Placed* placed) {
    std::vector<int64_t> order;
    for (size_t j = 0; j < owners.size(); ++j) {
      if (0 <= owners[j] && owners[j] < placed->piece.rows) order.push_back(j);
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return owners[a] < owners[b]; });
    for (const int64_t j : order) {
      const bool good = ids[j] < bag.table_rows && (ids[j] >= 0 || bag.drop_negative);
      placed->cpu_ids.push_back(good ? ids[j] : bag.table_rows);
      placed->cpu_segments.push_back(owners[j]);
      if (bag.weighted) placed->cpu_weights.push_back(weights[j]);
    }
  }

  template <typename Bind, typename Address>
  std::vector<Piece> AllPieces(const Bind& bind, const Address& address) const {
    std::vector<Piece> pieces;
    for (const Output& output : outputs_) {
      const size_t first = pieces.size();
      int64_t pitch = 0;
      for (const Placed& placed : output.pieces) {
        pieces.push_back(bind(placed));
        pieces.back().out = address(output.part) + pitch;
        pitch += placed.piece.row_bytes;
      }
      for (size_t i = first; i < pieces.size(); ++i) pieces[i].out_pitch = pitch;
    }
    return pieces;
  }

  std::vector<Bytes> parts_;
  std::vector<Output> outputs_;
};

// Any lookup for `rows` rows, of at most `most` ids each.
inline Bag RandomBag(Random& random, int64_t rows, int64_t most) {
  Bag bag;
  bag.table_rows = Draw(random, 1, 30);
  bag.width = Draw(random, 0, 3) == 0 ? 8 * Draw(random, 1, 9) : Draw(random, 1, 40);
  bag.combiner = static_cast<Combiner>(Draw(random, 0, 3));
  bag.drop_negative = Draw(random, 0, 2);
  bag.fill = Draw(random, -1, bag.table_rows + 2);
  bag.form = static_cast<Form>(Draw(random, 0, 4));
  bag.ids64 = Draw(random, 0, 2);
  bag.segments64 = Draw(random, 0, 2);
  bag.weighted = Draw(random, 0, 2);
  bag.drop_weightless = bag.weighted && Draw(random, 0, 2);
  bag.disordered = bag.form != Form::kSplits && Draw(random, 0, 4) == 0;
  bag.bad = Draw(random, 0, 4) == 0;
  for (int64_t row = 0; row < rows; ++row) bag.counts.push_back(Draw(random, 0, most + 1));
  return bag;
}

// A few outputs of any pieces.
template <typename T>
Case<T> RandomCase(Random& random, int64_t most_rows) {
  Case<T> one;
  for (int64_t outputs = Draw(random, 1, 4); outputs > 0; --outputs) {
    const int64_t rows = Draw(random, 0, most_rows + 1);
    one.AddOutput(rows);
    for (int64_t pieces = Draw(random, 1, 7); pieces > 0; --pieces) {
      if (Draw(random, 0, 5) == 0) {
        one.AddDense(random, Draw(random, 1, 9));
      } else {
        one.AddLookup(random, RandomBag(random, rows, Draw(random, 0, 40)));
      }
    }
  }
  one.Finish();
  return one;
}

// Rows of 0, 1, 2, ... ids.
inline Bag AllCounts(int64_t width, Combiner combiner) {
  Bag bag;
  bag.width = width;
  bag.combiner = combiner;
  for (int64_t count = 0; count < 40; ++count) bag.counts.push_back(count);
  return bag;
}

}  // namespace cases
}  // namespace pooled_lookup
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_POOLED_LOOKUP_GPU_CASES_H_
