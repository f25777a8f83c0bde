#include "picasso_tf/cc/kernels/transform_attrs.h"

#include "absl/strings/string_view.h"
#include "picasso_tf/cc/kernels/transform_parser.h"

namespace picasso {
namespace transforms {
namespace {

// The op definition admits no other dtype.
DType Of(tensorflow::DataType dtype) {
  for (const DType found : {DType::kBool, DType::kInt32, DType::kInt64, DType::kFloat32,
                            DType::kFloat64}) {
    if (TensorType(found) == dtype) return found;
  }
  return DType::kString;
}

std::vector<DType> Of(const tensorflow::DataTypeVector& types) {
  std::vector<DType> found;
  for (const tensorflow::DataType dtype : types) found.push_back(Of(dtype));
  return found;
}

absl::Status CheckLengths(const RawAttrs& raw) {
  const size_t features = raw.feature_types.size(), outputs = raw.output_types.size();
  TF_RETURN_IF_ERROR(
      CheckLength(kOp, "feature_names", raw.feature_names.size(), features, "feature"));
  TF_RETURN_IF_ERROR(CheckLength(kOp, "feature_instructions", raw.feature_instructions.size(),
                                 features, "feature"));
  TF_RETURN_IF_ERROR(
      CheckLength(kOp, "output_feature", raw.output_feature.size(), outputs, "output"));
  return CheckLength(kOp, "output_value", raw.output_value.size(), outputs, "output");
}

absl::Status ReadProgram(const RawAttrs& raw, const Attrs& attrs, size_t i, int64_t first,
                         FeatureSpec* feature) {
  const int64_t most = static_cast<int64_t>(raw.program.size()) - first;
  TF_RETURN_IF_ERROR(
      CheckIndex(kOp, "feature_instructions", i, raw.feature_instructions[i], 0, most + 1));
  const auto begin = raw.program.begin() + first;
  const std::vector<std::string> program(begin, begin + raw.feature_instructions[i]);
  const Surroundings around = {Of(raw.feature_types[i]), attrs.scalars, attrs.num_tables,
                               static_cast<int64_t>(attrs.boundaries.size()), attrs.others,
                               static_cast<int64_t>(attrs.texts.size())};
  const std::string problem = ProgramParser(around, &feature->program).Parse(program);
  if (problem.empty()) return absl::OkStatus();
  return InvalidIn(kOp, "in the program of feature ", i, ", ", problem);
}

absl::Status ReadOutput(const RawAttrs& raw, size_t i, Attrs* attrs) {
  TF_RETURN_IF_ERROR(
      CheckIndex(kOp, "output_feature", i, raw.output_feature[i], 0, attrs->features.size()));
  const int number = static_cast<int>(raw.output_feature[i]);
  FeatureSpec& feature = attrs->features[number];
  OutputSpec output = {number, kIndices, DType::kInt64};
  const auto refuse = [&](absl::string_view why) {
    return InvalidIn(kOp, "`output_value[", i, "]` is '", raw.output_value[i], "', but ", why);
  };
  if (raw.output_value[i] == "indices") {
    if (feature.program.mask < 0) return refuse("its feature's program takes no part.");
  } else {
    const std::string problem = FindValue(feature.program, raw.output_value[i], &output.value);
    if (!problem.empty()) return refuse(problem);
    output.dtype = feature.program.dtypes[output.value];
    if (feature.program.levels[output.value] == Level::kScalar) return refuse("it is a scalar.");
    if (output.dtype == DType::kString) return refuse("strings cannot be outputs.");
    feature.program.NoteRead(output.value);
  }
  if (TensorType(output.dtype) != raw.output_types[i]) return refuse("it has another dtype.");
  feature.outputs.push_back(static_cast<int>(i));
  attrs->outputs.push_back(output);
  return absl::OkStatus();
}

}  // namespace

tensorflow::DataType TensorType(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return tensorflow::DT_BOOL;
    case DType::kInt32:
      return tensorflow::DT_INT32;
    case DType::kInt64:
      return tensorflow::DT_INT64;
    case DType::kFloat32:
      return tensorflow::DT_FLOAT;
    case DType::kFloat64:
      return tensorflow::DT_DOUBLE;
    default:
      return tensorflow::DT_STRING;
  }
}

absl::Status CheckAttrs(const RawAttrs& raw, Attrs* attrs) {
  TF_RETURN_IF_ERROR(CheckLengths(raw));
  attrs->scalars = Of(raw.scalar_types);
  attrs->others = Of(raw.other_types);
  attrs->texts = raw.texts;
  attrs->num_tables = raw.num_tables;
  attrs->boundaries = raw.boundaries;
  attrs->features.resize(raw.feature_types.size());
  int64_t first = 0;
  for (size_t i = 0; i < attrs->features.size(); ++i) {
    attrs->features[i].name = raw.feature_names[i];
    TF_RETURN_IF_ERROR(ReadProgram(raw, *attrs, i, first, &attrs->features[i]));
    first += raw.feature_instructions[i];
  }
  TF_RETURN_IF_ERROR(CheckLength(kOp, "program", raw.program.size(), first, "instruction"));
  for (size_t i = 0; i < raw.output_types.size(); ++i) {
    TF_RETURN_IF_ERROR(ReadOutput(raw, i, attrs));
  }
  return absl::OkStatus();
}

}  // namespace transforms
}  // namespace picasso
