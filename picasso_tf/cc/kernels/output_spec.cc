#include "picasso_tf/cc/kernels/output_spec.h"

#include "picasso_tf/cc/kernels/attr_checks.h"
#include "tensorflow/core/util/overflow.h"

namespace picasso {

using tensorflow::MultiplyWithoutOverflow;
using tensorflow::PartialTensorShape;
using tensorflow::TensorShape;

namespace {

constexpr int64_t kMaxWidth = int64_t{1} << 40;  // sums of widths cannot overflow

absl::Status CheckOutput(absl::string_view op, size_t at, const OutputSpec& output) {
  if (output.pieces.empty()) {
    return InvalidIn(op, "output ", at, " has no piece.");
  }
  TF_RETURN_IF_ERROR(CheckTemplate(op, "output_shapes", at, output.shape));
  if (output.IsNatural()) {
    const PieceSpec& only = output.pieces[0];
    if (output.pieces.size() == 1 && !only.IsDense() && only.width == 0) {
      return absl::OkStatus();
    }
    return InvalidIn(op, "output ", at,
                     " has a shape of unknown rank, so it must have one piece, a "
                     "lookup of width 0, but it has ",
                     output.pieces.size(), ", the first of width ", only.width, " and source ",
                     only.source, ".");
  }
  for (const PieceSpec& piece : output.pieces) {
    if (piece.width == 0) {
      return InvalidIn(op, "every piece of output ", at,
                       " must be at least 1 wide, but one has width 0.");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckTemplate(absl::string_view op, absl::string_view name, size_t at,
                           const PartialTensorShape& shape) {
  int open = 0;
  for (int d = 0; d < shape.dims(); ++d) open += shape.dim_size(d) < 0;
  if (open <= 1) return absl::OkStatus();
  return InvalidIn(op, "`", name, "[", at, "]` must have at most one unknown dimension, but it is ",
                   shape.DebugString(), ".");
}

absl::Status CheckOutputs(absl::string_view op, const RawOutputs& raw, size_t num_lookups,
                          std::vector<OutputSpec>* outputs) {
  const size_t n = raw.piece_output.size();
  TF_RETURN_IF_ERROR(CheckLength(op, "piece_source", raw.piece_source.size(), n, "piece"));
  TF_RETURN_IF_ERROR(CheckLength(op, "piece_width", raw.piece_width.size(), n, "piece"));
  TF_RETURN_IF_ERROR(
      CheckLength(op, "output_shapes", raw.output_shapes.size(), raw.num_outputs, "output"));
  outputs->resize(raw.num_outputs);
  for (int i = 0; i < raw.num_outputs; ++i) (*outputs)[i].shape = raw.output_shapes[i];
  for (size_t i = 0; i < n; ++i) {
    // Pieces are grouped by output, in order.
    const int64_t lowest = i == 0 ? 0 : raw.piece_output[i - 1];
    TF_RETURN_IF_ERROR(
        CheckIndex(op, "piece_output", i, raw.piece_output[i], lowest, raw.num_outputs));
    TF_RETURN_IF_ERROR(
        CheckIndex(op, "piece_source", i, raw.piece_source[i], -raw.num_dense, num_lookups));
    TF_RETURN_IF_ERROR(CheckIndex(op, "piece_width", i, raw.piece_width[i], 0, kMaxWidth));
    OutputSpec& output = (*outputs)[raw.piece_output[i]];
    output.pieces.push_back({raw.piece_source[i], raw.piece_width[i]});
    output.width += raw.piece_width[i];
  }
  for (size_t i = 0; i < outputs->size(); ++i) {
    TF_RETURN_IF_ERROR(CheckOutput(op, i, (*outputs)[i]));
  }
  return absl::OkStatus();
}

absl::Status ResolveShape(absl::string_view op, const PartialTensorShape& wanted, int64_t elements,
                          TensorShape* shape) {
  int64_t known = 1;
  for (int d = 0; d < wanted.dims(); ++d) {
    if (wanted.dim_size(d) < 0) continue;
    known = MultiplyWithoutOverflow(known, wanted.dim_size(d));
    if (known < 0) break;
  }
  const bool open = !wanted.IsFullyDefined();
  const bool fits = open ? known > 0 && elements % known == 0 : known == elements;
  if (!fits || elements < 0) {
    return InvalidIn(op, elements, " elements cannot take the shape ", wanted.DebugString(),
                     ".");
  }
  for (int d = 0; d < wanted.dims(); ++d) {
    const int64_t size = wanted.dim_size(d);
    TF_RETURN_IF_ERROR(shape->AddDimWithStatus(size < 0 ? elements / known : size));
  }
  return absl::OkStatus();
}

}  // namespace picasso
