#include "picasso_tf/cc/kernels/cross_attrs.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/string_view.h"

namespace picasso {
namespace crosses {
namespace {

constexpr absl::string_view kKinds[] = {"indices", "values", "shape", "dense"};  // as enum Kind

absl::Status CheckLengths(const RawAttrs& raw) {
  const size_t crosses = raw.cross_names.size();
  TF_RETURN_IF_ERROR(CheckLength(kOp, "sparse_types", raw.sparse_types.size(),
                                 static_cast<size_t>(raw.num_sparse), "sparse column"));
  TF_RETURN_IF_ERROR(CheckLength(kOp, "cross_sizes", raw.cross_sizes.size(), crosses, "cross"));
  TF_RETURN_IF_ERROR(CheckLength(kOp, "cross_buckets", raw.cross_buckets.size(), crosses, "cross"));
  TF_RETURN_IF_ERROR(CheckLength(kOp, "cross_keys", raw.cross_keys.size(), crosses, "cross"));
  return CheckLength(kOp, "output_kind", raw.output_kind.size(), raw.output_cross.size(), "output");
}

absl::Status ReadCross(const RawAttrs& raw, size_t i, size_t first, Attrs* attrs) {
  const int64_t left = static_cast<int64_t>(raw.cross_columns.size() - first);
  TF_RETURN_IF_ERROR(CheckIndex(kOp, "cross_sizes", i, raw.cross_sizes[i], 1, left + 1));
  if (raw.cross_buckets[i] < 0) {
    return InvalidIn(kOp, "`cross_buckets[", i, "]` is ", raw.cross_buckets[i], ".");
  }
  CrossSpec cross = {raw.cross_names[i], {}, raw.cross_buckets[i],
                     static_cast<uint64_t>(raw.cross_keys[i])};
  for (size_t j = first; j < first + raw.cross_sizes[i]; ++j) {
    TF_RETURN_IF_ERROR(
        CheckIndex(kOp, "cross_columns", j, raw.cross_columns[j], 0, attrs->NumColumns()));
    cross.columns.push_back(static_cast<int>(raw.cross_columns[j]));
  }
  attrs->crosses.push_back(cross);
  return absl::OkStatus();
}

absl::Status ReadOutput(const RawAttrs& raw, size_t i, Attrs* attrs) {
  TF_RETURN_IF_ERROR(
      CheckIndex(kOp, "output_cross", i, raw.output_cross[i], 0, attrs->crosses.size()));
  const auto* const kind = std::find(std::begin(kKinds), std::end(kKinds), raw.output_kind[i]);
  if (kind == std::end(kKinds)) {
    return InvalidIn(kOp, "`output_kind[", i, "]` is '", raw.output_kind[i],
                     "', which is none of indices, values, shape and dense.");
  }
  const OutputSpec output = {static_cast<int>(raw.output_cross[i]),
                             static_cast<Kind>(kind - std::begin(kKinds))};
  for (const OutputSpec& other : attrs->outputs) {
    if (other.cross == output.cross && other.kind == output.kind) {
      return InvalidIn(kOp, "output ", i, " comes twice.");
    }
  }
  attrs->outputs.push_back(output);
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckAttrs(const RawAttrs& raw, Attrs* attrs) {
  TF_RETURN_IF_ERROR(CheckLengths(raw));
  attrs->sparse_types = raw.sparse_types;
  attrs->dense_types = raw.dense_types;
  size_t first = 0;
  for (size_t i = 0; i < raw.cross_names.size(); ++i) {
    TF_RETURN_IF_ERROR(ReadCross(raw, i, first, attrs));
    first += raw.cross_sizes[i];
  }
  TF_RETURN_IF_ERROR(CheckLength(kOp, "cross_columns", raw.cross_columns.size(), first,
                                 "column of a cross"));
  for (size_t i = 0; i < raw.output_cross.size(); ++i) {
    TF_RETURN_IF_ERROR(ReadOutput(raw, i, attrs));
  }
  return absl::OkStatus();
}

}  // namespace crosses
}  // namespace picasso
