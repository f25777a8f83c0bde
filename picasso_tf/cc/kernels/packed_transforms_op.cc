// Kernel of Picasso>PackedTransforms.

#include "picasso_tf/cc/kernels/transform_attrs.h"
#include "picasso_tf/cc/kernels/transform_call.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace picasso {
namespace transforms {
namespace {

class PackedTransformsOp : public tensorflow::OpKernel {
 public:
  explicit PackedTransformsOp(tensorflow::OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, ReadAttrs(*context, &attrs_));
  }

  void Compute(tensorflow::OpKernelContext* context) override {
    OP_REQUIRES_OK(context, Call(context, attrs_).Run());
  }

 private:
  Attrs attrs_;
};

REGISTER_KERNEL_BUILDER(Name("Picasso>PackedTransforms").Device(tensorflow::DEVICE_CPU),
                        PackedTransformsOp);

}  // namespace
}  // namespace transforms
}  // namespace picasso
