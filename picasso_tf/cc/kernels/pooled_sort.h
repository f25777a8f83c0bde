// Ids that do not come in the order of the rows that they belong to. They are rare, so
// they are sorted only once a pooled lookup has met them.

#ifndef PICASSO_TF_CC_KERNELS_POOLED_SORT_H_
#define PICASSO_TF_CC_KERNELS_POOLED_SORT_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "picasso_tf/cc/kernels/pooled_lookup.h"

namespace picasso {
namespace pooled_lookup {

struct SortedInput {
  std::vector<int64_t> ids;
  std::vector<int64_t> segments;
  std::vector<char> weights;
};

// Lets the lookup read its ids row by row, those of one row in the order in which they
// came and without those that are dropped, from copies in `memory`. False: they come so
// already, or row splits or a length order them.
inline bool SortByRow(Lookup* lookup, SortedInput* memory) {
  if (lookup->segments.are_splits || lookup->segments.length >= 0) return false;
  std::vector<int64_t> order;
  for (int64_t j = 0; j < lookup->num_ids; ++j) {
    if (!IsLeftOut(*lookup, j)) order.push_back(j);
  }
  const auto before = [lookup](int64_t a, int64_t b) {
    return SegmentAt(lookup->segments, a) < SegmentAt(lookup->segments, b);
  };
  const bool all = static_cast<int64_t>(order.size()) == lookup->num_ids;
  if (all && std::is_sorted(order.begin(), order.end(), before)) return false;
  std::stable_sort(order.begin(), order.end(), before);
  for (int64_t j : order) {
    memory->ids.push_back(IdAt(*lookup, j));
    memory->segments.push_back(SegmentAt(lookup->segments, j));
  }
  if (lookup->weights != nullptr) {
    const size_t size = lookup->weights_are_double ? sizeof(double) : sizeof(float);
    const char* given = static_cast<const char*>(lookup->weights);
    memory->weights.resize(order.size() * size);
    for (size_t i = 0; i < order.size(); ++i) {
      std::memcpy(&memory->weights[i * size], given + order[i] * size, size);
    }
    lookup->weights = memory->weights.data();
  }
  lookup->num_ids = order.size();
  lookup->ids = memory->ids.data();
  lookup->id_kind = IdKind::kInt64;
  lookup->ids_columns = lookup->ids_pitch = 1;
  lookup->ids_first = 0;
  lookup->segments = Segments();
  lookup->segments.data = memory->segments.data();
  lookup->segments.is_int64 = true;
  return true;
}

}  // namespace pooled_lookup
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_POOLED_SORT_H_
