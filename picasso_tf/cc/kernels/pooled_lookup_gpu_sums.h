// GPU side of the packed pooled lookup: the sums of one thread, a few columns of one row
// of the output. The order of the additions is that of the CPU: see pooled_lookup.h and
// pooled_weights.h.

#ifndef PICASSO_TF_CC_KERNELS_POOLED_LOOKUP_GPU_SUMS_H_
#define PICASSO_TF_CC_KERNELS_POOLED_LOOKUP_GPU_SUMS_H_

#include <cstring>

#include "picasso_tf/cc/kernels/pooled_lookup_gpu_plan.h"
#include "picasso_tf/cc/kernels/pooled_weights.h"

namespace picasso {
namespace pooled_lookup {

// The ids of one row of the output: `num` of those at [first, last) of the ids, or of their
// order. All others there are left out.
struct RowIds {
  int64_t first, last;
  int64_t num;
};

// Row splits may hold anything.
PICASSO_HOST_DEVICE inline int64_t SplitAt(const GpuPiece& piece, int64_t row) {
  const int64_t split = SegmentAt(piece.segments, row);
  return split < 0 ? 0 : (split < piece.num_ids ? split : piece.num_ids);
}

// The rarer steps are functions of their own: inlined they would be most of the code.
#define PICASSO_RARE PICASSO_HOST_DEVICE inline __attribute__((noinline))

// How many ids of [first, last) are not left out.
PICASSO_RARE int64_t CountKept(const GpuPiece& piece, int64_t first, int64_t last) {
  int64_t num = 0;
  for (int64_t j = first; j < last; ++j) num += !IsLeftOut(piece, j);
  return num;
}

// The next id at `place` or later that is not left out, where there is one.
PICASSO_RARE int64_t KeptFrom(const GpuPiece& piece, int64_t place) {
  while (IsLeftOut(piece, place)) ++place;
  return place;
}

#undef PICASSO_RARE

PICASSO_HOST_DEVICE inline RowIds IdsOf(const GpuPiece& piece, int64_t row) {
  RowIds ids;
  if (piece.segments.are_splits) {
    ids.first = SplitAt(piece, row);
    ids.last = SplitAt(piece, row + 1);
  } else {
    ids.first = piece.starts[row];
    ids.last = piece.starts[row + 1];
  }
  ids.num = ids.last > ids.first ? ids.last - ids.first : 0;
  if ((piece.drop_negative || piece.drop_weightless) && !piece.is_disordered) {
    ids.num = CountKept(piece, ids.first, ids.last);
  }
  return ids;
}

// Goes through the ids of one row and to the rows of the table, in columns of kBytes.
// Ids are vectors, of one type or the other.
template <typename T, int kBytes>
class RowReader {
 public:
  using C = Compute<T>;
  static constexpr int kLanes = kBytes / sizeof(T);

  // `offset` is where the columns begin, in bytes.
  PICASSO_HOST_DEVICE RowReader(const GpuPiece& piece, const RowIds& ids, int64_t offset)
      : piece_(piece), ids_(ids), offset_(offset), at_(ids.first) {}

  // Steps to the next id, which there must be. Returns its place among all ids.
  PICASSO_HOST_DEVICE int64_t Next() {
    if (piece_.is_disordered) return piece_.order[at_++];
    if (ids_.num < ids_.last - ids_.first) at_ = KeptFrom(piece_, at_);
    return at_++;
  }

  // Columns of the id's table row. An id out of range has a row of zeros.
  PICASSO_HOST_DEVICE Chunk<kBytes> ChunkOf(int64_t place) const {
    const int64_t id = piece_.id_kind == IdKind::kInt32 ? LoadId<IdKind::kInt32>(piece_, place)
                                                        : LoadId<IdKind::kInt64>(piece_, place);
    return InRange(piece_, id) ? ChunkOfRow(id) : Chunk<kBytes>{};
  }

  PICASSO_HOST_DEVICE Chunk<kBytes> ChunkOfRow(int64_t row) const {
    return *reinterpret_cast<const Chunk<kBytes>*>(piece_.table + row * piece_.row_bytes + offset_);
  }

  PICASSO_HOST_DEVICE static void Load(const Chunk<kBytes>& chunk, C* values) {
    T stored[kLanes];
    memcpy(stored, &chunk, kBytes);
    PICASSO_UNROLL
    for (int k = 0; k < kLanes; ++k) values[k] = Value<T>::Load(stored[k]);
  }

