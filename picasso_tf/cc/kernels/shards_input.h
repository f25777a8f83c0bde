// The attributes that spread a lookup's table over several variables: a lookup with
// `lookup_shards` n reads n tables from its `lookup_table` on. The lists may be empty;
// every lookup then reads one table.

#ifndef PICASSO_TF_CC_KERNELS_SHARDS_INPUT_H_
#define PICASSO_TF_CC_KERNELS_SHARDS_INPUT_H_

#include <cstdint>
#include <deque>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "picasso_tf/cc/kernels/shards.h"
#include "picasso_tf/cc/kernels/variables.h"

namespace picasso {

struct ShardsSpec {
  int64_t count = 1;
  int64_t rows = 0;  // see Shards
  int64_t extras = 0;

  bool IsOne() const { return count == 1; }
};

struct RawShards {
  std::vector<int64_t> count, rows, extras;
};

// `context` is an OpKernelConstruction or a shape_inference::InferenceContext.
template <typename Context>
absl::Status ReadShards(const Context& context, RawShards* raw) {
  TF_RETURN_IF_ERROR(context.GetAttr("lookup_shards", &raw->count));
  TF_RETURN_IF_ERROR(context.GetAttr("lookup_shard_rows", &raw->rows));
  return context.GetAttr("lookup_shard_extras", &raw->extras);
}

// One entry for each of the tables that lookups begin at, which were checked before.
absl::Status CheckShards(absl::string_view op, const RawShards& raw,
                         const std::vector<int64_t>& tables, int64_t num_tables,
                         std::vector<ShardsSpec>* specs);

// The shards of the lookups of one call; what is added stays where it is.
class BoundShards {
 public:
  // Null for a table of one variable. All shards must have rows of one shape. `reader`
  // is named in the error: "lookup 'x'".
  absl::Status Add(absl::string_view op, absl::string_view reader, const ShardsSpec& spec,
                   const Vars& vars, int first, const Shards** shards);

 private:
  std::deque<std::vector<Shard>> lists_;
  std::deque<Shards> shards_;
};

}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_SHARDS_INPUT_H_
