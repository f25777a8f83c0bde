#include "picasso_tf/cc/kernels/packed_lookup_attrs.h"

namespace picasso {
namespace packed_lookup {
namespace {

absl::Status ReadLookups(const RawAttrs& raw, Attrs* attrs) {
  const size_t n = raw.lookup_names.size();
  TF_RETURN_IF_ERROR(CheckLength(kOp, "lookup_table", raw.lookup_table.size(), n, "lookup"));
  std::vector<IdsSpec> ids;
  TF_RETURN_IF_ERROR(CheckIds(kOp, "lookup", raw.lookup, n, raw.ids_types.size(), &ids));
  for (size_t i = 0; i < n; ++i) {
    TF_RETURN_IF_ERROR(CheckIndex(kOp, "lookup_table", i, raw.lookup_table[i], 0, raw.num_tables));
    attrs->lookups.push_back({ids[i], raw.lookup_names[i], static_cast<int>(raw.lookup_table[i]),
                              ShardsSpec(), /*max_norm=*/0, /*read=*/false});
  }
  std::vector<ShardsSpec> shards;
  TF_RETURN_IF_ERROR(CheckShards(kOp, raw.shards, raw.lookup_table, raw.num_tables, &shards));
  const bool can_clip = raw.dtype == tensorflow::DT_FLOAT || raw.dtype == tensorflow::DT_DOUBLE;
  TF_RETURN_IF_ERROR(CheckMaxNorms(kOp, raw.lookup_max_norm, n, can_clip));
  for (size_t i = 0; i < n; ++i) {
    attrs->lookups[i].shards = shards[i];
    if (!raw.lookup_max_norm.empty()) attrs->lookups[i].max_norm = raw.lookup_max_norm[i];
  }
  return absl::OkStatus();
}

absl::Status ReadShapes(const RawAttrs& raw, Attrs* attrs) {
  TF_RETURN_IF_ERROR(
      CheckLength(kOp, "shape_lookup", raw.shape_lookup.size(), raw.num_shapes, "shape"));
  TF_RETURN_IF_ERROR(
      CheckLength(kOp, "shape_templates", raw.shape_templates.size(), raw.num_shapes, "shape"));
  for (int i = 0; i < raw.num_shapes; ++i) {
    TF_RETURN_IF_ERROR(
        CheckIndex(kOp, "shape_lookup", i, raw.shape_lookup[i], 0, attrs->lookups.size()));
    TF_RETURN_IF_ERROR(CheckTemplate(kOp, "shape_templates", i, raw.shape_templates[i]));
    attrs->shapes.push_back({static_cast<int>(raw.shape_lookup[i]), raw.shape_templates[i]});
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckAttrs(const RawAttrs& raw, Attrs* attrs) {
  attrs->dtype = raw.dtype;
  attrs->num_tables = raw.num_tables;
  attrs->num_ids = raw.ids_types.size();
  attrs->num_dense = raw.outputs.num_dense;
  TF_RETURN_IF_ERROR(ReadLookups(raw, attrs));
  TF_RETURN_IF_ERROR(CheckOutputs(kOp, raw.outputs, attrs->lookups.size(), &attrs->outputs));
  for (const int64_t source : raw.outputs.piece_source) {
    if (source >= 0) attrs->lookups[source].read = true;
  }
  return ReadShapes(raw, attrs);
}

}  // namespace packed_lookup
}  // namespace picasso
