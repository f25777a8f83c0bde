#include "picasso_tf/cc/kernels/indicator_attrs.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace picasso {
namespace indicators {
namespace {

using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;

absl::Status InferShapes(InferenceContext* c) {
  Attrs attrs;
  TF_RETURN_IF_ERROR(ReadAttrs(*c, &attrs));
  const int count = attrs.depths.size();
  for (int i = 0; i < count; ++i) {
    ShapeHandle ignored;
    TF_RETURN_IF_ERROR(c->WithRank(c->input(i), 2, &ignored));
    TF_RETURN_IF_ERROR(c->WithRankAtMost(c->input(count + i), 1, &ignored));
    TF_RETURN_IF_ERROR(c->WithRank(c->input(2 * count + i), 1, &ignored));
    c->set_output(i, c->Matrix(c->UnknownDim(), attrs.depths[i]));
  }
  return absl::OkStatus();
}

REGISTER_OP("Picasso>PackedIndicators")
    .Input("indices: num_features * int64")
    .Input("ids: id_types")
    .Input("shapes: num_features * int64")
    .Output("counts: num_features * float")
    .Attr("num_features: int >= 1")
    .Attr("id_types: list({int32, int64}) >= 1")
    .Attr("feature_names: list(string)")
    .Attr("depths: list(int)")
    .SetShapeFn(InferShapes)
    .Doc(R"doc(
Counts how often each id is among the ids of an example, for N features.

A feature is a SparseTensor of rank 2, a row for each example. Ids below 0, or not below the depth,
count for nothing. Indices must be in bounds and in order, as SparseToDense wants them.

indices: Of the features.
ids: Of the features; a scalar is the id at all indices.
shapes: Of the features.
counts: For each feature a matrix with a row for each example and a column for each id.
feature_names: One for each feature: the node it replaces, named in errors.
depths: How many columns each output has.
)doc");

}  // namespace
}  // namespace indicators
}  // namespace picasso
