// Gradients of pooled lookups: the ids of one output row share that row's gradient,
// scaled as the pooling scaled their rows.

#ifndef PICASSO_TF_CC_KERNELS_UPDATE_POOLS_H_
#define PICASSO_TF_CC_KERNELS_UPDATE_POOLS_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "picasso_tf/cc/kernels/packed_update.h"

namespace picasso {
namespace packed_update {

enum class Combiner { kSum, kMean, kSqrtN };

// A Pool that finds its scales itself.
class ScaledPool : public Pool {
 public:
  // To be called before ids are sorted. False: an id is of a row that the gradient does
  // not have. The scales are those of
  // TensorFlow's SparseSegmentMeanGrad and its kin: 1 / n or 1 / sqrt(n), in double.
  bool FindScales(Combiner combiner, const Segment& ids) {
    in_order = true;
    if (rows == nullptr && combiner == Combiner::kSum && ids.fill < 0) return true;
    counts_.assign(num_rows, 0);
    counts = counts_.data();
    int64_t before = 0;
    for (int64_t i = 0; i < ids.num_ids; ++i) {
      if (IsLeftOut(ids, i)) continue;
      const int64_t row = RowOf(i);
      if (row < 0 || row >= num_rows) return false;
      ++counts_[row];
      in_order &= before <= row;
      before = row;
    }
    if (!in_order && ids.fill >= 0) SortByRow(ids.num_ids);
    if (combiner == Combiner::kSum) return true;
    scales_.resize(num_rows);
    for (int64_t row = 0; row < num_rows; ++row) {
      const double count = static_cast<double>(std::max<int64_t>(counts_[row], 1));
      scales_[row] = 1.0 / (combiner == Combiner::kMean ? count : std::sqrt(count));
    }
    scales = scales_.data();
    return true;
  }

  static bool IsLeftOut(const Segment& ids, int64_t i) {
    return ids.fill >= 0 && IdAt(ids, i) < 0;
  }

 private:
  // As SparseFillEmptyRows brings ids into the order of their rows.
  void SortByRow(int64_t num_ids) {
    order_.resize(num_ids);
    std::iota(order_.begin(), order_.end(), 0);
    std::stable_sort(order_.begin(), order_.end(),
                     [this](int64_t a, int64_t b) { return RowOf(a) < RowOf(b); });
    order = order_.data();
  }

  std::vector<int64_t> counts_;
  std::vector<double> scales_;
  std::vector<int64_t> order_;
};

}  // namespace packed_update
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_UPDATE_POOLS_H_
