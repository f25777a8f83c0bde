#include "picasso_tf/cc/grappler/gate.h"

#include <algorithm>
#include <iterator>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"

namespace picasso {
namespace {

// Ops that are of interest wherever they stand.
constexpr absl::string_view kLookups[] = {"ResourceGather"};

// Ops that are of interest when their first input comes from one of kTableReads. A gather from a computed tensor is
// not a lookup in a table.
constexpr absl::string_view kGathers[] = {"GatherV2"};
constexpr absl::string_view kTableReads[] = {"ReadVariableOp", "Identity", "Cast"};

// Calls that XLA compiles as a whole. A lookup in what they call cannot be reached, but the report should say so.
constexpr absl::string_view kCalls[] = {"PartitionedCall", "StatefulPartitionedCall"};
constexpr char kMustCompile[] = "_XlaMustCompile";

template <size_t N>
bool Contains(const absl::string_view (&table)[N], absl::string_view op) {
  return std::find(std::begin(table), std::end(table), op) != std::end(table);
}

// "scope/read:0" -> "scope/read"
absl::string_view NodeOfInput(absl::string_view input) { return input.substr(0, input.find(':')); }

bool IsCompiledCall(const tensorflow::NodeDef& node) {
  if (!Contains(kCalls, node.op())) return false;
  const auto attr = node.attr().find(kMustCompile);
  return attr != node.attr().end() && attr->second.b();
}

bool HasGather(const tensorflow::FunctionDefLibrary& library) {
  for (const tensorflow::FunctionDef& function : library.function()) {
    for (const tensorflow::NodeDef& node : function.node_def()) {
      if (Contains(kLookups, node.op()) || Contains(kGathers, node.op())) return true;
    }
  }
  return false;
}

}  // namespace

bool HasOpOfInterest(const tensorflow::GraphDef& graph) {
  bool compiled = false;
  absl::flat_hash_set<absl::string_view> gathered;
  for (const tensorflow::NodeDef& node : graph.node()) {
    if (Contains(kLookups, node.op())) return true;
    compiled |= IsCompiledCall(node);
    if (Contains(kGathers, node.op()) && node.input_size() > 0) gathered.insert(NodeOfInput(node.input(0)));
  }
  if (compiled && HasGather(graph.library())) return true;
  if (gathered.empty()) return false;
  return std::any_of(graph.node().begin(), graph.node().end(), [&](const tensorflow::NodeDef& node) {
    return Contains(kTableReads, node.op()) && gathered.contains(node.name());  // the op first: names cost a hash
  });
}

}  // namespace picasso
