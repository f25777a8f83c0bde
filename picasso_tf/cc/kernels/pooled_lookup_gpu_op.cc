// GPU kernel of Picasso>PackedPooledLookup.

#if GOOGLE_CUDA

#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "picasso_tf/cc/kernels/pooled_lookup_attrs.h"
#include "picasso_tf/cc/kernels/pooled_lookup_call.h"
#include "picasso_tf/cc/kernels/pooled_lookup_gpu.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "xla/stream_executor/stream.h"

namespace picasso {
namespace pooled_lookup {
namespace {

using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;

// `T` is the kernel's type for the dtype.
template <typename T>
class PackedPooledLookupGpuOp : public OpKernel {
 public:
  explicit PackedPooledLookupGpuOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, ReadAttrs(*context, &attrs_));
    for (const LookupSpec& lookup : attrs_.lookups) {
      OP_REQUIRES(context, !lookup.HasMatrix() && !lookup.in_turn,
                  absl::UnimplementedError(absl::StrCat(
                      kOp, ": lookup '", lookup.name, "' sums rows of a matrix of ids, or in ",
                      "turn, which a GPU does not know.")));
      // The last segment would tell, but the host would have to wait for it.
      const bool is_stated = lookup.rows >= 0 || attrs_.HasSplits(lookup);
      OP_REQUIRES(context, is_stated,
                  absl::UnimplementedError(absl::StrCat(
                      kOp, ": on a GPU the number of rows of lookup '", lookup.name,
                      "' must be given, but its `lookup_rows` is -1.")));
      OP_REQUIRES(context, lookup.shards.IsOne() && lookup.max_norm == 0,
                  absl::UnimplementedError(absl::StrCat(
                      kOp, ": lookup '", lookup.name, "' has shards or a norm, but not on a GPU.")));
    }
  }

  // The locks are released once the kernels are launched: writers of the same
  // variables run on the same stream, after them.
  void Compute(OpKernelContext* context) override {
    Call call(context, attrs_, Memory::kDevice);
    OP_REQUIRES_OK(context, call.Prepare());
    const GpuPlan<T> layout(call.pieces().data(), call.pieces().size());
    OP_REQUIRES(context, layout.Fits(),
                Invalid("a row has 2 GiB or more, or there are too many rows for a GPU."));

    tensorflow::Tensor memory;
    OP_REQUIRES_OK(context, context->allocate_temp(tensorflow::DT_INT8,
                                                   tensorflow::TensorShape({layout.Bytes()}),
                                                   &memory));
    std::vector<int64_t> plan;
    const GpuWork work = layout.Write(memory.data(), &plan);
    const char* error = LaunchPooledLookup<T>(
        work, plan, context->op_device_context()->stream()->platform_specific_handle().stream);
    OP_REQUIRES(context, error == nullptr,
                absl::InternalError(absl::StrCat(kOp, ": CUDA reports: ", error)));
  }

 private:
  Attrs attrs_;
};

// Handles and numbers of rows are in host memory; all else is read on the device.
#define PICASSO_REGISTER(Type, T)                             \
  REGISTER_KERNEL_BUILDER(Name("Picasso>PackedPooledLookup")  \
                              .Device(tensorflow::DEVICE_GPU) \
                              .HostMemory("tables")           \
                              .HostMemory("rows")             \
                              .TypeConstraint<Type>("dtype"), \
                          PackedPooledLookupGpuOp<T>);
PICASSO_REGISTER(Eigen::half, Half)
PICASSO_REGISTER(Eigen::bfloat16, Bfloat16)
PICASSO_REGISTER(float, float)
PICASSO_REGISTER(double, double)
#undef PICASSO_REGISTER

}  // namespace
}  // namespace pooled_lookup
}  // namespace picasso

#endif  // GOOGLE_CUDA
