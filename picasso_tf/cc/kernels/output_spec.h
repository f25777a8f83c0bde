// The outputs of the packed lookups: matrices built of pieces that stand side by
// side, as the attributes describe them.

#ifndef PICASSO_TF_CC_KERNELS_OUTPUT_SPEC_H_
#define PICASSO_TF_CC_KERNELS_OUTPUT_SPEC_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/platform/errors.h"

namespace picasso {

struct PieceSpec {
  int64_t source;  // >= 0: a lookup; < 0: dense input -1 - source
  int64_t width;   // elements per row; 0 in a natural output

  bool IsDense() const { return source < 0; }
  int64_t Dense() const { return -1 - source; }
};

struct OutputSpec {
  std::vector<PieceSpec> pieces;
  int64_t width = 0;  // of all pieces
  tensorflow::PartialTensorShape shape;

  // The shape is what the one lookup gives by itself.
  bool IsNatural() const { return shape.unknown_rank(); }
};

// The attributes as they stand in the node.
struct RawOutputs {
  int num_outputs, num_dense;
  std::vector<int64_t> piece_output, piece_source, piece_width;
  std::vector<tensorflow::PartialTensorShape> output_shapes;
};

// `context` is an OpKernelConstruction or a shape_inference::InferenceContext.
template <typename Context>
absl::Status ReadOutputs(const Context& context, RawOutputs* raw) {
  TF_RETURN_IF_ERROR(context.GetAttr("num_dense", &raw->num_dense));
  TF_RETURN_IF_ERROR(context.GetAttr("num_outputs", &raw->num_outputs));
  TF_RETURN_IF_ERROR(context.GetAttr("piece_output", &raw->piece_output));
  TF_RETURN_IF_ERROR(context.GetAttr("piece_source", &raw->piece_source));
  TF_RETURN_IF_ERROR(context.GetAttr("piece_width", &raw->piece_width));
  return context.GetAttr("output_shapes", &raw->output_shapes);
}

// InvalidArgument where lists differ in length or an index is out of range. `op`
// begins each message.
absl::Status CheckOutputs(absl::string_view op, const RawOutputs& raw, size_t num_lookups,
                          std::vector<OutputSpec>* outputs);

// At most one dimension may be left open.
absl::Status CheckTemplate(absl::string_view op, absl::string_view name, size_t at,
                           const tensorflow::PartialTensorShape& shape);

// `wanted` with its unknown dimension computed from the number of elements,
// which is negative where it overflowed.
absl::Status ResolveShape(absl::string_view op, const tensorflow::PartialTensorShape& wanted,
                          int64_t elements, tensorflow::TensorShape* shape);

}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_OUTPUT_SPEC_H_
