#include "picasso_tf/cc/kernels/shards_input.h"

#include "picasso_tf/cc/kernels/attr_checks.h"
#include "tensorflow/core/platform/errors.h"

namespace picasso {

using tensorflow::Tensor;
using tensorflow::TensorShape;

namespace {

constexpr int64_t kMostRows = int64_t{1} << 62;  // one more does not overflow

bool SameRows(const TensorShape& one, const TensorShape& other) {
  if (one.dims() != other.dims()) return false;
  for (int d = 1; d < one.dims(); ++d) {
    if (one.dim_size(d) != other.dim_size(d)) return false;
  }
  return true;
}

}  // namespace

absl::Status CheckShards(absl::string_view op, const RawShards& raw,
                         const std::vector<int64_t>& tables, int64_t num_tables,
                         std::vector<ShardsSpec>* specs) {
  const size_t n = tables.size();
  specs->resize(n);
  if (raw.count.empty()) return absl::OkStatus();
  TF_RETURN_IF_ERROR(CheckLength(op, "lookup_shards", raw.count.size(), n, "lookup"));
  TF_RETURN_IF_ERROR(CheckLength(op, "lookup_shard_rows", raw.rows.size(), n, "lookup"));
  TF_RETURN_IF_ERROR(CheckLength(op, "lookup_shard_extras", raw.extras.size(), n, "lookup"));
  for (size_t i = 0; i < n; ++i) {
    TF_RETURN_IF_ERROR(
        CheckIndex(op, "lookup_shards", i, raw.count[i], 1, num_tables - tables[i] + 1));
    TF_RETURN_IF_ERROR(CheckIndex(op, "lookup_shard_rows", i, raw.rows[i], 0, kMostRows));
    TF_RETURN_IF_ERROR(CheckIndex(op, "lookup_shard_extras", i, raw.extras[i], 0, kMostRows));
    (*specs)[i] = {raw.count[i], raw.rows[i], raw.extras[i]};
  }
  return absl::OkStatus();
}

absl::Status BoundShards::Add(absl::string_view op, absl::string_view reader,
                              const ShardsSpec& spec, const Vars& vars, int first,
                              const Shards** shards) {
  *shards = nullptr;
  if (spec.IsOne()) return absl::OkStatus();
  std::vector<Shard>& list = lists_.emplace_back();
  const TensorShape& shape = vars[first]->tensor()->shape();
  for (int64_t i = first; i < first + spec.count; ++i) {
    const Tensor& table = *vars[i]->tensor();
    if (!SameRows(shape, table.shape())) {
      return InvalidIn(op, "the shards of ", reader, " must have rows of one shape, but two of ",
                       "them have the shapes ", shape.DebugString(), " and ",
                       table.shape().DebugString(), ".");
    }
    list.push_back({static_cast<const char*>(table.data()), table.dim_size(0)});
  }
  *shards = &shards_.emplace_back(Shards{list.data(), spec.count, spec.rows, spec.extras});
  return absl::OkStatus();
}

}  // namespace picasso
