#include "picasso_tf/cc/kernels/pooled_lookup_attrs.h"
#include "picasso_tf/cc/ops/refine_shape.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace picasso {
namespace pooled_lookup {
namespace {

using tensorflow::shape_inference::DimensionHandle;
using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;

// What is known, before the op runs, about the shapes of its inputs.
class Inputs {
 public:
  Inputs(InferenceContext* context, const Attrs& attrs) : context_(context), attrs_(attrs) {}

  // Refuses inputs of a wrong rank.
  absl::Status Check() const {
    ShapeHandle ignored;
    for (const LookupSpec& lookup : attrs_.lookups) {
      TF_RETURN_IF_ERROR(context_->WithRankAtLeast(Table(lookup), 1, &ignored));
      TF_RETURN_IF_ERROR(context_->WithRank(Ids(lookup), lookup.HasMatrix() ? 2 : 1, &ignored));
      if (lookup.HasMatrix()) continue;
      TF_RETURN_IF_ERROR(context_->WithRankAtLeast(Segments(lookup), 1, &ignored));
      const int most = attrs_.HasSplits(lookup) ? 1 : 2;
      TF_RETURN_IF_ERROR(context_->WithRankAtMost(Segments(lookup), most, &ignored));
      if (lookup.rows < 0) continue;
      TF_RETURN_IF_ERROR(context_->WithRankAtMost(
          context_->input(attrs_.FirstRows() + lookup.rows), 1, &ignored));
    }
    return absl::OkStatus();
  }

  ShapeHandle Table(const LookupSpec& lookup) const {
    const auto* handle = context_->input_handle_shapes_and_types(lookup.table);
    return handle == nullptr || handle->empty() ? context_->UnknownShape() : (*handle)[0].shape;
  }

  ShapeHandle Ids(const LookupSpec& lookup) const {
    return context_->input(attrs_.FirstIds() + lookup.ids.ids);
  }

  ShapeHandle Segments(const LookupSpec& lookup) const {
    return context_->input(attrs_.FirstSegments() + lookup.segments);
  }

  // Rows that one lookup gives, as far as row splits or constants tell.
  absl::Status LookupRows(const LookupSpec& lookup, DimensionHandle* rows) const {
    *rows = context_->UnknownDim();
    if (lookup.HasMatrix()) {
      if (context_->RankKnown(Ids(lookup))) *rows = context_->Dim(Ids(lookup), 0);
      return absl::OkStatus();
    }
    if (attrs_.HasSplits(lookup)) {
      const ShapeHandle splits = Segments(lookup);
      if (!context_->RankKnown(splits)) return absl::OkStatus();
      return context_->Subtract(context_->Dim(splits, 0), 1, rows);
    }
    if (lookup.rows < 0) return absl::OkStatus();
    const int at = attrs_.FirstRows() + lookup.rows;
    const ShapeHandle given = context_->input(at);
    if (!context_->RankKnown(given)) return absl::OkStatus();
    if (context_->Rank(given) == 0) return context_->MakeDimForScalarInput(at, rows);
    ShapeHandle sizes;
    TF_RETURN_IF_ERROR(context_->MakeShapeFromShapeTensor(at, &sizes));
    if (!context_->RankKnown(sizes) || context_->Rank(sizes) == 0) return absl::OkStatus();
    TF_RETURN_IF_ERROR(context_->Subshape(sizes, 0, -1, &sizes));
    *rows = context_->NumElements(sizes);
    return absl::OkStatus();
  }

  // The shape of one lookup's rows.
  absl::Status Natural(const LookupSpec& lookup, ShapeHandle* shape) const {
    DimensionHandle rows;
    TF_RETURN_IF_ERROR(LookupRows(lookup, &rows));
    ShapeHandle row;
    TF_RETURN_IF_ERROR(context_->Subshape(Table(lookup), 1, &row));
    return context_->Concatenate(context_->Vector(rows), row, shape);
  }

