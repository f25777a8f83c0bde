// The attributes of Picasso>PackedLookup, checked once and kept in the form in
// which the kernel and the shape function use them.

#ifndef PICASSO_TF_CC_KERNELS_PACKED_LOOKUP_ATTRS_H_
#define PICASSO_TF_CC_KERNELS_PACKED_LOOKUP_ATTRS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "picasso_tf/cc/kernels/attr_checks.h"
#include "picasso_tf/cc/kernels/ids_input.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"

namespace picasso {
namespace packed_lookup {

struct Lookup : IdsSpec {
  std::string name;  // of the node it replaces
  int table = 0;
  bool read = false;  // some piece holds it
};

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

  // The shape is that of the one lookup: ids, then the row of the table.
  bool IsNatural() const { return shape.unknown_rank(); }
};

struct ShapeSpec {
  int lookup;
  tensorflow::PartialTensorShape shape;  // unknown rank: natural
};

struct Attrs {
  tensorflow::DataType dtype;
  int num_tables;
  int num_ids;
  int num_dense;
  std::vector<Lookup> lookups;
  std::vector<OutputSpec> outputs;
  std::vector<ShapeSpec> shapes;
};

// The attributes as they stand in the node.
struct RawAttrs {
  tensorflow::DataType dtype;
  int num_tables, num_dense, num_outputs, num_shapes;
  tensorflow::DataTypeVector ids_types;
  std::vector<std::string> lookup_names;
  std::vector<int64_t> lookup_table;
  RawIds lookup;
  std::vector<int64_t> piece_output, piece_source, piece_width, shape_lookup;
  std::vector<tensorflow::PartialTensorShape> output_shapes, shape_templates;
};

constexpr char kOp[] = "PackedLookup";

template <typename... Args>
absl::Status Invalid(const Args&... args) {
  return InvalidIn(kOp, args...);
}

// InvalidArgument where lists differ in length or an index is out of range.
absl::Status CheckAttrs(const RawAttrs& raw, Attrs* attrs);

// `context` is an OpKernelConstruction or a shape_inference::InferenceContext.
template <typename Context>
absl::Status ReadAttrs(const Context& context, Attrs* attrs) {
  RawAttrs raw;
  TF_RETURN_IF_ERROR(context.GetAttr("dtype", &raw.dtype));
  TF_RETURN_IF_ERROR(context.GetAttr("num_tables", &raw.num_tables));
  TF_RETURN_IF_ERROR(context.GetAttr("ids_types", &raw.ids_types));
  TF_RETURN_IF_ERROR(context.GetAttr("num_dense", &raw.num_dense));
  TF_RETURN_IF_ERROR(context.GetAttr("num_outputs", &raw.num_outputs));
  TF_RETURN_IF_ERROR(context.GetAttr("num_shapes", &raw.num_shapes));
  TF_RETURN_IF_ERROR(context.GetAttr("lookup_names", &raw.lookup_names));
  TF_RETURN_IF_ERROR(context.GetAttr("lookup_table", &raw.lookup_table));
  TF_RETURN_IF_ERROR(ReadIds(context, "lookup", &raw.lookup));
  TF_RETURN_IF_ERROR(context.GetAttr("piece_output", &raw.piece_output));
  TF_RETURN_IF_ERROR(context.GetAttr("piece_source", &raw.piece_source));
  TF_RETURN_IF_ERROR(context.GetAttr("piece_width", &raw.piece_width));
  TF_RETURN_IF_ERROR(context.GetAttr("output_shapes", &raw.output_shapes));
  TF_RETURN_IF_ERROR(context.GetAttr("shape_lookup", &raw.shape_lookup));
  TF_RETURN_IF_ERROR(context.GetAttr("shape_templates", &raw.shape_templates));
  return CheckAttrs(raw, attrs);
}

}  // namespace packed_lookup
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_PACKED_LOOKUP_ATTRS_H_
