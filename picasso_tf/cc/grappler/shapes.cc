#include "picasso_tf/cc/grappler/shapes.h"

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/grappler/costs/graph_properties.h"

namespace picasso {
namespace {

constexpr char kOutputShapes[] = "_output_shapes";

}  // namespace

bool AnnotateShapes(const tensorflow::grappler::GrapplerItem& item, tensorflow::GraphDef* annotated) {
  tensorflow::grappler::GraphProperties properties(item);
  // A fed tensor may have another shape than its node says, and nothing may be executed: every shape must hold.
  const absl::Status inferred =
      properties.InferStatically(/*assume_valid_feeds=*/false, /*aggressive_shape_inference=*/false,
                                 /*include_tensor_values=*/false);
  return inferred.ok() && properties.AnnotateOutputShapes(annotated).ok();
}

void RestoreShapeAnnotations(const tensorflow::GraphDef& original, tensorflow::GraphDef* rewritten) {
  absl::flat_hash_map<absl::string_view, const tensorflow::AttrValue*> before;
  for (const tensorflow::NodeDef& node : original.node()) {
    const auto attr = node.attr().find(kOutputShapes);
    if (attr != node.attr().end()) before[node.name()] = &attr->second;
  }
  for (tensorflow::NodeDef& node : *rewritten->mutable_node()) {
    const auto known = before.find(node.name());
    if (known != before.end()) {
      (*node.mutable_attr())[kOutputShapes] = *known->second;
    } else {
      node.mutable_attr()->erase(kOutputShapes);
    }
  }
}

}  // namespace picasso