  // Rows of an output, where one of its pieces tells; else unknown.
  absl::Status Rows(const OutputSpec& output, DimensionHandle* rows) const {
    for (const PieceSpec& piece : output.pieces) {
      if (piece.IsDense()) {
        const ShapeHandle shape = context_->input(attrs_.FirstDense() + piece.Dense());
        *rows = context_->NumElements(shape);
        if (!context_->ValueKnown(*rows)) continue;
        return context_->Divide(*rows, piece.width, /*evenly_divisible=*/true, rows);
      }
      TF_RETURN_IF_ERROR(LookupRows(attrs_.lookups[piece.source], rows));
      if (context_->ValueKnown(*rows)) return absl::OkStatus();
    }
    *rows = context_->UnknownDim();
    return absl::OkStatus();
  }

 private:
  InferenceContext* const context_;
  const Attrs& attrs_;
};

absl::Status InferShapes(InferenceContext* c) {
  Attrs attrs;
  TF_RETURN_IF_ERROR(ReadAttrs(*c, &attrs));
  const Inputs inputs(c, attrs);
  TF_RETURN_IF_ERROR(inputs.Check());
  for (size_t i = 0; i < attrs.outputs.size(); ++i) {
    const OutputSpec& output = attrs.outputs[i];
    ShapeHandle shape;
    if (output.IsNatural()) {
      TF_RETURN_IF_ERROR(inputs.Natural(attrs.lookups[output.pieces[0].source], &shape));
    } else {
      DimensionHandle elements;
      TF_RETURN_IF_ERROR(c->MakeShapeFromPartialTensorShape(output.shape, &shape));
      TF_RETURN_IF_ERROR(inputs.Rows(output, &elements));
      TF_RETURN_IF_ERROR(c->Multiply(elements, output.width, &elements));
      TF_RETURN_IF_ERROR(RefineShape(c, elements, &shape));
    }
    c->set_output(i, shape);
  }
  return absl::OkStatus();
}

REGISTER_OP("Picasso>PackedPooledLookup")
    .Input("tables: num_tables * resource")
    .Input("ids: ids_types")
    .Input("segments: segments_types")
    .Input("rows: rows_types")
    .Input("dense: num_dense * dtype")
    .Input("weights: weights_types")
    .Output("outputs: num_outputs * dtype")
    .Attr("dtype: {half, bfloat16, float, double}")
    .Attr("num_tables: int >= 1")
    .Attr("ids_types: list({int32, int64}) >= 1")
    .Attr("segments_types: list({int32, int64}) >= 0")
    .Attr("rows_types: list({int32, int64}) >= 0")
    .Attr("num_dense: int >= 0 = 0")
    .Attr("num_outputs: int >= 1")
    .Attr("segments_are_splits: list(bool)")
    .Attr("lookup_names: list(string)")
    .Attr("lookup_table: list(int)")
    .Attr("lookup_ids: list(int)")
    .Attr("lookup_segments: list(int)")
    .Attr("lookup_rows: list(int)")
    .Attr("lookup_combiner: list({'sum', 'mean', 'sqrtn'})")
    .Attr("lookup_drop: list(bool)")
    .Attr("lookup_fill: list(int)")
    .Attr("lookup_sort: list(bool) = []")
    .Attr("weights_types: list({float, double, bool}) >= 0 = []")
    .Attr("lookup_weights: list(int) = []")
    .Attr("lookup_drop_weightless: list(bool) = []")
    .Attr("lookup_column: list(int) = []")
    .Attr("lookup_columns: list(int) = []")
    .Attr("lookup_wrap: list(int) = []")
    .Attr("lookup_narrow: list(bool) = []")
    .Attr("lookup_in_turn: list(bool) = []")
    .Attr("lookup_shards: list(int) = []")
    .Attr("lookup_shard_rows: list(int) = []")
    .Attr("lookup_shard_extras: list(int) = []")
    .Attr("lookup_max_norm: list(float) = []")
    .Attr("piece_output: list(int)")
    .Attr("piece_source: list(int)")
    .Attr("piece_width: list(int)")
    .Attr("output_shapes: list(shape)")
    .SetIsStateful()
    .SetShapeFn(InferShapes)
    .Doc(R"doc(
Combines rows of many tables, each lookup straight to its place in a few outputs.

One op does the work of N `embedding_lookup_sparse` or `safe_embedding_lookup_sparse`,
and of the `ConcatV2` after them. The tables stay where they are; they are read under a
shared lock that is held for the whole op. Sums have the bits of `SparseSegmentSum`,
`SparseSegmentMean` and `SparseSegmentSqrtN` on CPU, or, with weights, of `Mul`,
`SegmentSum` and `DivNoNan`; for a matrix of ids [rows, length] those of `Sum` and `Mean`
over axis 1 of the table's rows [rows, length, width].

Row r of a lookup is the sum, the mean, or the sum over the square root of their number,
of the table rows of all ids that belong to r, in the order in which they stand. With
weights it is the sum of the rows times their weights; for the mean it is divided by the
sum of the weights, for "sqrtn" by the root of the sum of their squares, and it is 0
where that is 0.

An output is a row-major matrix. Its pieces stand side by side in every row, and the
matrix is then given the shape `output_shapes[o]`. A lookup piece is as wide as a row of
its table has elements. A dense piece copies its input, seen as a matrix `piece_width`
wide. All pieces of an output must have the same number of rows.

An id or a segment out of range is an InvalidArgument error on CPU, and so are segments
that decrease unless `lookup_sort` allows it. A lookup that no piece reads is not checked.
On GPU, which knows neither matrices of ids nor sums in turn and where nothing is checked, an id out of range has a row of zeros, which counts, as
with `ResourceGather`; an id whose segment is out of range belongs to no row; a
`lookup_fill` out of range gives zeros; and ids are taken row by row wherever segments
decrease. There the number of rows must be given for all segments but row splits.

tables: Handles of the variables, of rank 1 or more; one may come several times.
ids: Vectors of ids; or matrices, for lookups without segments.
segments: Which row of the output each id belongs to; not decreasing. A vector; or a
  matrix, the indices of a SparseTensor, of which all columns but the last, in row-major
  order, are the row; or row splits, as a RaggedTensor has them.
rows: Numbers of rows: a scalar; or a vector, the dense shape of a SparseTensor, of which
  all but the last are multiplied.
dense: Tensors that become pieces as they are.
weights: Of any shape, a weight for each id: double for double rows, else float. Or,
  for a matrix of ids, a bool for each: zeros take the place of rows for which it is false.
outputs: One tensor for each entry of `output_shapes`.
dtype: Of the tables, the dense inputs and the outputs. Half types are added up in float
  and rounded once.
segments_are_splits: One for each of `segments`.
lookup_names: One for each lookup: the node it replaces, named in errors.
lookup_table: Which of `tables` it reads.
lookup_ids: Which of `ids` it reads.
lookup_segments: Which of `segments` it reads; or -1: its ids are a matrix, or some
  columns of one, and each row of them belongs to one row of the output.
lookup_rows: Which of `rows` it reads, or -1: there are as many rows as the last id
  that is not dropped needs, none without ids. -1 with row splits, which tell.
  Segments of three columns or more need the vector.
lookup_combiner: How the rows of its table are combined.
lookup_drop: Whether ids below 0 are skipped, as if they were not there.
lookup_fill: A row of the output without any id becomes this row of the table; with -1
  zeros.
lookup_sort: Whether segments may decrease: ids are then taken row by row, as
  SparseFillEmptyRows brings them into order. Empty: all are false.
lookup_weights: Which of `weights` it reads, or -1. Empty: all are -1.
lookup_drop_weightless: Whether ids whose weight is not above 0 are skipped too. Empty:
  all are false.
lookup_column: First column of a matrix of ids that it reads, or -1 for all. Empty: all
  are -1.
lookup_columns: How many adjacent columns it reads; 0 where the column is -1. Empty: all
  are 0.
lookup_wrap: Added to a negative id of a matrix before the range check; 0 for none.
  Empty: all are 0.
lookup_narrow: Whether an id of a matrix is first truncated to int32. Empty: all are
  false.
lookup_in_turn: Whether the rows of each sum are added one after the other to a zero, as
  `UnsortedSegmentSum` does. Empty: all are false.
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
output_shapes: With at most one unknown dimension. Unknown rank, "natural": the rows of
  the one lookup, then the table's row shape.
)doc");

}  // namespace
}  // namespace pooled_lookup
}  // namespace picasso
