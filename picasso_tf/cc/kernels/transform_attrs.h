// The attributes of Picasso>PackedTransforms, checked once and kept in the form in which the
// kernel and the shape function use them.

#ifndef PICASSO_TF_CC_KERNELS_TRANSFORM_ATTRS_H_
#define PICASSO_TF_CC_KERNELS_TRANSFORM_ATTRS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "picasso_tf/cc/kernels/attr_checks.h"
#include "picasso_tf/cc/kernels/transform_program.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"

namespace picasso {
namespace transforms {

struct OutputSpec {
  int feature;
  int32_t value;  // kIndices: where the elements are that the mask takes
  DType dtype;
};

constexpr int32_t kIndices = -1;

struct FeatureSpec {
  std::string name;
  Program program;
  std::vector<int> outputs;
};

struct Attrs {
  std::vector<DType> others;
  std::vector<DType> scalars;
  int num_tables;
  std::vector<std::string> texts;
  std::vector<float> boundaries;
  std::vector<FeatureSpec> features;
  std::vector<OutputSpec> outputs;

  int FirstOther() const { return static_cast<int>(features.size()); }
  int FirstScalar() const { return FirstOther() + static_cast<int>(others.size()); }
  int FirstTable() const { return FirstScalar() + static_cast<int>(scalars.size()); }
  Level LevelOf(const OutputSpec& output) const {
    return output.value == kIndices ? Level::kTaken
                                    : features[output.feature].program.levels[output.value];
  }
};

// The attributes as they stand in the node.
struct RawAttrs {
  tensorflow::DataTypeVector feature_types, other_types, scalar_types, output_types;
  int num_tables;
  std::vector<float> boundaries;
  std::vector<std::string> feature_names, program, texts, output_value;
  std::vector<int64_t> feature_instructions, output_feature;
};

constexpr char kOp[] = "PackedTransforms";

tensorflow::DataType TensorType(DType dtype);

// InvalidArgument where a program is wrong, lists differ in length or an index is out of range.
absl::Status CheckAttrs(const RawAttrs& raw, Attrs* attrs);

// `context` is an OpKernelConstruction or a shape_inference::InferenceContext.
template <typename Context>
absl::Status ReadAttrs(const Context& context, Attrs* attrs) {
  RawAttrs raw;
  TF_RETURN_IF_ERROR(context.GetAttr("feature_types", &raw.feature_types));
  TF_RETURN_IF_ERROR(context.GetAttr("other_types", &raw.other_types));
  TF_RETURN_IF_ERROR(context.GetAttr("scalar_types", &raw.scalar_types));
  TF_RETURN_IF_ERROR(context.GetAttr("output_types", &raw.output_types));
  TF_RETURN_IF_ERROR(context.GetAttr("texts", &raw.texts));
  TF_RETURN_IF_ERROR(context.GetAttr("num_tables", &raw.num_tables));
  TF_RETURN_IF_ERROR(context.GetAttr("boundaries", &raw.boundaries));
  TF_RETURN_IF_ERROR(context.GetAttr("feature_names", &raw.feature_names));
  TF_RETURN_IF_ERROR(context.GetAttr("feature_instructions", &raw.feature_instructions));
  TF_RETURN_IF_ERROR(context.GetAttr("program", &raw.program));
  TF_RETURN_IF_ERROR(context.GetAttr("output_feature", &raw.output_feature));
  TF_RETURN_IF_ERROR(context.GetAttr("output_value", &raw.output_value));
  return CheckAttrs(raw, attrs);
}

}  // namespace transforms
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_TRANSFORM_ATTRS_H_
