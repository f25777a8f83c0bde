#include "picasso_tf/cc/kernels/ids_input.h"

#include "absl/strings/str_cat.h"
#include "picasso_tf/cc/kernels/attr_checks.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"

namespace picasso {

using tensorflow::Tensor;
using tensorflow::TensorShape;

absl::Status CheckIds(absl::string_view op, absl::string_view kind, const RawIds& raw, size_t count,
                      size_t num_inputs, std::vector<IdsSpec>* specs) {
  const auto name = [&](absl::string_view field) { return absl::StrCat(kind, "_", field); };
  TF_RETURN_IF_ERROR(CheckLength(op, name("ids"), raw.ids.size(), count, kind));
  TF_RETURN_IF_ERROR(CheckLength(op, name("column"), raw.column.size(), count, kind));
  TF_RETURN_IF_ERROR(CheckLength(op, name("columns"), raw.columns.size(), count, kind));
  TF_RETURN_IF_ERROR(CheckLength(op, name("wrap"), raw.wrap.size(), count, kind));
  TF_RETURN_IF_ERROR(CheckLength(op, name("narrow"), raw.narrow.size(), count, kind));
  for (size_t i = 0; i < count; ++i) {
    TF_RETURN_IF_ERROR(CheckIndex(op, name("ids"), i, raw.ids[i], 0, num_inputs));
    const bool all = raw.column[i] == -1;
    if (raw.column[i] < -1 || (all ? raw.columns[i] != 0 : raw.columns[i] < 1)) {
      return InvalidIn(
          op, "`", name("column"), "[", i, "]` and `", name("columns"), "[", i,
          "]` must be -1 and 0, or a column and a positive number of columns, but they are ",
          raw.column[i], " and ", raw.columns[i], ".");
    }
    if (raw.wrap[i] < 0) {
      return InvalidIn(op, "`", name("wrap"), "[", i, "]` must not be negative, but it is ",
                       raw.wrap[i], ".");
    }
    specs->push_back({static_cast<int>(raw.ids[i]), raw.column[i], raw.columns[i], raw.wrap[i],
                      static_cast<bool>(raw.narrow[i])});
  }
  return absl::OkStatus();
}

absl::Status BindIds(absl::string_view op, absl::string_view reader, const IdsSpec& spec,
                     const Tensor& ids, IdList* list) {
  list->ids = ids.data();
  list->num_ids = ids.NumElements();
  list->wrap = spec.wrap;
  if (ids.dtype() == tensorflow::DT_INT32) {
    list->id_kind = IdKind::kInt32;
  } else {
    list->id_kind = spec.narrow ? IdKind::kInt64AsInt32 : IdKind::kInt64;
  }
  if (spec.column < 0) return absl::OkStatus();
  if (ids.dims() != 2 || spec.columns > ids.dim_size(1) - spec.column) {
    return InvalidIn(op, reader, " reads columns ", spec.column, " to ",
                     spec.column + spec.columns - 1,
                     " of a matrix of ids, but its ids have shape ", ids.shape().DebugString(),
                     ".");
  }
  list->num_ids = ids.dim_size(0) * spec.columns;
  list->ids_columns = spec.columns;
  list->ids_pitch = ids.dim_size(1);
  list->ids_first = spec.column;
  return absl::OkStatus();
}

TensorShape IdsShape(const IdsSpec& spec, const Tensor& ids) {
  TensorShape shape = ids.shape();
  if (spec.column < 0) return shape;
  shape.set_dim(1, spec.columns);
  if (spec.columns == 1) shape.RemoveDim(1);
  return shape;
}

std::string BadId(const IdsSpec& spec, const Tensor& ids, const IdList& list, int64_t j) {
  const TensorShape shape = IdsShape(spec, ids);
  std::string position;  // nothing for a scalar
  int64_t at = j;
  for (int d = shape.dims() - 1; d >= 0; --d) {
    position = absl::StrCat(at % shape.dim_size(d), position.empty() ? "" : ",", position);
    at /= shape.dim_size(d);
  }
  if (!position.empty()) position = absl::StrCat("[", position, "]");
  const std::string found = absl::StrCat("indices", position, " = ", IdAt(list, j));
  if (list.shards != nullptr) {
    return absl::StrCat(found, " has no row in any of the ", list.shards->num, " shards");
  }
  return absl::StrCat(found, " is not in [0, ", list.table_rows, ")");
}

}  // namespace picasso
