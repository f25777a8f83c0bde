// The attributes of Picasso>PackedPooledLookup, checked once and kept in the form in
// which the kernel and the shape function use them.

#ifndef PICASSO_TF_CC_KERNELS_POOLED_LOOKUP_ATTRS_H_
#define PICASSO_TF_CC_KERNELS_POOLED_LOOKUP_ATTRS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "picasso_tf/cc/kernels/attr_checks.h"
#include "picasso_tf/cc/kernels/ids_input.h"
#include "picasso_tf/cc/kernels/output_spec.h"
#include "picasso_tf/cc/kernels/pooled_lookup.h"
#include "picasso_tf/cc/kernels/shards_input.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"

namespace picasso {
namespace pooled_lookup {

struct LookupSpec {
  std::string name;  // of what it replaces
  int table;
  IdsSpec ids;
  int segments;  // -1: ids are a matrix, each row of them a row of the output
  int rows;      // -1: as many as the segments need
  Combiner combiner;
  bool drop_negative;
  int64_t fill;
  bool sort;  // its segments may decrease
  int weights;  // -1: none
  bool drop_weightless;
  bool in_turn;
  bool read;  // some piece holds it
  ShardsSpec shards;
  float max_norm;  // 0: rows are not clipped

  bool HasMatrix() const { return segments < 0; }
};

struct Attrs {
  tensorflow::DataType dtype;
  int num_tables;
  int num_ids;
  int num_rows;
  int num_dense;
  int num_weights;
  std::vector<bool> segments_are_splits;
  std::vector<LookupSpec> lookups;
  std::vector<OutputSpec> outputs;

  // Where the inputs of each kind begin.
  int FirstIds() const { return num_tables; }
  int FirstSegments() const { return FirstIds() + num_ids; }
  int FirstRows() const { return FirstSegments() + static_cast<int>(segments_are_splits.size()); }
  int FirstDense() const { return FirstRows() + num_rows; }
  int FirstWeights() const { return FirstDense() + num_dense; }

  bool HasSplits(const LookupSpec& lookup) const {
    return !lookup.HasMatrix() && segments_are_splits[lookup.segments];
  }
};

// The attributes as they stand in the node.
struct RawAttrs {
  tensorflow::DataType dtype;
  int num_tables;
  tensorflow::DataTypeVector ids_types, segments_types, rows_types, weights_types;
  std::vector<bool> segments_are_splits;
  std::vector<std::string> lookup_names, lookup_combiner;
  std::vector<int64_t> lookup_table, lookup_segments, lookup_rows, lookup_fill, lookup_weights;
  std::vector<bool> lookup_drop, lookup_sort, lookup_drop_weightless, lookup_in_turn;
  RawIds ids;  // all but `ids` may be empty
  RawShards shards;
  std::vector<float> lookup_max_norm;
  RawOutputs outputs;
};

constexpr char kOp[] = "PackedPooledLookup";

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
  TF_RETURN_IF_ERROR(context.GetAttr("segments_types", &raw.segments_types));
  TF_RETURN_IF_ERROR(context.GetAttr("rows_types", &raw.rows_types));
  TF_RETURN_IF_ERROR(context.GetAttr("segments_are_splits", &raw.segments_are_splits));
  TF_RETURN_IF_ERROR(context.GetAttr("lookup_names", &raw.lookup_names));
  TF_RETURN_IF_ERROR(context.GetAttr("lookup_table", &raw.lookup_table));
  TF_RETURN_IF_ERROR(ReadIds(context, "lookup", &raw.ids));
  TF_RETURN_IF_ERROR(context.GetAttr("lookup_segments", &raw.lookup_segments));
  TF_RETURN_IF_ERROR(context.GetAttr("lookup_rows", &raw.lookup_rows));
  TF_RETURN_IF_ERROR(context.GetAttr("lookup_combiner", &raw.lookup_combiner));
  TF_RETURN_IF_ERROR(context.GetAttr("lookup_drop", &raw.lookup_drop));
  TF_RETURN_IF_ERROR(context.GetAttr("lookup_fill", &raw.lookup_fill));
  TF_RETURN_IF_ERROR(context.GetAttr("lookup_sort", &raw.lookup_sort));
  TF_RETURN_IF_ERROR(context.GetAttr("weights_types", &raw.weights_types));
  TF_RETURN_IF_ERROR(context.GetAttr("lookup_weights", &raw.lookup_weights));
  TF_RETURN_IF_ERROR(context.GetAttr("lookup_drop_weightless", &raw.lookup_drop_weightless));
  TF_RETURN_IF_ERROR(context.GetAttr("lookup_in_turn", &raw.lookup_in_turn));
  TF_RETURN_IF_ERROR(ReadShards(context, &raw.shards));
  TF_RETURN_IF_ERROR(context.GetAttr("lookup_max_norm", &raw.lookup_max_norm));
  TF_RETURN_IF_ERROR(ReadOutputs(context, &raw.outputs));
  return CheckAttrs(raw, attrs);
}

}  // namespace pooled_lookup
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_POOLED_LOOKUP_ATTRS_H_
