// Kernel of Picasso>PackedIndicators.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "picasso_tf/cc/kernels/attr_checks.h"
#include "picasso_tf/cc/kernels/indicator_attrs.h"
#include "picasso_tf/cc/kernels/indicator_loops.h"
#include "picasso_tf/cc/kernels/parallel_blocks.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"

namespace picasso {
namespace indicators {
namespace {

using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;

constexpr int64_t kUnit = 1 << 15;  // elements; about as long as it takes to wake a thread

class PackedIndicatorsOp : public tensorflow::OpKernel {
 public:
  explicit PackedIndicatorsOp(tensorflow::OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, ReadAttrs(*context, &attrs_));
  }

  void Compute(OpKernelContext* context) override {
    std::vector<Feature> features(attrs_.depths.size());
    std::vector<std::vector<int64_t>> widened(attrs_.depths.size());  // ids that are int32
    std::vector<float*> outputs(attrs_.depths.size());
    std::vector<Unit> units;
    for (size_t i = 0; i < attrs_.depths.size(); ++i) {
      Feature& feature = features[i];
      OP_REQUIRES_OK(context, Bind(context, i, &feature, &widened[i]));
      TensorShape shape;
      OP_REQUIRES_OK(context, shape.AddDimWithStatus(feature.rows));
      OP_REQUIRES_OK(context, shape.AddDimWithStatus(feature.depth));
      Tensor* output = nullptr;
      OP_REQUIRES_OK(context, context->allocate_output(i, shape, &output));
      outputs[i] = output->flat<float>().data();
      const int64_t rows = kUnit / std::max<int64_t>(feature.depth, 1) + 1;
      for (int64_t first = 0; first < feature.rows; first += rows) {
        units.push_back({i, first, std::min(first + rows, feature.rows)});
      }
    }
    auto* pool = context->device()->tensorflow_cpu_worker_threads()->workers;
    ParallelBlocks(pool, units.size(), pool->NumThreads(), [&](int64_t i) {
      const Unit& unit = units[i];
      WriteCounts(features[unit.feature], unit.first, unit.last, outputs[unit.feature]);
    });
  }

 private:
  struct Unit {
    size_t feature;
    int64_t first, last;
  };

  static const int64_t* Ids(const Tensor& ids, std::vector<int64_t>* widened) {
    if (ids.dtype() == tensorflow::DT_INT64) return ids.flat<int64_t>().data();
    const auto narrow = ids.flat<int32_t>();
    widened->assign(narrow.data(), narrow.data() + narrow.size());
    return widened->data();
  }

  absl::Status Bind(OpKernelContext* context, size_t i, Feature* feature,
                    std::vector<int64_t>* widened) const {
    const size_t count = attrs_.depths.size();
    const Tensor& indices = context->input(i);
    const Tensor& ids = context->input(count + i);
    const Tensor& shape = context->input(2 * count + i);
    const bool good = indices.dims() == 2 && indices.dim_size(1) == 2 && shape.dims() == 1 &&
                      shape.NumElements() == 2 && shape.flat<int64_t>()(0) >= 0 &&
                      shape.flat<int64_t>()(1) >= 0 &&
                      (ids.dims() == 0 ||
                       (ids.dims() == 1 && ids.dim_size(0) == indices.dim_size(0)));
    if (!good) {
      return InvalidIn(kOp, "'", attrs_.names[i], "' is no SparseTensor of rank 2: its indices are ",
                       indices.shape().DebugString(), ", its values ", ids.shape().DebugString(),
                       ", its shape ", shape.SummarizeValue(2), ".");
    }
    *feature = {indices.flat<int64_t>().data(), Ids(ids, widened), ids.dims(), indices.dim_size(0),
                shape.flat<int64_t>()(0), shape.flat<int64_t>()(1), attrs_.depths[i]};
    const int64_t bad = FindBadIndex(*feature);
    if (bad < 0) return absl::OkStatus();
    return InvalidIn(kOp, "index ", bad, " of '", attrs_.names[i], "' is out of bounds or out of order.");
  }

  Attrs attrs_;
};

REGISTER_KERNEL_BUILDER(Name("Picasso>PackedIndicators").Device(tensorflow::DEVICE_CPU),
                        PackedIndicatorsOp);

}  // namespace
}  // namespace indicators
}  // namespace picasso
