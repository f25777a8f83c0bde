// GPU kernels of Picasso>PackedSparseUpdate and Picasso>PackedDenseUpdate.

#if GOOGLE_CUDA

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "picasso_tf/cc/kernels/packed_update_attrs.h"
#include "picasso_tf/cc/kernels/packed_update_call.h"
#include "picasso_tf/cc/kernels/packed_update_gpu.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "xla/stream_executor/stream.h"

namespace picasso {
namespace packed_update {
namespace {

using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;

// `T` is the kernels' type for the dtype.
template <typename T, Extent kExtent>
class PackedUpdateGpuOp : public OpKernel {
 public:
  explicit PackedUpdateGpuOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, ReadAttrs(*context, kExtent, &attrs_));
    OP_REQUIRES(context, !attrs_.has_pooled,
                absl::UnimplementedError(absl::StrCat(
                    attrs_.op, ": gradients of pooled ids are not there on a GPU yet.")));
    code_ = std::make_unique<GpuCode>(attrs_.program);
    OP_REQUIRES(context, GpuThreads(code_->num_slots()) > 0,
                InvalidIn(attrs_.op, "`program` needs ", code_->num_slots(),
                          " values of a row at once, but a GPU thread holds at most ",
                          kGpuMaxSlots, "."));
  }

  // The locks are released once the kernels are launched: other users of the
  // variables run on the same stream, after them.
  void Compute(OpKernelContext* context) override {
    Call call(context, attrs_);
    OP_REQUIRES_OK(context, call.Prepare());
    WorkLayout<T> layout(*code_, call.tables(), kExtent == Extent::kAllRows);
    const std::string problem = layout.Problem();
    OP_REQUIRES(context, problem.empty(), InvalidIn(attrs_.op, problem));
    if (layout.HasNothingToDo()) return;
    OP_REQUIRES_OK(context, call.OpenStates());

    const size_t sort_bytes = GpuSortBytes(layout.num_ids(), layout.KeyBits());
    tensorflow::Tensor memory;
    const tensorflow::TensorShape shape({static_cast<int64_t>(layout.Bytes(sort_bytes))});
    OP_REQUIRES_OK(context, context->allocate_temp(tensorflow::DT_INT8, shape, &memory));
    std::vector<int64_t> plan;
    const Work work = layout.Write(memory.data(), sort_bytes, &plan);
    const char* error = LaunchPackedUpdate<T>(
        work, plan, layout.KeyBits(),
        context->op_device_context()->stream()->platform_specific_handle().stream);
    OP_REQUIRES(context, error == nullptr,
                absl::InternalError(absl::StrCat(attrs_.op, ": CUDA reports: ", error)));
  }

 private:
  Attrs attrs_;
  std::unique_ptr<GpuCode> code_;
};

// Handles are in host memory; ids, gradients and scalars are read on the device.
#define PICASSO_REGISTER(Type, T)                                          \
  REGISTER_KERNEL_BUILDER(Name("Picasso>PackedSparseUpdate")               \
                              .Device(tensorflow::DEVICE_GPU)              \
                              .HostMemory("variables")                     \
                              .TypeConstraint<Type>("dtype"),              \
                          PackedUpdateGpuOp<T, Extent::kTouchedRows>);     \
  REGISTER_KERNEL_BUILDER(Name("Picasso>PackedDenseUpdate")                \
                              .Device(tensorflow::DEVICE_GPU)              \
                              .HostMemory("variables")                     \
                              .TypeConstraint<Type>("dtype"),              \
                          PackedUpdateGpuOp<T, Extent::kAllRows>);
PICASSO_REGISTER(Eigen::half, Half)
PICASSO_REGISTER(Eigen::bfloat16, Bfloat16)
PICASSO_REGISTER(float, float)
PICASSO_REGISTER(double, double)
#undef PICASSO_REGISTER

}  // namespace
}  // namespace packed_update
}  // namespace picasso

#endif  // GOOGLE_CUDA
