#include "picasso_tf/cc/grappler/plugin_optimizer.h"

#include <cxxabi.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <limits>
#include <vector>

#include "absl/strings/str_join.h"
#include "picasso_tf/cc/grappler/bridge.h"
#include "picasso_tf/cc/grappler/callback_slot.h"
#include "picasso_tf/cc/grappler/gate.h"
#include "picasso_tf/cc/grappler/shapes.h"
#include "picasso_tf/cc/grappler/sink.h"
#include "tensorflow/core/platform/logging.h"

namespace picasso {
namespace {

using tensorflow::GraphDef;
using tensorflow::grappler::GrapplerItem;

// TensorFlow's default, which tf.config does not let a user change. Where a ConfigProto asks for a single round, graphs
// run as they are.
constexpr int kRounds = 2;

std::atomic<int64_t> max_graph_bytes{std::numeric_limits<int32_t>::max()};

absl::Status NothingToDo() { return absl::AbortedError("Nothing to do."); }

std::string FeedNames(const GrapplerItem& item) {
  return absl::StrJoin(item.feed, "\n", [](std::string* out, const auto& feed) { out->append(feed.first); });
}

std::string NodesToPreserve(const GrapplerItem& item) {
  const auto unordered = item.NodesToPreserve();
  std::vector<std::string> names(unordered.begin(), unordered.end());
  std::sort(names.begin(), names.end());  // same graph in, same request out
  return absl::StrJoin(names, "\n");
}

// Serialises the graph with its shapes. Returns false when it is too large for a protobuf message.
bool SerializeWithShapes(const GrapplerItem& item, std::string* bytes) {
  const int64_t limit = max_graph_bytes;
  if (static_cast<int64_t>(item.graph.ByteSizeLong()) > limit) return false;
  GraphDef annotated;
  const GraphDef* graph = AnnotateShapes(item, &annotated) ? &annotated : &item.graph;
  if (static_cast<int64_t>(graph->ByteSizeLong()) > limit) graph = &item.graph;  // shapes are no reason to give up
  return graph->SerializeToString(bytes);
}

// A GraphDef without nodes is what protobuf makes of an empty answer: no pass may produce it.
bool ParseGraph(const std::string& bytes, GraphDef* graph) {
  return bytes.size() <= std::numeric_limits<int32_t>::max() &&
         graph->ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) && graph->node_size() > 0;
}

absl::Status OptimizeWithPython(const GrapplerItem& item, const std::string& device_type, GraphDef* optimized_graph) {
  if (!CallbackSlot::Global().IsOpen() || !HasOpOfInterest(item.graph)) return NothingToDo();

  std::string graph;
  const bool fits = SerializeWithShapes(item, &graph);
  const std::string feeds = FeedNames(item);
  const std::string fetches = absl::StrJoin(item.fetch, "\n");
  const std::string preserve = NodesToPreserve(item);
  const PicassoRequest request{
      .graph = fits ? graph.data() : nullptr,
      .graph_size = fits ? graph.size() : item.graph.ByteSizeLong(),
      .id = item.id.c_str(),
      .device_type = device_type.c_str(),
      .feeds = feeds.c_str(),
      .fetches = fetches.c_str(),
      .preserve = preserve.c_str(),
      .allow_pruning = item.optimization_options().allow_pruning_stateful_and_dataset_ops,
      .allow_non_differentiable = item.optimization_options().allow_non_differentiable_rewrites,
  };

  PicassoSink sink;
  {
    const CallbackSlot::Call call(CallbackSlot::Global());
    if (call.callback() == nullptr) return NothingToDo();
    const int result = call.callback()(&request, &sink);
    if (result >= kPicassoSignal) raise(result - kPicassoSignal);  // Python meets it again once it is back in charge
    if (result != kPicassoChanged) return NothingToDo();
  }
  if (!ParseGraph(sink.bytes, optimized_graph)) {
    LOG_FIRST_N(WARNING, 1) << "picasso-tf leaves graph '" << item.id
                            << "' as it is: the rewritten graph cannot be read back.";
    return NothingToDo();
  }
  RestoreShapeAnnotations(item.graph, optimized_graph);
  return absl::OkStatus();
}

}  // namespace

absl::Status PicassoGraphOptimizer::Optimize(tensorflow::grappler::Cluster* cluster, const GrapplerItem& item,
                                             GraphDef* optimized_graph) {
  if (++rounds_ < kRounds) return NothingToDo();
  try {
    return OptimizeWithPython(item, device_type_, optimized_graph);
  } catch (const abi::__forced_unwind&) {
    throw;  // the interpreter ended under this thread and takes it down; swallowing that would abort the process
  } catch (...) {
    LOG_FIRST_N(WARNING, 1) << "picasso-tf leaves graph '" << item.id << "' as it is: a C++ exception was thrown.";
    return NothingToDo();
  }
}

void SetMaxGraphBytes(int64_t bytes) { max_graph_bytes = bytes; }

}  // namespace picasso