 private:
  const GpuPiece& piece_;
  const RowIds ids_;
  const int64_t offset_;
  int64_t at_;
};

// Sum of the next `count` rows, kMaxFirstGroup at most, from left to right. All of them
// are on their way before the first is added.
template <typename T, int kBytes>
PICASSO_HOST_DEVICE PICASSO_INLINE void SumNext(RowReader<T, kBytes>* rows, int count,
                                                Compute<T>* sums) {
  constexpr int kLanes = RowReader<T, kBytes>::kLanes;
  int64_t places[kMaxFirstGroup];
  Chunk<kBytes> chunks[kMaxFirstGroup];
  PICASSO_UNROLL
  for (int i = 0; i < kMaxFirstGroup; ++i) places[i] = i < count ? rows->Next() : 0;
  PICASSO_UNROLL
  for (int i = 0; i < kMaxFirstGroup; ++i) {
    if (i < count) chunks[i] = rows->ChunkOf(places[i]);
  }
  PICASSO_UNROLL
  for (int i = 0; i < kMaxFirstGroup; ++i) {
    if (i >= count) continue;
    Compute<T> values[kLanes];
    RowReader<T, kBytes>::Load(chunks[i], values);
    PICASSO_UNROLL
    for (int k = 0; k < kLanes; ++k) sums[k] = i == 0 ? values[k] : sums[k] + values[k];
  }
}

// Combines the rows of `num` > 0 ids.
template <typename T, int kBytes>
PICASSO_HOST_DEVICE inline void PoolOnGpu(RowReader<T, kBytes> rows, Combiner combiner, int64_t num,
                                          Compute<T>* sums) {
  constexpr int kLanes = RowReader<T, kBytes>::kLanes;
  const Scaling<Compute<T>> scaling = ScalingOf<Compute<T>>(combiner, num);
  int64_t done = FirstGroup(num);
  SumNext<T, kBytes>(&rows, static_cast<int>(done), sums);
  for (int k = 0; k < kLanes && num > 1; ++k) sums[k] = sums[k] * scaling.factor;
  if (done == num) return;
  for (; done < num; done += kGroup) {
    Compute<T> group[kLanes];
    SumNext<T, kBytes>(&rows, kGroup, group);
    for (int k = 0; k < kLanes; ++k) sums[k] = sums[k] + group[k];
  }
  if (combiner == Combiner::kSum) return;
  for (int k = 0; k < kLanes; ++k) sums[k] = sums[k] / scaling.divisor;
}

// The same with weights. `in_packet` tells whether the columns are in a whole packet.
template <typename T, int kBytes>
PICASSO_HOST_DEVICE inline void PoolWeightedOnGpu(RowReader<T, kBytes> rows, Combiner combiner,
                                                  const Compute<T>* weights, int64_t num,
                                                  bool in_packet, Compute<T>* sums) {
  using C = Compute<T>;
  constexpr int kLanes = RowReader<T, kBytes>::kLanes;
  const bool in_chains = num >= kLeastForChains && in_packet;
  C chains[kChains][kLanes] = {};
  C terms(0);
  int64_t done = 0;
  // One row more; a chain is chosen by a constant, so that all chains stay in registers.
  const auto add = [&](const Chunk<kBytes>& chunk, C weight, C* to) {
    C values[kLanes];
    RowReader<T, kBytes>::Load(chunk, values);
    const C term = WeightTerm(combiner, weight);
    terms = num == 1 ? term : terms + term;
    PICASSO_UNROLL
    for (int k = 0; k < kLanes; ++k) {
      const C product = values[k] * weight;
      to[k] = num == 1 ? product : to[k] + product;
    }
  };
  for (; done + kChains <= num; done += kChains) {
    Chunk<kBytes> chunks[kChains];
    C factors[kChains];
    PICASSO_UNROLL
    for (int i = 0; i < kChains; ++i) {
      const int64_t place = rows.Next();
      factors[i] = weights[place];
      chunks[i] = rows.ChunkOf(place);
    }
    PICASSO_UNROLL
    for (int i = 0; i < kChains; ++i) {
      in_chains ? add(chunks[i], factors[i], chains[i]) : add(chunks[i], factors[i], chains[0]);
    }
  }
  PICASSO_UNROLL
  for (int i = 1; i < kChains; ++i) {
    for (int k = 0; k < kLanes && in_chains; ++k) chains[0][k] = chains[0][k] + chains[i][k];
  }
  for (; done < num; ++done) {
    const int64_t place = rows.Next();
    add(rows.ChunkOf(place), weights[place], chains[0]);
  }
  const C divisor = DivisorOf(combiner, terms);
  PICASSO_UNROLL
  for (int k = 0; k < kLanes; ++k) {
    sums[k] = chains[0][k];
    if (combiner != Combiner::kSum) sums[k] = divisor == C(0) ? C(0) : sums[k] / divisor;
  }
}

}  // namespace pooled_lookup
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_POOLED_LOOKUP_GPU_SUMS_H_
