// Kernel of Picasso>PackedPooledLookup.

#include <cstdint>

#include "picasso_tf/cc/kernels/pooled_lookup_attrs.h"
#include "picasso_tf/cc/kernels/pooled_lookup_call.h"
#include "picasso_tf/cc/kernels/pooled_lookup_cpu.h"
#include "picasso_tf/cc/kernels/row_blocks.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace picasso {
namespace pooled_lookup {
namespace {

using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;

// Runs all blocks of all matrices. False: something is wrong with ids or segments.
template <typename T>
bool FillAs(OpKernelContext* context, const List<Matrix>& matrices) {
  return FillMatrices<List<RowBlocks>>(
      context->device()->tensorflow_cpu_worker_threads()->workers, matrices,
      [](const Matrix& matrix, int64_t begin, int64_t end) {
        return FillRows<T>(matrix, begin, end);
      });
}

bool Fill(OpKernelContext* context, tensorflow::DataType dtype, const List<Matrix>& matrices) {
  switch (dtype) {
    case tensorflow::DT_HALF:
      return FillAs<Half>(context, matrices);
    case tensorflow::DT_BFLOAT16:
      return FillAs<Bfloat16>(context, matrices);
    case tensorflow::DT_DOUBLE:
      return FillAs<double>(context, matrices);
    default:
      return FillAs<float>(context, matrices);
  }
}

class PackedPooledLookupOp : public OpKernel {
 public:
  explicit PackedPooledLookupOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, ReadAttrs(*context, &attrs_));
  }

  void Compute(OpKernelContext* context) override {
    Call call(context, attrs_);
    OP_REQUIRES_OK(context, call.Prepare());
    bool good = Fill(context, attrs_.dtype, call.matrices());
    if (!good && call.SortIds()) good = Fill(context, attrs_.dtype, call.matrices());
    if (!good) OP_REQUIRES_OK(context, call.BadInputError());
  }

 private:
  Attrs attrs_;
};

REGISTER_KERNEL_BUILDER(Name("Picasso>PackedPooledLookup").Device(tensorflow::DEVICE_CPU),
                        PackedPooledLookupOp);

}  // namespace
}  // namespace pooled_lookup
}  // namespace picasso
