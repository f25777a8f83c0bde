// Attributes of Picasso>PackedIndicators, read and checked for its kernel and for its shape
// function.

#ifndef PICASSO_TF_CC_KERNELS_INDICATOR_ATTRS_H_
#define PICASSO_TF_CC_KERNELS_INDICATOR_ATTRS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "picasso_tf/cc/kernels/attr_checks.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"

namespace picasso {
namespace indicators {

constexpr char kOp[] = "PackedIndicators";

struct Attrs {
  std::vector<std::string> names;  // of the features
  std::vector<int64_t> depths;
};

// Context is an OpKernelConstruction or an InferenceContext.
template <typename Context>
absl::Status ReadAttrs(const Context& context, Attrs* attrs) {
  int count = 0;
  tensorflow::DataTypeVector id_types;
  TF_RETURN_IF_ERROR(context.GetAttr("num_features", &count));
  TF_RETURN_IF_ERROR(context.GetAttr("id_types", &id_types));
  TF_RETURN_IF_ERROR(context.GetAttr("feature_names", &attrs->names));
  TF_RETURN_IF_ERROR(context.GetAttr("depths", &attrs->depths));
  TF_RETURN_IF_ERROR(CheckLength(kOp, "id_types", id_types.size(), count, "feature"));
  TF_RETURN_IF_ERROR(CheckLength(kOp, "feature_names", attrs->names.size(), count, "feature"));
  TF_RETURN_IF_ERROR(CheckLength(kOp, "depths", attrs->depths.size(), count, "feature"));
  for (int i = 0; i < count; ++i) {
    if (attrs->depths[i] >= 0) continue;
    return InvalidIn(kOp, "`depths[", i, "]` is ", attrs->depths[i], ".");
  }
  return absl::OkStatus();
}

}  // namespace indicators
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_INDICATOR_ATTRS_H_
