#include "picasso_tf/cc/kernels/transform_attrs.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace picasso {
namespace transforms {
namespace {

using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;

absl::Status InferShapes(InferenceContext* c) {
  Attrs attrs;
  TF_RETURN_IF_ERROR(ReadAttrs(*c, &attrs));
  ShapeHandle ignored;
  for (size_t i = 0; i < attrs.scalars.size(); ++i) {
    TF_RETURN_IF_ERROR(c->WithRank(c->input(attrs.FirstScalar() + i), 0, &ignored));
  }
  for (size_t i = 0; i < attrs.outputs.size(); ++i) {
    const OutputSpec& output = attrs.outputs[i];
    const ShapeHandle feature = c->input(output.feature);
    if (output.value == kIndices) {
      c->set_output(i, c->Matrix(c->UnknownDim(), c->RankKnown(feature)
                                                      ? c->MakeDim(c->Rank(feature))
                                                      : c->UnknownDim()));
    } else if (attrs.LevelOf(output) == Level::kTaken) {
      c->set_output(i, c->Vector(c->UnknownDim()));
    } else {
      c->set_output(i, feature);
    }
  }
  return absl::OkStatus();
}

REGISTER_OP("Picasso>PackedTransforms")
    .Input("features: feature_types")
    .Input("others: other_types")
    .Input("scalars: scalar_types")
    .Input("tables: num_tables * resource")
    .Output("outputs: output_types")
    .Attr("feature_types: list({bool, int32, int64, float, double, string}) >= 1")
    .Attr("other_types: list({bool, int32, int64, float, double, string}) >= 0")
    .Attr("scalar_types: list({bool, int32, int64, float, double, string}) >= 0")
    .Attr("num_tables: int >= 0")
    .Attr("output_types: list({bool, int32, int64, float, double}) >= 1")
    .Attr("feature_names: list(string)")
    .Attr("feature_instructions: list(int)")
    .Attr("program: list(string)")
    .Attr("boundaries: list(float) = []")
    .Attr("texts: list(string) = []")
    .Attr("output_feature: list(int)")
    .Attr("output_value: list(string)")
    .SetIsStateful()
    .SetShapeFn(InferShapes)
    .Doc(R"doc(
Computes what a model does to N features before it looks up rows.

Each feature has a program of its own, which works element by element: hashes of strings,
lookups in TensorFlow's hash tables, buckets, remainders, comparisons, choices, casts.
Results are those of TensorFlow's CPU kernels.

A program is a list of instructions such as `hash_fast x 1000`, an opcode, its operands and
its parameters. Operands are x, the feature; c0, c1, ..., the scalars; z0, z1, ..., how many
keys the tables have; y0, y1, ..., other tensors of the feature's shape; v0, v1, ..., the results
of the program's earlier instructions.

    add, sub, mul, max, min, floor_mod, trunc_mod      of integers
    equal, not_equal, less, less_equal, greater, greater_equal; and, or, not
    select CONDITION A B; zeros_like A; ones_like A
    cast A DTYPE; as_string A, of integers
    join A B TEXT: A, text number TEXT and B in one string
    hash_legacy A BUCKETS; hash_fast A BUCKETS; hash_strong A BUCKETS KEY KEY: as
      StringToHashBucket, -Fast and -Strong
    bucketize A BEGIN END: by boundaries [BEGIN, END)
    find A DEFAULT TABLE DTYPE: as LookupTableFindV2; DEFAULT is a scalar
    take A MASK: the elements of A, of which there are as many as of x, where MASK is true,
      in their order; a program has one mask

A remainder of a division by zero is an InvalidArgument error, and so is another tensor whose shape
is not the feature's; a hash table's own errors are passed on.

features: Tensors of any shape.
others: Tensors that some program reads besides its feature; they have the shape of that.
scalars: Of rank 0.
tables: Handles of hash tables with scalar keys and values.
outputs: One tensor for each entry of `output_value`.
feature_names: One for each feature: the node it replaces, named in errors.
feature_instructions: How many of `program` belong to each feature, in order.
program: The instructions of all features.
boundaries: Of all `bucketize`.
texts: Of all `join`.
output_feature: Which feature an output belongs to.
output_value: What it holds: a value of the feature's program, shaped as the feature, or a
  vector where a mask took part; or "indices": a matrix with a row for each element that the
  mask takes, as `Where` gives it.
)doc");

}  // namespace
}  // namespace transforms
}  // namespace picasso
