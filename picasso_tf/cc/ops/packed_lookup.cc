#include <vector>

#include "picasso_tf/cc/kernels/packed_lookup_attrs.h"
#include "picasso_tf/cc/ops/refine_shape.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace picasso {
namespace packed_lookup {
namespace {

using tensorflow::PartialTensorShape;
using tensorflow::shape_inference::DimensionHandle;
using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;

// What is known, before the op runs, about the shapes of its inputs.
class Inputs {
 public:
  Inputs(InferenceContext* context, const Attrs& attrs) : context_(context), attrs_(attrs) {}

  ShapeHandle Table(int table) const {
    const auto* handle = context_->input_handle_shapes_and_types(table);
    return handle == nullptr || handle->empty() ? context_->UnknownShape() : (*handle)[0].shape;
  }

  ShapeHandle Ids(int ids) const { return context_->input(attrs_.num_tables + ids); }

  ShapeHandle Dense(int64_t dense) const {
    return context_->input(attrs_.num_tables + attrs_.num_ids + dense);
  }

  // The shape of the ids that one lookup reads.
  absl::Status LookupIds(const Lookup& lookup, ShapeHandle* shape) const {
    *shape = Ids(lookup.ids);
    if (lookup.column < 0) return absl::OkStatus();
    TF_RETURN_IF_ERROR(context_->WithRank(*shape, 2, shape));
    *shape = context_->Vector(context_->Dim(*shape, 0));
    if (lookup.columns == 1) return absl::OkStatus();
    return context_->Concatenate(*shape, context_->Vector(lookup.columns), shape);
  }

  // The shape of one lookup's rows: its ids, then a row of its table.
  absl::Status Natural(const Lookup& lookup, ShapeHandle* shape) const {
    ShapeHandle ids, table, row;
    TF_RETURN_IF_ERROR(LookupIds(lookup, &ids));
    TF_RETURN_IF_ERROR(context_->WithRankAtLeast(Table(lookup.table), 1, &table));
    TF_RETURN_IF_ERROR(context_->Subshape(table, 1, &row));
    return context_->Concatenate(ids, row, shape);
  }

  // Rows of an output, where one of its pieces tells; else unknown.
  absl::Status Rows(const OutputSpec& output, DimensionHandle* rows) const {
    *rows = context_->UnknownDim();
    for (const PieceSpec& piece : output.pieces) {
      ShapeHandle shape;
      if (piece.IsDense()) {
        shape = Dense(piece.Dense());
      } else {
        TF_RETURN_IF_ERROR(Natural(attrs_.lookups[piece.source], &shape));
      }
      const DimensionHandle elements = context_->NumElements(shape);
      if (!context_->ValueKnown(elements)) continue;
      return context_->Divide(elements, piece.width, /*evenly_divisible=*/true, rows);
    }
    return absl::OkStatus();
  }

