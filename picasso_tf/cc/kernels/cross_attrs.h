// The attributes of Picasso>PackedCrosses, checked once and kept in the form in which the kernel
// and the shape function use them.

#ifndef PICASSO_TF_CC_KERNELS_CROSS_ATTRS_H_
#define PICASSO_TF_CC_KERNELS_CROSS_ATTRS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "picasso_tf/cc/kernels/attr_checks.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"

namespace picasso {
namespace crosses {

enum class Kind : int32_t { kIndices, kValues, kShape, kDense };

struct CrossSpec {
  std::string name;
  std::vector<int> columns;  // numbers of sparse columns, then of dense ones
  int64_t num_buckets;
  uint64_t key;
};

struct OutputSpec {
  int cross;
  Kind kind;
};

struct Attrs {
  tensorflow::DataTypeVector sparse_types, dense_types;
  std::vector<CrossSpec> crosses;
  std::vector<OutputSpec> outputs;

  int NumSparse() const { return static_cast<int>(sparse_types.size()); }
  int NumColumns() const { return NumSparse() + static_cast<int>(dense_types.size()); }
  bool IsSparse(int column) const { return column < NumSparse(); }
  tensorflow::DataType TypeOf(int column) const {
    return IsSparse(column) ? sparse_types[column] : dense_types[column - NumSparse()];
  }
  // Numbers of the op's inputs.
  int IndicesOf(int column) const { return column; }
  int ValuesOf(int column) const {  // of a dense column, itself
    return NumSparse() + (IsSparse(column) ? column : NumSparse() + column);
  }
  int ShapeOf(int column) const { return 2 * NumSparse() + column; }
};

// The attributes as they stand in the node.
struct RawAttrs {
  int num_sparse;
  tensorflow::DataTypeVector sparse_types, dense_types;
  std::vector<std::string> cross_names, output_kind;
  std::vector<int64_t> cross_sizes, cross_columns, cross_buckets, cross_keys, output_cross;
};

constexpr char kOp[] = "PackedCrosses";

// InvalidArgument where lists differ in length, an index is out of range or an output comes twice.
absl::Status CheckAttrs(const RawAttrs& raw, Attrs* attrs);

// `context` is an OpKernelConstruction or a shape_inference::InferenceContext.
template <typename Context>
absl::Status ReadAttrs(const Context& context, Attrs* attrs) {
  RawAttrs raw;
  TF_RETURN_IF_ERROR(context.GetAttr("num_sparse", &raw.num_sparse));
  TF_RETURN_IF_ERROR(context.GetAttr("sparse_types", &raw.sparse_types));
  TF_RETURN_IF_ERROR(context.GetAttr("dense_types", &raw.dense_types));
  TF_RETURN_IF_ERROR(context.GetAttr("cross_names", &raw.cross_names));
  TF_RETURN_IF_ERROR(context.GetAttr("cross_sizes", &raw.cross_sizes));
  TF_RETURN_IF_ERROR(context.GetAttr("cross_columns", &raw.cross_columns));
  TF_RETURN_IF_ERROR(context.GetAttr("cross_buckets", &raw.cross_buckets));
  TF_RETURN_IF_ERROR(context.GetAttr("cross_keys", &raw.cross_keys));
  TF_RETURN_IF_ERROR(context.GetAttr("output_cross", &raw.output_cross));
  TF_RETURN_IF_ERROR(context.GetAttr("output_kind", &raw.output_kind));
  return CheckAttrs(raw, attrs);
}

}  // namespace crosses
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_CROSS_ATTRS_H_
