// Gradients of pooled lookups: the ids of one output row share that row's gradient,
// scaled as the pooling scaled their rows.

#ifndef PICASSO_TF_CC_KERNELS_UPDATE_POOLS_H_
#define PICASSO_TF_CC_KERNELS_UPDATE_POOLS_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>

#include "picasso_tf/cc/kernels/packed_update.h"

namespace picasso {
namespace packed_update {

enum class Combiner { kSum, kMean, kSqrtN };

// A Pool that finds its scales itself.
class ScaledPool : public Pool {
 public:
  // False: an id is of a row that the gradient does not have. The scales are those of
  // TensorFlow's SparseSegmentMeanGrad and its kin: 1 / n or 1 / sqrt(n), in double.
  bool FindScales(Combiner combiner, const Segment& ids) {
    const bool needs_counts = combiner != Combiner::kSum;
    if (needs_counts) memory_.reset(new double[num_rows]());
    for (int64_t i = 0; i < ids.num_ids; ++i) {
      if (IsLeftOut(ids, i)) continue;
      const int64_t row = RowOf(i);
      if (row < 0 || row >= num_rows) return false;
      if (needs_counts) ++memory_[row];
    }
    for (int64_t row = 0; row < num_rows && needs_counts; ++row) {
      const double count = std::max(memory_[row], 1.0);
      memory_[row] = 1.0 / (combiner == Combiner::kMean ? count : std::sqrt(count));
    }
    scales = memory_.get();
    return true;
  }

  static bool IsLeftOut(const Segment& ids, int64_t i) {
    return ids.fill >= 0 && IdAt(ids, i) < 0;
  }

 private:
  std::unique_ptr<double[]> memory_;
};

}  // namespace packed_update
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_UPDATE_POOLS_H_