 private:
  InferenceContext* const context_;
  const Attrs& attrs_;
};

absl::Status InferOutput(InferenceContext* c, const Inputs& inputs, const Attrs& attrs,
                         const OutputSpec& output, ShapeHandle* shape) {
  if (output.IsNatural()) {
    return inputs.Natural(attrs.lookups[output.pieces[0].source], shape);
  }
  TF_RETURN_IF_ERROR(c->MakeShapeFromPartialTensorShape(output.shape, shape));
  DimensionHandle elements;
  TF_RETURN_IF_ERROR(inputs.Rows(output, &elements));
  TF_RETURN_IF_ERROR(c->Multiply(elements, output.width, &elements));
  return RefineShape(c, elements, shape);
}

absl::Status InferShapes(InferenceContext* c) {
  Attrs attrs;
  TF_RETURN_IF_ERROR(ReadAttrs(*c, &attrs));
  const Inputs inputs(c, attrs);
  int at = 0;
  for (const OutputSpec& output : attrs.outputs) {
    ShapeHandle shape;
    TF_RETURN_IF_ERROR(InferOutput(c, inputs, attrs, output, &shape));
    c->set_output(at++, shape);
  }
  for (const ShapeSpec& spec : attrs.shapes) {
    ShapeHandle natural;
    TF_RETURN_IF_ERROR(inputs.Natural(attrs.lookups[spec.lookup], &natural));
    const bool is_natural = spec.shape.unknown_rank();
    const bool known = !is_natural || c->RankKnown(natural);
    const int64_t rank = is_natural ? c->Rank(natural) : spec.shape.dims();
    c->set_output(at++, c->Vector(known ? rank : InferenceContext::kUnknownDim));
  }
  return absl::OkStatus();
}

REGISTER_OP("Picasso>PackedLookup")
    .Input("tables: num_tables * resource")
    .Input("ids: ids_types")
    .Input("dense: num_dense * dtype")
    .Output("outputs: num_outputs * dtype")
    .Output("shapes: num_shapes * int32")
    .Attr("dtype: {half, bfloat16, float, double}")
    .Attr("num_tables: int >= 1")
    .Attr("ids_types: list({int32, int64}) >= 1")
    .Attr("num_dense: int >= 0 = 0")
    .Attr("num_outputs: int >= 1")
    .Attr("num_shapes: int >= 0 = 0")
    .Attr("lookup_names: list(string)")
    .Attr("lookup_table: list(int)")
    .Attr("lookup_ids: list(int)")
    .Attr("lookup_column: list(int)")
    .Attr("lookup_columns: list(int)")
    .Attr("lookup_wrap: list(int)")
    .Attr("lookup_narrow: list(bool)")
    .Attr("lookup_shards: list(int) = []")
    .Attr("lookup_shard_rows: list(int) = []")
    .Attr("lookup_shard_extras: list(int) = []")
    .Attr("lookup_max_norm: list(float) = []")
    .Attr("piece_output: list(int)")
    .Attr("piece_source: list(int)")
    .Attr("piece_width: list(int)")
    .Attr("output_shapes: list(shape)")
    .Attr("shape_lookup: list(int)")
    .Attr("shape_templates: list(shape)")
    .SetIsStateful()
    .SetShapeFn(InferShapes)
    .Doc(R"doc(
Gathers rows of many tables, each straight to its place in a few outputs.

One op does the work of N `ResourceGather` and of the `ConcatV2`, `Reshape`,
`StridedSlice`, `Cast` and negative-index arithmetic around them. The tables
stay where they are; they are read under a shared lock that is held for the
whole gather.

An output is a row-major matrix. Its pieces stand side by side in every row, and
the matrix is then given the shape `output_shapes[o]`. A lookup piece of width w
over a table with rows of D elements holds w / D ids per row, one after another.
A dense piece copies its input, seen as a matrix w wide. All pieces of an output
must have the same number of rows.

An id out of range is an InvalidArgument error on CPU and a row of zeros on GPU,
as with `ResourceGather`. A lookup that no piece reads is not checked.

tables: Handles of the variables, of rank 1 or more; one may come several times.
ids: Tensors of ids, of any shape.
dense: Tensors that become pieces as they are.
outputs: One tensor for each entry of `output_shapes`.
shapes: 1-D; the shape of a lookup's rows, for `Shape` nodes of the original graph.
dtype: Of the tables, the dense inputs and the outputs.
lookup_names: One for each lookup: the node it replaces, named in errors.
lookup_table: Which of `tables` it reads.
lookup_ids: Which of `ids` it reads.
lookup_column: First column of a [B, C] ids matrix that it reads, or -1 for every
  element in row-major order, whatever the shape.
lookup_columns: How many adjacent columns it reads; 0 where the column is -1.
lookup_wrap: Added to a negative id before the range check; 0 for none.
lookup_narrow: Whether an id is first truncated to int32.
lookup_shards: How many of `tables`, from `lookup_table` on, hold the rows of its table;
  empty: one each. More than one only on CPU.
lookup_shard_rows: 0: row i is row i / n of shard i % n, of n shards. Else the shards hold
  consecutive rows: so many each, as far as their ids are computed,
lookup_shard_extras: but one more in so many of the first shards.
lookup_max_norm: Rows are clipped to this norm as `tf.clip_by_norm` does; 0: they are not;
  empty: none are. Above 0 only on CPU, for rows of float and double.
piece_output: Which output a piece belongs to; non-decreasing, none left out.
piece_source: A lookup, or -1 - d for dense input d.
piece_width: Elements that the piece takes in each row of the output matrix; 0 only
  for the one lookup of a natural output.
output_shapes: With at most one unknown dimension. Unknown rank, "natural": the
  shape of the one lookup's ids ([B] for one column, [B, k] for k), then the
  table's row shape.
shape_lookup: Which lookup `shapes[i]` describes.
shape_templates: Its shape, with at most one unknown dimension; unknown rank: natural.
)doc");

absl::Status InferGather(InferenceContext* c) {
  const auto* handle = c->input_handle_shapes_and_types(0);
  ShapeHandle table = c->UnknownShape(), row, shape;
  if (handle != nullptr && !handle->empty()) table = (*handle)[0].shape;
  TF_RETURN_IF_ERROR(c->WithRankAtLeast(table, 1, &table));
  TF_RETURN_IF_ERROR(c->Subshape(table, 1, &row));
  TF_RETURN_IF_ERROR(c->Concatenate(c->input(c->num_inputs() - 1), row, &shape));
  c->set_output(0, shape);
  return absl::OkStatus();
}

REGISTER_OP("Picasso>TableGather")
    .Input("tables: num_tables * resource")
    .Input("ids: Tindices")
    .Output("rows: dtype")
    .Attr("dtype: {half, bfloat16, float, double}")
    .Attr("num_tables: int >= 1")
    .Attr("Tindices: {int32, int64}")
    .Attr("shard_rows: int >= 0 = 0")
    .Attr("shard_extras: int >= 0 = 0")
    .Attr("max_norm: float = 0.0")
    .SetIsStateful()
    .SetShapeFn(InferGather)
    .Doc(R"doc(
Gathers rows of one table, which may be spread over several variables, its shards, and
clips them to a norm.

One op does the work of the `DynamicPartition`, the `ResourceGather` of each shard and the
`ParallelDynamicStitch` that `tf.nn.embedding_lookup` makes of a list of variables, and of
what it makes of `max_norm`. `Picasso>PackedLookup` and `Picasso>PackedPooledLookup` take its place where it is packed.

tables: Handles of the shards, in order; their rows have one shape.
ids: Of any shape. One that has no row is an InvalidArgument error.
rows: Of the shape of `ids`, then the shape of a row.
shard_rows: See `lookup_shard_rows` of `Picasso>PackedLookup`.
shard_extras: See `lookup_shard_extras` there.
max_norm: See `lookup_max_norm` there.
)doc");

}  // namespace
}  // namespace packed_lookup
}  // namespace picasso
