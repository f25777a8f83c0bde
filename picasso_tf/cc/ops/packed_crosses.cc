#include "picasso_tf/cc/kernels/cross_attrs.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace picasso {
namespace crosses {
namespace {

using tensorflow::shape_inference::DimensionHandle;
using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;

absl::Status InferShapes(InferenceContext* c) {
  Attrs attrs;
  TF_RETURN_IF_ERROR(ReadAttrs(*c, &attrs));
  ShapeHandle ignored;
  for (int i = 0; i < attrs.NumColumns(); ++i) {
    const int rank = attrs.IsSparse(i) ? 1 : 2;
    TF_RETURN_IF_ERROR(c->WithRank(c->input(attrs.ValuesOf(i)), rank, &ignored));
    if (!attrs.IsSparse(i)) continue;
    TF_RETURN_IF_ERROR(c->WithRank(c->input(attrs.IndicesOf(i)), 2, &ignored));
    TF_RETURN_IF_ERROR(c->WithRank(c->input(attrs.ShapeOf(i)), 1, &ignored));
  }
  for (size_t i = 0; i < attrs.outputs.size(); ++i) {
    const DimensionHandle any = c->UnknownDim();
    switch (attrs.outputs[i].kind) {
      case Kind::kIndices:
        c->set_output(i, c->Matrix(any, c->MakeDim(2)));
        break;
      case Kind::kValues:
        c->set_output(i, c->Vector(any));
        break;
      case Kind::kShape:
        c->set_output(i, c->Vector(2));
        break;
      case Kind::kDense:
        c->set_output(i, c->Matrix(any, c->UnknownDim()));
        break;
    }
  }
  return absl::OkStatus();
}

REGISTER_OP("Picasso>PackedCrosses")
    .Input("indices: num_sparse * int64")
    .Input("values: sparse_types")
    .Input("shapes: num_sparse * int64")
    .Input("dense: dense_types")
    .Output("outputs: num_outputs * int64")
    .Attr("num_sparse: int >= 0")
    .Attr("sparse_types: list({int64, string}) >= 0")
    .Attr("dense_types: list({int64, string}) >= 0")
    .Attr("num_outputs: int >= 1")
    .Attr("cross_names: list(string)")
    .Attr("cross_sizes: list(int)")
    .Attr("cross_columns: list(int)")
    .Attr("cross_buckets: list(int)")
    .Attr("cross_keys: list(int)")
    .Attr("output_cross: list(int)")
    .Attr("output_kind: list(string)")
    .SetShapeFn(InferShapes)
    .Doc(R"doc(
Computes N hashed crosses of columns, each as SparseCross with hashed_output does.

A column is a SparseTensor of rank 2 or a matrix; all columns of a cross have the same number of
rows. A row of a cross holds a hash for each combination of one feature of every column, the last
column's changing fastest. Strings of a column are hashed once, however many crosses it is in.

indices: Of the sparse columns.
values: Of the sparse columns.
shapes: Of the sparse columns.
dense: The dense columns. They are numbered after the sparse ones.
outputs: One tensor for each entry of `output_kind`.
cross_names: One for each cross: the node it replaces, named in errors.
cross_sizes: How many of `cross_columns` belong to each cross, in order.
cross_columns: Numbers of columns.
cross_buckets: How many hashes each cross has; 0: as many as there are.
cross_keys: What the hashes of each cross begin with.
output_cross: Which cross an output belongs to.
output_kind: What it holds: "indices", "values" or "shape" of the cross as a SparseTensor, or
  "dense", the same as a matrix with zeros where a row has no more crosses.
)doc");

}  // namespace
}  // namespace crosses
}  // namespace picasso
