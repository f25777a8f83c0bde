// Kernels of Picasso>PackedLookup.

#include <cstdint>
#include <vector>

#include "picasso_tf/cc/kernels/packed_lookup_attrs.h"
#include "picasso_tf/cc/kernels/packed_lookup_call.h"
#include "picasso_tf/cc/kernels/packed_lookup_cpu.h"
#include "picasso_tf/cc/kernels/row_blocks.h"
#include "tensorflow/core/framework/op_kernel.h"

#if GOOGLE_CUDA
#include "picasso_tf/cc/kernels/packed_lookup_gpu.h"
#include "xla/stream_executor/stream.h"
#endif

namespace picasso {
namespace packed_lookup {
namespace {

using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;

// Runs all blocks of all matrices. False: an id is out of range.
bool FillOnCpu(OpKernelContext* context, const List<Matrix>& matrices) {
  return FillMatrices<List<RowBlocks>>(
      context->device()->tensorflow_cpu_worker_threads()->workers, matrices,
      [](const Matrix& matrix, int64_t begin, int64_t end) {
        return FillRows(matrix.pieces, matrix.num_pieces, begin, end);
      });
}

class PackedLookupOp : public OpKernel {
 public:
  explicit PackedLookupOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, ReadAttrs(*context, &attrs_));
  }

 protected:
  Attrs attrs_;
};

class PackedLookupCpuOp : public PackedLookupOp {
 public:
  using PackedLookupOp::PackedLookupOp;

  void Compute(OpKernelContext* context) override {
    Call call(context, attrs_);
    OP_REQUIRES_OK(context, call.Prepare());
    if (!FillOnCpu(context, call.matrices())) {
      OP_REQUIRES_OK(context, call.BadIdError());
    }
  }
};

REGISTER_KERNEL_BUILDER(Name("Picasso>PackedLookup").Device(tensorflow::DEVICE_CPU),
                        PackedLookupCpuOp);

#if GOOGLE_CUDA

class PackedLookupGpuOp : public PackedLookupOp {
 public:
  using PackedLookupOp::PackedLookupOp;

  // The locks are released once the kernel is launched: writers of the same
  // variables run on the same stream, after it.
  void Compute(OpKernelContext* context) override {
    Call call(context, attrs_);
    OP_REQUIRES_OK(context, call.Prepare());
    const int64_t num_pieces = call.pieces().size();
    std::vector<Piece> host_plan(PlanBytes(num_pieces) / sizeof(Piece) + 1);
    const int64_t tiles = WritePlan(call.pieces().data(), num_pieces, host_plan.data());
    OP_REQUIRES(context, tiles >= 0, Invalid("a row has 2 GiB or more, too long for a GPU."));

    tensorflow::Tensor device_plan;
    const tensorflow::TensorShape shape({static_cast<int64_t>(PlanBytes(num_pieces))});
    OP_REQUIRES_OK(context, context->allocate_temp(tensorflow::DT_INT8, shape, &device_plan));
    const char* error = LaunchPackedLookup(
        host_plan.data(), device_plan.data(), num_pieces, tiles,
        context->op_device_context()->stream()->platform_specific_handle().stream);
    OP_REQUIRES(context, error == nullptr,
                absl::InternalError(absl::StrCat("PackedLookup: CUDA reports: ", error)));
  }
};

REGISTER_KERNEL_BUILDER(Name("Picasso>PackedLookup")
                            .Device(tensorflow::DEVICE_GPU)
                            .HostMemory("tables")
                            .HostMemory("shapes"),
                        PackedLookupGpuOp);

#endif  // GOOGLE_CUDA

}  // namespace
}  // namespace packed_lookup
}  // namespace picasso
