#include <string>

#include "picasso_tf/cc/kernels/packed_update_attrs.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace picasso {
namespace packed_update {
namespace {

using tensorflow::shape_inference::DimensionHandle;
using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;

// The shape and dtype of a variable, as far as its handle tells.
absl::Status CheckState(InferenceContext* c, const Attrs& attrs, const TableSpec& table, int state,
                        DimensionHandle* elements) {
  const auto* handle = c->input_handle_shapes_and_types(table.states[state]);
  if (handle == nullptr || handle->empty()) return absl::OkStatus();
  const auto& [shape, dtype, type] = (*handle)[0];
  if (dtype != tensorflow::DT_INVALID && dtype != attrs.dtype) {
    return InvalidIn(attrs.op, "state ", state, " of table '", table.name, "' must be ",
                     DataTypeString(attrs.dtype), ", but it is ", DataTypeString(dtype), ".");
  }
  const DimensionHandle found = c->NumElements(shape);
  if (c->Merge(*elements, found, elements).ok()) return absl::OkStatus();
  return InvalidIn(attrs.op, "all states of table '", table.name,
                   "' must have the same number of elements, but state ", state, " has ",
                   c->Value(found), " and one before it has ", c->Value(*elements), ".");
}

absl::Status CheckTable(InferenceContext* c, const Attrs& attrs, const TableSpec& table) {
  DimensionHandle elements = c->UnknownDim();
  for (size_t i = 0; i < table.states.size(); ++i) {
    TF_RETURN_IF_ERROR(CheckState(c, attrs, table, i, &elements));
  }
  for (int gradient : table.gradients) {
    const ShapeHandle shape = c->input(attrs.GradientInput(gradient));
    DimensionHandle merged;
    if (c->Merge(elements, c->NumElements(shape), &merged).ok()) continue;
    return InvalidIn(attrs.op, "a table gradient of table '", table.name, "' has shape ",
                     c->DebugString(shape), ", but its variable has ", c->Value(elements),
                     " elements.");
  }
  for (int scalar : table.parameters) {
    const ShapeHandle shape = c->input(attrs.ScalarInput(scalar));
    const DimensionHandle found = c->NumElements(shape);
    if (!c->ValueKnown(found) || c->Value(found) == 1) continue;
    return InvalidIn(attrs.op, "a parameter of table '", table.name,
                     "' must have one element, but it has shape ", c->DebugString(shape), ".");
  }
  return absl::OkStatus();
}

absl::Status CheckSegment(InferenceContext* c, const Attrs& attrs, const SegmentSpec& segment) {
  ShapeHandle ids = c->input(attrs.IdsInput(segment.ids));
  if (segment.column >= 0) TF_RETURN_IF_ERROR(c->WithRank(ids, 2, &ids));
  for (const GradientSpec& gradient : segment.gradients) {
    const ShapeHandle shape = c->input(attrs.GradientInput(gradient.gradient));
    const DimensionHandle found = c->NumElements(shape);
    if (gradient.span == 0 || !c->ValueKnown(found)) continue;
    if (c->Value(found) % gradient.pitch == 0) continue;
    return InvalidIn(attrs.op, "a gradient of table '", attrs.tables[segment.table].name,
                     "' is read as a matrix of ", gradient.pitch, " columns, but it has shape ",
                     c->DebugString(shape), ".");
  }
  return absl::OkStatus();
}

template <Extent kExtent>
absl::Status CheckShapes(InferenceContext* c) {
  Attrs attrs;
  TF_RETURN_IF_ERROR(ReadAttrs(*c, kExtent, &attrs));
  for (const TableSpec& table : attrs.tables) TF_RETURN_IF_ERROR(CheckTable(c, attrs, table));
  for (const SegmentSpec& segment : attrs.segments) {
    TF_RETURN_IF_ERROR(CheckSegment(c, attrs, segment));
  }
  return absl::OkStatus();
}

constexpr char kDoc[] = R"doc(
One op does the work of an optimizer's update of many tables: the arithmetic on
gradients, the sums over equal ids and the writes. The rule is data, a program of
instructions such as "square g0" or "scatter_sub s0 v5". Its values are

