// The attributes of Picasso>PackedSparseUpdate and Picasso>PackedDenseUpdate,
// checked once and kept in the form in which the kernels and the shape function
// use them.

#ifndef PICASSO_TF_CC_KERNELS_PACKED_UPDATE_ATTRS_H_
#define PICASSO_TF_CC_KERNELS_PACKED_UPDATE_ATTRS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "picasso_tf/cc/kernels/attr_checks.h"
#include "picasso_tf/cc/kernels/ids_input.h"
#include "picasso_tf/cc/kernels/update_pools.h"
#include "picasso_tf/cc/kernels/update_program.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"

namespace picasso {
namespace packed_update {

// Which rows are updated: those that ids name, or all.
enum class Extent { kTouchedRows, kAllRows };

// Numbers of inputs: `variables`, `gradients`, `scalars` or `pools`.
using Inputs = std::vector<int>;

// Of a gradient, in the place of the number of a pool.
constexpr int kNoPool = -1;    // it has a row for each id
constexpr int kEvenPool = -2;  // each of its rows is of equally many ids

// One gradient of a segment: where its rows are.
struct GradientSpec {
  int gradient;
  int64_t first;
  int64_t span;   // 0: all of the tensor
  int64_t pitch;  // columns of the matrix that it is seen as
  int pool;
  Combiner combiner;
  int weights;  // -1: ids of one row share its gradient alike

  bool IsPooled() const { return pool != kNoPool; }
};

struct SegmentSpec : IdsSpec {
  int table = 0;
  int64_t fill = -1;  // see Segment
  std::vector<GradientSpec> gradients;
};

struct TableSpec {
  std::string name;
  Inputs states;
  Inputs parameters;
  Inputs gradients;
  int first_segment = 0;
  int num_segments = 0;
};

struct Attrs {
  const char* op = "";  // begins each message
  Extent extent;
  tensorflow::DataType dtype;
  int num_variables;
  int num_ids;
  int num_gradients;
  int num_scalars;
  int num_pools;
  bool has_pooled = false;  // some gradient is of pooled ids
  int num_weights;
  bool drop_negative;
  Program program;
  std::vector<TableSpec> tables;
  std::vector<SegmentSpec> segments;

  int IdsInput(int ids) const { return num_variables + ids; }
  int GradientInput(int gradient) const { return IdsInput(num_ids) + gradient; }
  int ScalarInput(int scalar) const { return GradientInput(num_gradients) + scalar; }
  int PoolInput(int pool) const { return ScalarInput(num_scalars) + pool; }
  int WeightsInput(int weights) const { return PoolInput(num_pools) + weights; }
};

// The attributes as they stand in the node.
struct RawAttrs {
  tensorflow::DataType dtype;
  int num_variables, num_gradients, num_scalars;
  int num_states, num_row_gradients, num_table_gradients, num_parameters;
  bool drop_negative;
  tensorflow::DataTypeVector ids_types, pools_types, weights_types;
  std::vector<std::string> program, results, table_names, gradient_combiner;
  std::vector<int64_t> table_variables, table_parameters, table_gradients;
  std::vector<int64_t> segment_table, segment_gradients, segment_first, segment_span, segment_pitch;
  std::vector<int64_t> gradient_pool, gradient_weights, segment_fill;
  RawIds segment;
};

// InvalidArgument where the program is wrong, lists differ in length or an index
// is out of range.
absl::Status CheckAttrs(Extent extent, const RawAttrs& raw, Attrs* attrs);

// `context` is an OpKernelConstruction or a shape_inference::InferenceContext.
template <typename Context>
absl::Status ReadAttrs(const Context& context, Extent extent, Attrs* attrs) {
  RawAttrs raw;
  TF_RETURN_IF_ERROR(context.GetAttr("dtype", &raw.dtype));
  TF_RETURN_IF_ERROR(context.GetAttr("num_variables", &raw.num_variables));
  TF_RETURN_IF_ERROR(context.GetAttr("ids_types", &raw.ids_types));
  TF_RETURN_IF_ERROR(context.GetAttr("num_gradients", &raw.num_gradients));
  TF_RETURN_IF_ERROR(context.GetAttr("num_scalars", &raw.num_scalars));
  TF_RETURN_IF_ERROR(context.GetAttr("program", &raw.program));
  TF_RETURN_IF_ERROR(context.GetAttr("results", &raw.results));
  TF_RETURN_IF_ERROR(context.GetAttr("num_states", &raw.num_states));
  TF_RETURN_IF_ERROR(context.GetAttr("num_row_gradients", &raw.num_row_gradients));
  TF_RETURN_IF_ERROR(context.GetAttr("num_table_gradients", &raw.num_table_gradients));
  TF_RETURN_IF_ERROR(context.GetAttr("num_parameters", &raw.num_parameters));
  TF_RETURN_IF_ERROR(context.GetAttr("table_names", &raw.table_names));
  TF_RETURN_IF_ERROR(context.GetAttr("table_variables", &raw.table_variables));
  TF_RETURN_IF_ERROR(context.GetAttr("table_parameters", &raw.table_parameters));
  TF_RETURN_IF_ERROR(context.GetAttr("table_gradients", &raw.table_gradients));
  TF_RETURN_IF_ERROR(context.GetAttr("segment_table", &raw.segment_table));
  TF_RETURN_IF_ERROR(ReadIds(context, "segment", &raw.segment));
  TF_RETURN_IF_ERROR(context.GetAttr("segment_gradients", &raw.segment_gradients));
  TF_RETURN_IF_ERROR(context.GetAttr("segment_first", &raw.segment_first));
  TF_RETURN_IF_ERROR(context.GetAttr("segment_span", &raw.segment_span));
  TF_RETURN_IF_ERROR(context.GetAttr("segment_pitch", &raw.segment_pitch));
  TF_RETURN_IF_ERROR(context.GetAttr("pools_types", &raw.pools_types));
  TF_RETURN_IF_ERROR(context.GetAttr("gradient_pool", &raw.gradient_pool));
  TF_RETURN_IF_ERROR(context.GetAttr("gradient_combiner", &raw.gradient_combiner));
  TF_RETURN_IF_ERROR(context.GetAttr("weights_types", &raw.weights_types));
  TF_RETURN_IF_ERROR(context.GetAttr("gradient_weights", &raw.gradient_weights));
  TF_RETURN_IF_ERROR(context.GetAttr("segment_fill", &raw.segment_fill));
  TF_RETURN_IF_ERROR(context.GetAttr("drop_negative", &raw.drop_negative));
  return CheckAttrs(extent, raw, attrs);
}

}  // namespace packed_update
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_PACKED_UPDATE_ATTRS_H_
