#include "picasso_tf/cc/kernels/packed_update_attrs.h"

#include <algorithm>

#include "absl/strings/string_view.h"

namespace picasso {
namespace packed_update {
namespace {

constexpr int64_t kMaxColumns = int64_t{1} << 40;  // sums of columns cannot overflow

// Splits `raw`, `each` entries for each of `count` owners, and checks that they
// are in [0, end).
absl::Status Split(const char* op, absl::string_view name, const std::vector<int64_t>& raw,
                   size_t count, size_t each, absl::string_view of, int64_t end,
                   std::vector<Inputs>* lists) {
  TF_RETURN_IF_ERROR(CheckLength(op, name, raw.size(), count * each, of));
  lists->resize(count);
  for (size_t i = 0; i < raw.size(); ++i) {
    TF_RETURN_IF_ERROR(CheckIndex(op, name, i, raw[i], 0, end));
    (*lists)[i / each].push_back(static_cast<int>(raw[i]));
  }
  return absl::OkStatus();
}

absl::Status ReadProgram(const RawAttrs& raw, Attrs* attrs) {
  Counts counts;
  counts.states = raw.num_states;
  counts.row_gradients = raw.num_row_gradients;
  counts.table_gradients = raw.num_table_gradients;
  counts.parameters = raw.num_parameters;
  const std::string problem =
      ProgramParser(counts, &attrs->program).Parse(raw.program, raw.results);
  return problem.empty() ? absl::OkStatus() : InvalidIn(attrs->op, problem);
}

absl::Status CheckVariables(const Attrs& attrs) {
  std::vector<int> owner(attrs.num_variables, -1);
  for (size_t i = 0; i < attrs.tables.size(); ++i) {
    for (int variable : attrs.tables[i].states) {
      if (owner[variable] >= 0) {
        return InvalidIn(attrs.op, "variable ", variable, " is a state of table '",
                         attrs.tables[owner[variable]].name, "' and again of table '",
                         attrs.tables[i].name, "', but it may be only one state of one table.");
      }
      owner[variable] = i;
    }
  }
  return absl::OkStatus();
}

absl::Status ReadTables(const RawAttrs& raw, Attrs* attrs) {
  const size_t n = raw.table_names.size();
  std::vector<Inputs> states, parameters, gradients;
  TF_RETURN_IF_ERROR(Split(attrs->op, "table_variables", raw.table_variables, n, raw.num_states,
                           "state of each table", raw.num_variables, &states));
  TF_RETURN_IF_ERROR(Split(attrs->op, "table_parameters", raw.table_parameters, n,
                           raw.num_parameters, "parameter of each table", raw.num_scalars,
                           &parameters));
  TF_RETURN_IF_ERROR(Split(attrs->op, "table_gradients", raw.table_gradients, n,
                           raw.num_table_gradients, "table gradient of each table",
                           raw.num_gradients, &gradients));
  for (size_t i = 0; i < n; ++i) {
    attrs->tables.push_back({raw.table_names[i], states[i], parameters[i], gradients[i]});
  }
  return CheckVariables(*attrs);
}

// Pools of each gradient of each segment: none at all where `gradient_pool` is empty.
absl::Status ReadPools(const RawAttrs& raw, size_t count, Attrs* attrs) {
  if (raw.gradient_pool.empty() && raw.pools_types.empty()) return absl::OkStatus();
  const char* op = attrs->op;
  if (attrs->dtype != tensorflow::DT_FLOAT && attrs->dtype != tensorflow::DT_DOUBLE) {
    return InvalidIn(op, "gradients of pooled ids must be float or double, but `dtype` is ",
                     DataTypeString(attrs->dtype), ".");
  }
  TF_RETURN_IF_ERROR(CheckLength(op, "gradient_pool", raw.gradient_pool.size(), count,
                                 "row gradient of each segment"));
  TF_RETURN_IF_ERROR(CheckLength(op, "gradient_combiner", raw.gradient_combiner.size(), count,
                                 "row gradient of each segment"));
  size_t at = 0;
  for (SegmentSpec& segment : attrs->segments) {
    for (GradientSpec& gradient : segment.gradients) {
      TF_RETURN_IF_ERROR(
          CheckIndex(op, "gradient_pool", at, raw.gradient_pool[at], kEvenPool,
                     raw.pools_types.size()));
      gradient.pool = static_cast<int>(raw.gradient_pool[at]);
      attrs->has_pooled |= gradient.IsPooled();
      const std::string& combiner = raw.gradient_combiner[at++];
      if (combiner == "mean") {
        gradient.combiner = Combiner::kMean;
      } else if (combiner == "sqrtn") {
        gradient.combiner = Combiner::kSqrtN;
      } else if (combiner != "sum") {
        return InvalidIn(op, "`gradient_combiner[", at - 1,
                         "]` must be 'sum', 'mean' or 'sqrtn', but it is '", combiner, "'.");
      }
    }
  }
  return absl::OkStatus();
}

// Weights of the ids of each pooled gradient: none at all where `gradient_weights` is empty.
absl::Status ReadWeights(const RawAttrs& raw, size_t count, Attrs* attrs) {
  const char* op = attrs->op;
  for (size_t i = 0; i < raw.weights_types.size(); ++i) {
    const tensorflow::DataType found = raw.weights_types[i];
    if (found == attrs->dtype || found == tensorflow::DT_BOOL) continue;
    return InvalidIn(op, "weights ", i, " must be ", DataTypeString(attrs->dtype),
                     ", as the gradients are, or bool, but they are ", DataTypeString(found), ".");
  }
  if (raw.gradient_weights.empty()) return absl::OkStatus();
  TF_RETURN_IF_ERROR(CheckLength(op, "gradient_weights", raw.gradient_weights.size(), count,
                                 "row gradient of each segment"));
  size_t at = 0;
  for (SegmentSpec& segment : attrs->segments) {
    for (GradientSpec& gradient : segment.gradients) {
      const int64_t weights = raw.gradient_weights[at];
      TF_RETURN_IF_ERROR(
          CheckIndex(op, "gradient_weights", at, weights, -1, raw.weights_types.size()));
      gradient.weights = static_cast<int>(weights);
      if (weights >= 0 && (!gradient.IsPooled() || gradient.combiner != Combiner::kSum)) {
        return InvalidIn(op, "`gradient_weights[", at, "]` must be -1 for a gradient that is not ",
                         "of pooled ids or whose combiner is not 'sum', but it is ", weights, ".");
      }
      const bool is_mask = weights >= 0 && raw.weights_types[weights] == tensorflow::DT_BOOL;
      if (is_mask && gradient.pool != kEvenPool) {
        return InvalidIn(op, "`gradient_weights[", at, "]` names weights of bool, which only a ",
                         "gradient of equally many ids for each row can have.");
      }
      ++at;
    }
  }
  return absl::OkStatus();
}

absl::Status ReadFills(const RawAttrs& raw, Attrs* attrs) {
  if (raw.segment_fill.empty()) return absl::OkStatus();
  const size_t n = attrs->segments.size();
  TF_RETURN_IF_ERROR(CheckLength(attrs->op, "segment_fill", raw.segment_fill.size(), n, "segment"));
  for (size_t i = 0; i < n; ++i) {
    SegmentSpec& segment = attrs->segments[i];
    segment.fill = std::max<int64_t>(raw.segment_fill[i], -1);
    bool pooled = !segment.gradients.empty() && segment.gradients[0].pool >= 0;
    for (const GradientSpec& gradient : segment.gradients) {
      pooled &= gradient.pool == segment.gradients[0].pool;
    }
    if (segment.fill < 0 || pooled) continue;
    return InvalidIn(attrs->op, "`segment_fill[", i, "]` is ", segment.fill,
                     ", but not all gradients of that segment take the same pool.");
  }
  return absl::OkStatus();
}

absl::Status ReadSegments(const RawAttrs& raw, Attrs* attrs) {
  const char* op = attrs->op;
  const size_t n = raw.segment_table.size();
  const size_t each = raw.num_row_gradients;
  std::vector<IdsSpec> ids;
  std::vector<Inputs> gradients;
  TF_RETURN_IF_ERROR(CheckIds(op, "segment", raw.segment, n, raw.ids_types.size(), &ids));
  TF_RETURN_IF_ERROR(Split(op, "segment_gradients", raw.segment_gradients, n, each,
                           "row gradient of each segment", raw.num_gradients, &gradients));
  TF_RETURN_IF_ERROR(CheckLength(op, "segment_first", raw.segment_first.size(), n * each,
                                 "row gradient of each segment"));
  TF_RETURN_IF_ERROR(CheckLength(op, "segment_span", raw.segment_span.size(), n * each,
                                 "row gradient of each segment"));
  TF_RETURN_IF_ERROR(CheckLength(op, "segment_pitch", raw.segment_pitch.size(), n * each,
                                 "row gradient of each segment"));
  for (size_t i = 0; i < n; ++i) {
    // Segments are grouped by table, in order.
    const int64_t lowest = i == 0 ? 0 : raw.segment_table[i - 1];
    TF_RETURN_IF_ERROR(
        CheckIndex(op, "segment_table", i, raw.segment_table[i], lowest, attrs->tables.size()));
    SegmentSpec segment{ids[i], static_cast<int>(raw.segment_table[i])};
    for (size_t g = 0; g < each; ++g) {
      const size_t at = i * each + g;
      const int64_t span = raw.segment_span[at];
      const int64_t pitch = raw.segment_pitch[at];
      const int64_t first = raw.segment_first[at];
      TF_RETURN_IF_ERROR(CheckIndex(op, "segment_pitch", at, pitch, 0, kMaxColumns));
      TF_RETURN_IF_ERROR(CheckIndex(op, "segment_span", at, span, 0, pitch + 1));
      TF_RETURN_IF_ERROR(CheckIndex(op, "segment_first", at, first, 0, pitch - span + 1));
      segment.gradients.push_back({gradients[i][g], first, span, pitch, kNoPool, Combiner::kSum, -1});
    }
    TableSpec& table = attrs->tables[segment.table];
    if (table.num_segments++ == 0) table.first_segment = i;
    attrs->segments.push_back(segment);
  }
  TF_RETURN_IF_ERROR(ReadPools(raw, n * each, attrs));
  TF_RETURN_IF_ERROR(ReadWeights(raw, n * each, attrs));
  return ReadFills(raw, attrs);
}

}  // namespace

absl::Status CheckAttrs(Extent extent, const RawAttrs& raw, Attrs* attrs) {
  attrs->op = extent == Extent::kAllRows ? "PackedDenseUpdate" : "PackedSparseUpdate";
  attrs->extent = extent;
  attrs->dtype = raw.dtype;
  attrs->num_variables = raw.num_variables;
  attrs->num_ids = raw.ids_types.size();
  attrs->num_gradients = raw.num_gradients;
  attrs->num_scalars = raw.num_scalars;
  attrs->num_pools = raw.pools_types.size();
  attrs->num_weights = raw.weights_types.size();
  attrs->drop_negative = raw.drop_negative;
  TF_RETURN_IF_ERROR(ReadProgram(raw, attrs));
  TF_RETURN_IF_ERROR(ReadTables(raw, attrs));
  return ReadSegments(raw, attrs);
}

}  // namespace packed_update
}  // namespace picasso
