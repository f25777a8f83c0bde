// Kernel of Picasso>PackedCrosses.

#include "picasso_tf/cc/kernels/cross_attrs.h"
#include "picasso_tf/cc/kernels/cross_call.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace picasso {
namespace crosses {
namespace {

class PackedCrossesOp : public tensorflow::OpKernel {
 public:
  explicit PackedCrossesOp(tensorflow::OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, ReadAttrs(*context, &attrs_));
  }

  void Compute(tensorflow::OpKernelContext* context) override {
    OP_REQUIRES_OK(context, Call(context, attrs_).Run());
  }

 private:
  Attrs attrs_;
};

REGISTER_KERNEL_BUILDER(Name("Picasso>PackedCrosses").Device(tensorflow::DEVICE_CPU),
                        PackedCrossesOp);

}  // namespace
}  // namespace crosses
}  // namespace picasso
