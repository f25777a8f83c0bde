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
#include "picasso_tf/cc/kernels/output_spec.h"
#include "picasso_tf/cc/kernels/shards_input.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"

namespace picasso {
namespace packed_lookup {

struct Lookup : IdsSpec {
  std::string name;  // of the node it replaces
  int table = 0;
  ShardsSpec shards;
  float max_norm = 0;  // 0: rows are not clipped
  bool read = false;  // some piece holds it
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
  int num_tables, num_shapes;
  tensorflow::DataTypeVector ids_types;
  std::vector<std::string> lookup_names;
  std::vector<int64_t> lookup_table;
  RawShards shards;
  std::vector<float> lookup_max_norm;
  RawIds lookup;
  RawOutputs outputs;
  std::vector<int64_t> shape_lookup;
  std::vector<tensorflow::PartialTensorShape> shape_templates;
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
  TF_RETURN_IF_ERROR(context.GetAttr("num_shapes", &raw.num_shapes));
  TF_RETURN_IF_ERROR(context.GetAttr("lookup_names", &raw.lookup_names));
  TF_RETURN_IF_ERROR(context.GetAttr("lookup_table", &raw.lookup_table));
  TF_RETURN_IF_ERROR(ReadShards(context, &raw.shards));
  TF_RETURN_IF_ERROR(context.GetAttr("lookup_max_norm", &raw.lookup_max_norm));
  TF_RETURN_IF_ERROR(ReadIds(context, "lookup", &raw.lookup));
  TF_RETURN_IF_ERROR(ReadOutputs(context, &raw.outputs));
  TF_RETURN_IF_ERROR(context.GetAttr("shape_lookup", &raw.shape_lookup));
  TF_RETURN_IF_ERROR(context.GetAttr("shape_templates", &raw.shape_templates));
  return CheckAttrs(raw, attrs);
}

}  // namespace packed_lookup
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_PACKED_LOOKUP_ATTRS_H_