  s0, s1, ...  rows of the table's states (the variable, then its slots), as they are before
  g0, g1, ...  rows of row gradients, one for each id
  t0, t1, ...  rows of table gradients, one for each row of the table
  p0, p1, ...  parameters, one number for each table
  v0, v1, ...  results of the instructions

Elementwise instructions: add sub mul div max min squared_difference div_no_nan,
greater greater_equal less less_equal equal not_equal (giving 1 or 0), pow, neg
square sqrt rsqrt reciprocal abs sign, and select c a b. row_rsqrt and unique_rsqrt
are rsqrt with the bits that TensorFlow gives for one row at a time and for a tensor
of the distinct rows. A row's value that meets values of ids is repeated for each id
of the row. From ids to rows lead segment_sum x, scatter_add r x, scatter_sub r x and
scatter_update r x, which take the ids of a row in order, one rounding for each. touched_add r x, touched_sub r x and
touched_update r x change only rows that have an id. Each instruction rounds once,
as a TensorFlow op of its own would.

The variables are locked for writing during the call. A value that was read from
one before does not change. Ids are checked first: if one is out of range nothing is
written. A GPU cannot report it and skips such an id; rsqrt and reciprocal are there
1 / sqrt(x) and 1 / x as IEEE 754 rounds them, and pow is CUDA's.

variables: Handles of distinct variables.
ids: Tensors of ids, of any shape.
gradients: Tensors of gradients.
scalars: Tensors of one element.
dtype: Of all variables, gradients and scalars.
rule: A name of the rule for people; not used.
program: The instructions.
results: For each state the value that it holds afterwards; itself: not written.
num_states: States of each table.
num_row_gradients: Row gradients of each segment.
num_table_gradients: Table gradients of each table.
num_parameters: Parameters of each table.
table_names: One for each table, named in errors.
table_variables: Which of `variables` are the states of each table, table by table.
table_parameters: Likewise which of `scalars`.
table_gradients: Likewise which of `gradients`; each has the elements of the variable.
segment_table: The table of a segment of ids; non-decreasing.
segment_ids: Which of `ids` it reads.
segment_column: First column of a [B, C] ids matrix that it reads, or -1 for all.
segment_columns: How many adjacent columns it reads; 0 where the column is -1.
segment_wrap: Added to a negative id before the range check; 0 for none.
segment_narrow: Whether an id is first truncated to int32.
segment_gradients: Which of `gradients` are its row gradients, segment by segment.
segment_first: First column to read of each, seen as a matrix.
segment_span: Columns to read in each row, a multiple of the table's row; 0: the
  whole tensor, row after row of the table.
segment_pitch: Columns of that matrix; 0 where the span is.
pools: Of pooled ids: for each id, the row of the gradient that it belongs to, in
  column 0 where it is a matrix.
gradient_pool: For each of `segment_gradients` which of `pools` it takes; or -1: it
  has a row for each id; or -2: each of its rows is of equally many ids, which follow
  each other. Empty: all are -1.
gradient_combiner: How ids of one row were pooled, "sum", "mean" or "sqrtn": with n
  ids the gradient is multiplied by 1, 1 / n or 1 / sqrt(n). Empty: all are "sum".
weights: Of any shape, for each pooled id a number of the dtype of the gradients; or a
  bool: where it is false the gradient of the id is zero.
gradient_weights: For each of `segment_gradients` which of `weights` its ids multiply it
  by, or -1; the combiner is "sum" then. Empty: all are -1.
segment_fill: For each segment whose gradients are of pooled ids: -1, or a row of the
  table. Then negative ids are left out, and each row of the gradient that no id is
  left for counts as one id, that row, with a gradient of zero: it is updated as any
  row that ids name. Empty: all are -1.
drop_negative: Whether a negative id is skipped; else it is out of range.
)doc";

// Both ops have the same interface.
#define PICASSO_REGISTER(name, extent, summary)                                       \
  REGISTER_OP(name)                                                                   \
      .Input("variables: num_variables * resource")                                   \
      .Input("ids: ids_types")                                                        \
      .Input("gradients: num_gradients * dtype")                                      \
      .Input("scalars: num_scalars * dtype")                                          \
      .Input("pools: pools_types")                                                    \
      .Input("weights: weights_types")                                                \
      .Attr("dtype: {half, bfloat16, float, double}")                                 \
      .Attr("num_variables: int >= 1")                                                \
      .Attr("ids_types: list({int32, int64}) >= 0")                                   \
      .Attr("num_gradients: int >= 0")                                                \
      .Attr("num_scalars: int >= 0")                                                  \
      .Attr("pools_types: list({int32, int64}) >= 0 = []")                            \
      .Attr("weights_types: list({float, double, bool}) >= 0 = []")                   \
      .Attr("rule: string = ''")                                                      \
      .Attr("program: list(string)")                                                  \
      .Attr("results: list(string)")                                                  \
      .Attr("num_states: int >= 1")                                                   \
      .Attr("num_row_gradients: int >= 0")                                            \
      .Attr("num_table_gradients: int >= 0")                                          \
      .Attr("num_parameters: int >= 0")                                               \
      .Attr("table_names: list(string) >= 1")                                         \
      .Attr("table_variables: list(int)")                                             \
      .Attr("table_parameters: list(int)")                                            \
      .Attr("table_gradients: list(int)")                                             \
      .Attr("segment_table: list(int)")                                               \
      .Attr("segment_ids: list(int)")                                                 \
      .Attr("segment_column: list(int)")                                              \
      .Attr("segment_columns: list(int)")                                             \
      .Attr("segment_wrap: list(int)")                                                \
      .Attr("segment_narrow: list(bool)")                                             \
      .Attr("segment_gradients: list(int)")                                           \
      .Attr("segment_first: list(int)")                                               \
      .Attr("segment_span: list(int)")                                                \
      .Attr("segment_pitch: list(int)")                                               \
      .Attr("gradient_pool: list(int) = []")                                          \
      .Attr("gradient_combiner: list(string) = []")                                   \
      .Attr("gradient_weights: list(int) = []")                                       \
      .Attr("segment_fill: list(int) = []")                                           \
      .Attr("drop_negative: bool = false")                                            \
      .SetIsStateful()                                                                \
      .SetShapeFn(CheckShapes<extent>)                                                \
      .Doc(std::string(summary) + kDoc)

PICASSO_REGISTER("Picasso>PackedSparseUpdate", Extent::kTouchedRows,
                 "Runs an update program over those rows of many tables that ids name.\n");
PICASSO_REGISTER("Picasso>PackedDenseUpdate", Extent::kAllRows,
                 "Runs an update program over every row of many tables.\n");
#undef PICASSO_REGISTER

}  // namespace
}  // namespace packed_update
}  // namespace picasso
