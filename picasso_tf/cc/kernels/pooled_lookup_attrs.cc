#include "picasso_tf/cc/kernels/pooled_lookup_attrs.h"

#include <limits>
#include <utility>

#include "absl/strings/string_view.h"

namespace picasso {
namespace pooled_lookup {
namespace {

// The op definition admits no other word.
Combiner CombinerOf(absl::string_view word) {
  if (word == "mean") return Combiner::kMean;
  return word == "sqrtn" ? Combiner::kSqrtN : Combiner::kSum;
}

absl::Status CheckLengths(const RawAttrs& raw) {
  const size_t n = raw.lookup_names.size();
  for (const auto& [name, found] :
       {std::make_pair("lookup_table", raw.lookup_table.size()),
        {"lookup_segments", raw.lookup_segments.size()},
        {"lookup_rows", raw.lookup_rows.size()},
        {"lookup_combiner", raw.lookup_combiner.size()},
        {"lookup_drop", raw.lookup_drop.size()},
        {"lookup_fill", raw.lookup_fill.size()}}) {
    TF_RETURN_IF_ERROR(CheckLength(kOp, name, found, n, "lookup"));
  }
  for (const auto& [name, found] :
       {std::make_pair("lookup_sort", raw.lookup_sort.size()),
        {"lookup_weights", raw.lookup_weights.size()},
        {"lookup_drop_weightless", raw.lookup_drop_weightless.size()},
        {"lookup_in_turn", raw.lookup_in_turn.size()}}) {
    if (found > 0) TF_RETURN_IF_ERROR(CheckLength(kOp, name, found, n, "lookup"));
  }
  return CheckLength(kOp, "segments_are_splits", raw.segments_are_splits.size(),
                     raw.segments_types.size(), "segments input");
}

// Fills lists that were left empty: all ids are read as they are.
RawIds Completed(RawIds ids) {
  const size_t n = ids.ids.size();
  if (ids.column.empty()) ids.column.assign(n, -1);
  if (ids.columns.empty()) ids.columns.assign(n, 0);
  if (ids.wrap.empty()) ids.wrap.assign(n, 0);
  if (ids.narrow.empty()) ids.narrow.assign(n, false);
  return ids;
}

// Weights have the type that rows are computed in, or are a mask.
absl::Status CheckWeightsTypes(const RawAttrs& raw) {
  const bool is_double = raw.dtype == tensorflow::DT_DOUBLE;
  const tensorflow::DataType wanted = is_double ? tensorflow::DT_DOUBLE : tensorflow::DT_FLOAT;
  for (size_t i = 0; i < raw.weights_types.size(); ++i) {
    if (raw.weights_types[i] == wanted || raw.weights_types[i] == tensorflow::DT_BOOL) continue;
    return Invalid("weights of ", DataTypeString(raw.dtype), " rows must be ",
                   DataTypeString(wanted), " or bool, but input ", i, " is ",
                   DataTypeString(raw.weights_types[i]), ".");
  }
  return absl::OkStatus();
}

// What only lookups of a matrix of ids may have, and what they may not have.
absl::Status CheckForm(const RawAttrs& raw, size_t i, const LookupSpec& lookup) {
  const auto refuse = [i](absl::string_view name, absl::string_view what) {
    return Invalid("`", name, "[", i, "]` ", what);
  };
  const bool is_masked =
      lookup.weights >= 0 && raw.weights_types[lookup.weights] == tensorflow::DT_BOOL;
  if (lookup.in_turn && (lookup.combiner != Combiner::kSum || lookup.fill >= 0)) {
    return refuse("lookup_in_turn", "must be false for a lookup that fills rows or divides them.");
  }
  if (!lookup.HasMatrix()) {
    const IdsSpec& ids = lookup.ids;
    if (is_masked) return refuse("lookup_weights", "is a mask, but its ids are no matrix.");
    if (ids.column == -1 && ids.wrap == 0 && !ids.narrow) return absl::OkStatus();
    return refuse("lookup_column", "must be -1, and its ids must be read as they are, for "
                                   "they are no matrix.");
  }
  const bool is_float =
      raw.dtype == tensorflow::DT_FLOAT || raw.dtype == tensorflow::DT_DOUBLE;
  if (!is_float) return refuse("lookup_segments", "may be -1 for float and double rows only.");
  if (lookup.rows >= 0) return refuse("lookup_rows", "must be -1, for its ids are a matrix.");
  const bool is_plain = !lookup.drop_negative && !lookup.drop_weightless && lookup.fill < 0 &&
                        !lookup.sort && !lookup.in_turn;
  const bool weights_fit = lookup.weights < 0 || is_masked || lookup.combiner == Combiner::kSum;
  if (is_plain && weights_fit && lookup.combiner != Combiner::kSqrtN) return absl::OkStatus();
  return refuse("lookup_segments",
                "may be -1 only for a sum, or a mean without weights, of all ids of each row.");
}

absl::Status ReadLookup(const RawAttrs& raw, const IdsSpec& ids, size_t i, LookupSpec* lookup) {
  constexpr int64_t kMaxFill = std::numeric_limits<int64_t>::max();
  const auto check = [i](absl::string_view name, int64_t found, int64_t begin, int64_t end) {
    return CheckIndex(kOp, name, i, found, begin, end);
  };
  TF_RETURN_IF_ERROR(check("lookup_table", raw.lookup_table[i], 0, raw.num_tables));
  TF_RETURN_IF_ERROR(
      check("lookup_segments", raw.lookup_segments[i], -1, raw.segments_types.size()));
  TF_RETURN_IF_ERROR(check("lookup_rows", raw.lookup_rows[i], -1, raw.rows_types.size()));
  TF_RETURN_IF_ERROR(check("lookup_fill", raw.lookup_fill[i], -1, kMaxFill));
  const int64_t weights = raw.lookup_weights.empty() ? -1 : raw.lookup_weights[i];
  const bool drop_weightless = !raw.lookup_drop_weightless.empty() && raw.lookup_drop_weightless[i];
  TF_RETURN_IF_ERROR(check("lookup_weights", weights, -1, raw.weights_types.size()));
  if (drop_weightless && weights < 0) {
    return Invalid("`lookup_drop_weightless[", i, "]` must be false for a lookup without weights.");
  }
  const int64_t segments = raw.lookup_segments[i];
  if (raw.lookup_rows[i] >= 0 && segments >= 0 && raw.segments_are_splits[segments]) {
    return Invalid("`lookup_rows[", i, "]` must be -1, for row splits tell the number of rows, ",
                   "but it is ", raw.lookup_rows[i], ".");
  }
  *lookup = {raw.lookup_names[i],
             static_cast<int>(raw.lookup_table[i]),
             ids,
             static_cast<int>(segments),
             static_cast<int>(raw.lookup_rows[i]),
             CombinerOf(raw.lookup_combiner[i]),
             static_cast<bool>(raw.lookup_drop[i]),
             raw.lookup_fill[i],
             !raw.lookup_sort.empty() && raw.lookup_sort[i],
             static_cast<int>(weights),
             drop_weightless,
             !raw.lookup_in_turn.empty() && raw.lookup_in_turn[i],
             /*read=*/false,
             ShardsSpec(),
             raw.lookup_max_norm.empty() ? 0 : raw.lookup_max_norm[i]};
  return CheckForm(raw, i, *lookup);
}

}  // namespace

absl::Status CheckAttrs(const RawAttrs& raw, Attrs* attrs) {
  attrs->dtype = raw.dtype;
  attrs->num_tables = raw.num_tables;
  attrs->num_ids = raw.ids_types.size();
  attrs->num_rows = raw.rows_types.size();
  attrs->num_dense = raw.outputs.num_dense;
  attrs->num_weights = raw.weights_types.size();
  TF_RETURN_IF_ERROR(CheckLengths(raw));
  TF_RETURN_IF_ERROR(CheckWeightsTypes(raw));
  const bool can_clip = raw.dtype == tensorflow::DT_FLOAT || raw.dtype == tensorflow::DT_DOUBLE;
  TF_RETURN_IF_ERROR(CheckMaxNorms(kOp, raw.lookup_max_norm, raw.lookup_names.size(), can_clip));
  attrs->segments_are_splits = raw.segments_are_splits;
  attrs->lookups.resize(raw.lookup_names.size());
  std::vector<IdsSpec> ids;
  TF_RETURN_IF_ERROR(CheckIds(kOp, "lookup", Completed(raw.ids), attrs->lookups.size(),
                              raw.ids_types.size(), &ids));
  for (size_t i = 0; i < attrs->lookups.size(); ++i) {
    TF_RETURN_IF_ERROR(ReadLookup(raw, ids[i], i, &attrs->lookups[i]));
  }
  std::vector<ShardsSpec> shards;
  TF_RETURN_IF_ERROR(CheckShards(kOp, raw.shards, raw.lookup_table, raw.num_tables, &shards));
  for (size_t i = 0; i < shards.size(); ++i) attrs->lookups[i].shards = shards[i];
  TF_RETURN_IF_ERROR(CheckOutputs(kOp, raw.outputs, attrs->lookups.size(), &attrs->outputs));
  for (const int64_t source : raw.outputs.piece_source) {
    if (source >= 0) attrs->lookups[source].read = true;
  }
  return absl::OkStatus();
}

}  // namespace pooled_lookup
}  // namespace picasso
