// One call of Picasso>PackedLookup: binds inputs to attributes, allocates the
// outputs and lists the pieces to fill. The same on every device.

#ifndef PICASSO_TF_CC_KERNELS_PACKED_LOOKUP_CALL_H_
#define PICASSO_TF_CC_KERNELS_PACKED_LOOKUP_CALL_H_

#include <cstdint>

#include "picasso_tf/cc/kernels/packed_lookup.h"
#include "picasso_tf/cc/kernels/packed_lookup_attrs.h"
#include "picasso_tf/cc/kernels/variables.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace picasso {
namespace packed_lookup {

class Call {
 public:
  Call(tensorflow::OpKernelContext* context, const Attrs& attrs)
      : context_(context), attrs_(attrs) {}

  // Locks the tables, allocates the outputs and sets `shapes`. The locks are
  // held until the call goes out of scope.
  absl::Status Prepare();

  const List<Piece>& pieces() const { return pieces_; }
  const List<Matrix>& matrices() const { return matrices_; }

  // The error for the first id that is out of range: lowest lookup, then lowest
  // position, whatever order the rows were filled in. Reads ids on the host.
  absl::Status BadIdError() const;

 private:
  const tensorflow::Tensor& Table(const Lookup& lookup) const {
    return *vars_[lookup.table]->tensor();
  }
  const tensorflow::Tensor& Ids(const Lookup& lookup) const {
    return context_->input(attrs_.num_tables + lookup.ids);
  }
  const tensorflow::Tensor& Dense(int64_t dense) const {
    return context_->input(attrs_.num_tables + attrs_.num_ids + dense);
  }

  absl::Status BindLookup(const Lookup& lookup);
  absl::Status AddPiece(const OutputSpec& output, int64_t at);
  absl::Status AddOutput(int index);
  absl::Status SetShapes();

  absl::Status NaturalShape(const Lookup& lookup, tensorflow::TensorShape* shape) const;

  tensorflow::OpKernelContext* const context_;
  const Attrs& attrs_;
  Vars vars_;
  Locks locks_{Access::kRead};  // released before the variables are
  BoundShards shards_;
  List<Piece> lookups_;    // one for each lookup, not yet placed in an output
  List<Piece> pieces_;     // of all outputs, in order
  List<Matrix> matrices_;  // one for each output
};

}  // namespace packed_lookup
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_PACKED_LOOKUP_CALL_H_
