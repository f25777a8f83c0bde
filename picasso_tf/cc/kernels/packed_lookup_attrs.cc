#include "picasso_tf/cc/kernels/packed_lookup_attrs.h"

#include "absl/strings/string_view.h"

namespace picasso {
namespace packed_lookup {
namespace {

using tensorflow::PartialTensorShape;

constexpr int64_t kMaxWidth = int64_t{1} << 40;  // sums of widths cannot overflow

// At most one dimension may be left open.
absl::Status CheckTemplate(absl::string_view name, size_t at, const PartialTensorShape& shape) {
  int open = 0;
  for (int d = 0; d < shape.dims(); ++d) open += shape.dim_size(d) < 0;
  if (open <= 1) return absl::OkStatus();
  return Invalid("`", name, "[", at, "]` must have at most one unknown dimension, but it is ",
                 shape.DebugString(), ".");
}

absl::Status ReadLookups(const RawAttrs& raw, Attrs* attrs) {
  const size_t n = raw.lookup_names.size();
  TF_RETURN_IF_ERROR(CheckLength(kOp, "lookup_table", raw.lookup_table.size(), n, "lookup"));
  std::vector<IdsSpec> ids;
  TF_RETURN_IF_ERROR(CheckIds(kOp, "lookup", raw.lookup, n, raw.ids_types.size(), &ids));
  for (size_t i = 0; i < n; ++i) {
    TF_RETURN_IF_ERROR(CheckIndex(kOp, "lookup_table", i, raw.lookup_table[i], 0, raw.num_tables));
    attrs->lookups.push_back(
        {ids[i], raw.lookup_names[i], static_cast<int>(raw.lookup_table[i]), /*read=*/false});
  }
  return absl::OkStatus();
}

absl::Status CheckOutput(size_t at, const OutputSpec& output) {
  if (output.pieces.empty()) {
    return Invalid("output ", at, " has no piece.");
  }
  TF_RETURN_IF_ERROR(CheckTemplate("output_shapes", at, output.shape));
  if (output.IsNatural()) {
    const PieceSpec& only = output.pieces[0];
    if (output.pieces.size() == 1 && !only.IsDense() && only.width == 0) {
      return absl::OkStatus();
    }
    return Invalid("output ", at,
                   " has a shape of unknown rank, so it must have one piece, a "
                   "lookup of width 0, but it has ",
                   output.pieces.size(), ", the first of width ", only.width, " and source ",
                   only.source, ".");
  }
  for (const PieceSpec& piece : output.pieces) {
    if (piece.width == 0) {
      return Invalid("every piece of output ", at,
                     " must be at least 1 wide, but one has width 0.");
    }
  }
  return absl::OkStatus();
}

absl::Status ReadOutputs(const RawAttrs& raw, Attrs* attrs) {
  const size_t n = raw.piece_output.size();
  TF_RETURN_IF_ERROR(CheckLength(kOp, "piece_source", raw.piece_source.size(), n, "piece"));
  TF_RETURN_IF_ERROR(CheckLength(kOp, "piece_width", raw.piece_width.size(), n, "piece"));
  TF_RETURN_IF_ERROR(
      CheckLength(kOp, "output_shapes", raw.output_shapes.size(), raw.num_outputs, "output"));
  attrs->outputs.resize(raw.num_outputs);
  for (int i = 0; i < raw.num_outputs; ++i) attrs->outputs[i].shape = raw.output_shapes[i];
  for (size_t i = 0; i < n; ++i) {
    // Pieces are grouped by output, in order.
    const int64_t lowest = i == 0 ? 0 : raw.piece_output[i - 1];
    TF_RETURN_IF_ERROR(
        CheckIndex(kOp, "piece_output", i, raw.piece_output[i], lowest, raw.num_outputs));
    TF_RETURN_IF_ERROR(
        CheckIndex(kOp, "piece_source", i, raw.piece_source[i], -raw.num_dense,
                   attrs->lookups.size()));
    TF_RETURN_IF_ERROR(CheckIndex(kOp, "piece_width", i, raw.piece_width[i], 0, kMaxWidth));
    OutputSpec& output = attrs->outputs[raw.piece_output[i]];
    output.pieces.push_back({raw.piece_source[i], raw.piece_width[i]});
    output.width += raw.piece_width[i];
    if (raw.piece_source[i] >= 0) attrs->lookups[raw.piece_source[i]].read = true;
  }
  for (size_t i = 0; i < attrs->outputs.size(); ++i) {
    TF_RETURN_IF_ERROR(CheckOutput(i, attrs->outputs[i]));
  }
  return absl::OkStatus();
}

absl::Status ReadShapes(const RawAttrs& raw, Attrs* attrs) {
  TF_RETURN_IF_ERROR(
      CheckLength(kOp, "shape_lookup", raw.shape_lookup.size(), raw.num_shapes, "shape"));
  TF_RETURN_IF_ERROR(
      CheckLength(kOp, "shape_templates", raw.shape_templates.size(), raw.num_shapes, "shape"));
  for (int i = 0; i < raw.num_shapes; ++i) {
    TF_RETURN_IF_ERROR(
        CheckIndex(kOp, "shape_lookup", i, raw.shape_lookup[i], 0, attrs->lookups.size()));
    TF_RETURN_IF_ERROR(CheckTemplate("shape_templates", i, raw.shape_templates[i]));
    attrs->shapes.push_back({static_cast<int>(raw.shape_lookup[i]), raw.shape_templates[i]});
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckAttrs(const RawAttrs& raw, Attrs* attrs) {
  attrs->dtype = raw.dtype;
  attrs->num_tables = raw.num_tables;
  attrs->num_ids = raw.ids_types.size();
  attrs->num_dense = raw.num_dense;
  TF_RETURN_IF_ERROR(ReadLookups(raw, attrs));
  TF_RETURN_IF_ERROR(ReadOutputs(raw, attrs));
  return ReadShapes(raw, attrs);
}

}  // namespace packed_lookup
}  // namespace picasso
