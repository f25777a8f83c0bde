// The segments of a pooled lookup on the CPU: where the rows of its output begin among
// its ids, and, for the error, what is wrong with segments or ids.

#ifndef PICASSO_TF_CC_KERNELS_POOLED_SEGMENTS_H_
#define PICASSO_TF_CC_KERNELS_POOLED_SEGMENTS_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "picasso_tf/cc/kernels/pooled_lookup.h"

namespace picasso {
namespace pooled_lookup {

template <typename Int>
bool FindStartsOfSplits(const Lookup& lookup) {
  const Int* splits = static_cast<const Int*>(lookup.segments.data);
  bool good = splits[0] == 0 && splits[lookup.rows] == lookup.num_ids;
  int64_t last = 0;
  for (int64_t row = 0; row <= lookup.rows; ++row) {
    const int64_t start = splits[row];
    good &= last <= start;
    lookup.starts[row] = last = start;
  }
  return good;
}

template <typename Int>
bool FindStartsOfSegments(const Lookup& lookup) {
  const Segments segments = lookup.segments;  // what is stored below may not change it
  const int64_t rows = lookup.rows, num_ids = lookup.num_ids;
  int64_t* const starts = lookup.starts;
  std::fill_n(starts, rows + 1, 0);
  bool good = true;
  int64_t before = 0;
  for (int64_t j = 0; j < num_ids; ++j) {
    const int64_t segment = SegmentAs<Int>(segments, j);
    const bool in_range = segment < rows;
    good &= in_range & (before <= segment);
    before = segment;
    starts[good ? segment + 1 : 0] = j + 1;  // the last id of a row stays
  }
  for (int64_t row = 0; row < rows; ++row) {
    starts[row + 1] = std::max(starts[row], starts[row + 1]);
  }
  return good;
}

// Sets lookup.starts. False: the segments decrease or are out of range.
inline bool FindStarts(const Lookup& lookup) {
  if (const int64_t length = lookup.segments.length; length >= 0) {
    for (int64_t row = 0; row <= lookup.rows; ++row) lookup.starts[row] = row * length;
    return true;
  }
  const bool is_int64 = lookup.segments.is_int64;
  if (lookup.segments.are_splits) {
    return is_int64 ? FindStartsOfSplits<int64_t>(lookup) : FindStartsOfSplits<int32_t>(lookup);
  }
  return is_int64 ? FindStartsOfSegments<int64_t>(lookup)
                  : FindStartsOfSegments<int32_t>(lookup);
}

// ---- What is wrong, for the error ------------------------------------------------

// The first id, or the first row split, whose segment is out of range or less than the
// one before it; -1 if there is none. A lookup without rows may have no ids. Where ids
// may come `in_any_order`, those that are dropped have no say.
inline int64_t FirstBadSegment(const Lookup& lookup, bool in_any_order = false) {
  if (lookup.segments.length >= 0) return -1;
  const bool splits = lookup.segments.are_splits;
  const int64_t count = splits ? lookup.rows + 1 : lookup.num_ids;
  const int64_t highest = splits ? lookup.num_ids : lookup.rows - 1;
  int64_t lowest = 0;
  for (int64_t j = 0; j < count; ++j) {
    const int64_t segment = SegmentAt(lookup.segments, j);
    if (!splits && in_any_order && IsLeftOut(lookup, j)) continue;
    if (segment < lowest || segment > highest) return j;
    if (splits && j == 0 && segment != 0) return j;
    if (splits && j == lookup.rows && segment != lookup.num_ids) return j;
    if (splits || !in_any_order) lowest = segment;
  }
  return -1;
}

// Number of the first id that is out of range, or -1.
inline int64_t FirstIdOutOfRange(const Lookup& lookup) {
  for (int64_t j = 0; j < lookup.num_ids; ++j) {
    if (!HasRow(lookup, IdAt(lookup, j)) && !IsLeftOut(lookup, j)) return j;
  }
  return -1;
}

// Whether there is a row that `fill` is for; segments must be good.
inline bool HasRowWithoutIds(const Lookup& lookup) {
  const Segments& segments = lookup.segments;
  std::vector<bool> has_id(lookup.rows);
  int64_t row = 0;
  for (int64_t j = 0; j < lookup.num_ids; ++j) {
    if (!segments.are_splits) row = SegmentAt(segments, j);
    while (segments.are_splits && SegmentAt(segments, row + 1) <= j) ++row;
    if (!IsLeftOut(lookup, j)) has_id[row] = true;
  }
  return std::find(has_id.begin(), has_id.end(), false) != has_id.end();
}

}  // namespace pooled_lookup
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_POOLED_SEGMENTS_H_
