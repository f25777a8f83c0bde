// The ids inputs of the packed ops: which part of an input a lookup or a segment
// reads, and what is said when an id is out of range.

#ifndef PICASSO_TF_CC_KERNELS_IDS_INPUT_H_
#define PICASSO_TF_CC_KERNELS_IDS_INPUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "picasso_tf/cc/kernels/ids.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"

namespace picasso {

struct IdsSpec {
  int ids;          // which of the op's ids inputs
  int64_t column;   // -1: all of the tensor
  int64_t columns;  // 0 then
  int64_t wrap;
  bool narrow;
};

// The five attributes, one entry for each lookup or segment.
struct RawIds {
  std::vector<int64_t> ids, column, columns, wrap;
  std::vector<bool> narrow;
};

// `kind` is "lookup" or "segment": attributes are named `lookup_ids` and so on.
absl::Status CheckIds(absl::string_view op, absl::string_view kind, const RawIds& raw, size_t count,
                      size_t num_inputs, std::vector<IdsSpec>* specs);

template <typename Context>
absl::Status ReadIds(const Context& context, const std::string& kind, RawIds* raw) {
  for (const auto& [name, list] : {std::make_pair("_ids", &raw->ids), {"_column", &raw->column},
                                   {"_columns", &raw->columns}, {"_wrap", &raw->wrap}}) {
    const absl::Status status = context.GetAttr(kind + name, list);
    if (!status.ok()) return status;
  }
  return context.GetAttr(kind + "_narrow", &raw->narrow);
}

// Sets `list` to the ids that `spec` reads of `ids`. `reader` is named in the
// error: "lookup 'x'".
absl::Status BindIds(absl::string_view op, absl::string_view reader, const IdsSpec& spec,
                     const tensorflow::Tensor& ids, IdList* list);

// The shape of those ids: [B] for one column, [B, k] for k.
tensorflow::TensorShape IdsShape(const IdsSpec& spec, const tensorflow::Tensor& ids);

// "indices[3,0] = 12 is not in [0, 10)": what stock says about id number `j`.
std::string BadId(const IdsSpec& spec, const tensorflow::Tensor& ids, const IdList& list,
                  int64_t j);

}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_IDS_INPUT_H_
