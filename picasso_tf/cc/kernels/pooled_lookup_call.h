// One call of Picasso>PackedPooledLookup: binds inputs to attributes, allocates the
// outputs and lists the pieces to fill.

#ifndef PICASSO_TF_CC_KERNELS_POOLED_LOOKUP_CALL_H_
#define PICASSO_TF_CC_KERNELS_POOLED_LOOKUP_CALL_H_

#include <cstdint>
#include <deque>
#include <string>

#include "picasso_tf/cc/kernels/pooled_lookup.h"
#include "picasso_tf/cc/kernels/pooled_lookup_attrs.h"
#include "picasso_tf/cc/kernels/pooled_sort.h"
#include "picasso_tf/cc/kernels/variables.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace picasso {
namespace pooled_lookup {

// Where ids, segments and weights can be read.
enum class Memory { kHost, kDevice };

class Call {
 public:
  // With `kDevice` all lookups must state their number of rows.
  Call(tensorflow::OpKernelContext* context, const Attrs& attrs, Memory inputs = Memory::kHost)
      : context_(context), attrs_(attrs), inputs_(inputs) {}

  // Locks the tables and allocates the outputs and, for inputs on the host, what `starts`
  // point to. The locks are held until the call goes out of scope. Ids and segments are
  // not checked, but where there is no row for them.
  absl::Status Prepare();

  const List<Piece>& pieces() const { return pieces_; }
  const List<Matrix>& matrices() const { return matrices_; }

  // Sorts the ids of lookups that may come in any order of rows. False: there are none
  // that are out of order.
  bool SortIds();

  // The error for what is wrong with ids or segments: of the lowest lookup, segments
  // before ids, at the lowest position, whatever order the rows were filled in.
  absl::Status BadInputError() const;

 private:
  const tensorflow::Tensor& Table(const LookupSpec& lookup) const {
    return *vars_[lookup.table]->tensor();
  }
  const tensorflow::Tensor& Ids(const LookupSpec& lookup) const {
    return context_->input(attrs_.FirstIds() + lookup.ids.ids);
  }
  const tensorflow::Tensor& SegmentsOf(const LookupSpec& lookup) const {
    return context_->input(attrs_.FirstSegments() + lookup.segments);
  }
  const tensorflow::Tensor& Dense(int64_t dense) const {
    return context_->input(attrs_.FirstDense() + dense);
  }

  absl::Status BindLookup(const LookupSpec& spec);
  absl::Status BindWeights(const LookupSpec& spec, Lookup* lookup) const;
  absl::Status BindSegments(const LookupSpec& spec, Lookup* lookup) const;
  absl::Status BindRows(const LookupSpec& spec, Lookup* lookup) const;
  absl::Status AddPiece(const OutputSpec& output, int64_t at);
  absl::Status AddOutput(int index);
  absl::Status AllocateStarts();

  absl::Status SegmentError(const LookupSpec& spec, const Lookup& lookup, int64_t at) const;
  std::string TableName(const LookupSpec& spec) const;

  tensorflow::OpKernelContext* const context_;
  const Attrs& attrs_;
  const Memory inputs_;
  Vars vars_;
  Locks locks_{Access::kRead};  // released before the variables are
  BoundShards shards_;
  List<Piece> lookups_;    // one for each lookup, not yet placed in an output
  List<Piece> pieces_;     // of all outputs, in order
  List<Matrix> matrices_;  // one for each output
  tensorflow::Tensor starts_;
  std::deque<SortedInput> sorted_;
};

}  // namespace pooled_lookup
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_POOLED_LOOKUP_CALL_H_
