#include "picasso_tf/cc/grappler/gate.h"

#include <algorithm>
#include <iterator>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"

namespace picasso {
namespace {

// Ops that are of interest wherever they stand.
constexpr absl::string_view kTableOps[] = {
    "ResourceGather",
    "ResourceScatterAdd",
    "ResourceScatterNdAdd",
    "ResourceScatterNdSub",
    "ResourceScatterNdUpdate",
    "ResourceScatterSub",
    "ResourceScatterUpdate",
    "ResourceSparseApplyAdadelta",
    "ResourceSparseApplyAdagrad",
    "ResourceSparseApplyAdagradV2",
    "ResourceSparseApplyCenteredRMSProp",
    "ResourceSparseApplyFtrl",
    "ResourceSparseApplyKerasMomentum",
    "ResourceSparseApplyMomentum",
    "ResourceSparseApplyRMSProp",
};

// Ops that are of interest when their first input comes from one of kTableReads. A gather from a computed tensor is
// not a lookup in a table.
constexpr absl::string_view kGathers[] = {"GatherV2"};
constexpr absl::string_view kTableReads[] = {"ReadVariableOp", "Identity", "Cast"};

// Calls that XLA compiles as a whole. They are opened when what they call looks up rows of variables or hashed keys.
constexpr absl::string_view kCalls[] = {"PartitionedCall", "StatefulPartitionedCall"};
constexpr absl::string_view kHashLookups[] = {"LookupTableFind", "LookupTableFindV2"};
constexpr char kMustCompile[] = "_XlaMustCompile";

// On a NoOp of a function that was opened so: a part of it is to go back to XLA.
constexpr char kOpened[] = "_picasso_opened";

template <size_t N>
bool Contains(const absl::string_view (&table)[N], absl::string_view op) {
  return std::find(std::begin(table), std::end(table), op) != std::end(table);
}

// "scope/read:0" -> "scope/read"
absl::string_view NodeOfInput(absl::string_view input) { return input.substr(0, input.find(':')); }

bool HasFlag(const tensorflow::NodeDef& node, const char* name) {
  const auto attr = node.attr().find(name);
  return attr != node.attr().end() && attr->second.b();
}

bool HasLookup(const tensorflow::FunctionDefLibrary& library) {
  for (const tensorflow::FunctionDef& function : library.function()) {
    for (const tensorflow::NodeDef& node : function.node_def()) {
      if (Contains(kTableOps, node.op()) || Contains(kGathers, node.op()) || Contains(kHashLookups, node.op())) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace

bool HasOpOfInterest(const tensorflow::GraphDef& graph) {
  bool compiled = false;
  absl::flat_hash_set<absl::string_view> gathered;
  for (const tensorflow::NodeDef& node : graph.node()) {
    if (Contains(kTableOps, node.op())) return true;
    if (node.op() == "NoOp" && HasFlag(node, kOpened)) return true;
    compiled |= Contains(kCalls, node.op()) && HasFlag(node, kMustCompile);
    if (Contains(kGathers, node.op()) && node.input_size() > 0) gathered.insert(NodeOfInput(node.input(0)));
  }
  if (compiled && HasLookup(graph.library())) return true;
  if (gathered.empty()) return false;
  return std::any_of(graph.node().begin(), graph.node().end(), [&](const tensorflow::NodeDef& node) {
    return Contains(kTableReads, node.op()) && gathered.contains(node.name());  // the op first: names cost a hash
  });
}

}  // namespace picasso
