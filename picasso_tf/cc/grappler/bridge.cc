#include "picasso_tf/cc/grappler/bridge.h"

#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "picasso_tf/cc/grappler/callback_slot.h"
#include "picasso_tf/cc/grappler/plugin_optimizer.h"
#include "picasso_tf/cc/grappler/shapes.h"
#include "picasso_tf/cc/grappler/sink.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/grappler/grappler_item.h"
#include "tensorflow/core/grappler/optimizers/custom_graph_optimizer_registry.h"

namespace {

using picasso::CallbackSlot;
using tensorflow::grappler::PluginGraphOptimizerRegistry;

// Read as plain bytes, before the library is loaded: loading one that was built against another TensorFlow can crash.
constexpr char kBuiltFor[] = "picasso_built_for_tensorflow=" PICASSO_TENSORFLOW_VERSION;
constexpr size_t kBuiltForPrefix = sizeof("picasso_built_for_tensorflow=") - 1;

void Register(const std::string& device_type) {
  // The default constructor leaves `disable_model_pruning` unset. An empty map switches no other optimizer off.
  tensorflow::grappler::ConfigList configs(/*disable_model_pruning=*/false, /*config=*/{});
  PluginGraphOptimizerRegistry::RegisterPluginOptimizerOrDie(
      [device_type]() { return new picasso::PicassoGraphOptimizer(device_type); }, device_type, configs);
}

std::vector<std::string> SplitNames(const char* names) { return absl::StrSplit(names, '\n', absl::SkipEmpty()); }

int AnnotateShapes(const char* graph, size_t graph_size, const char* feeds, const char* fetches, PicassoSink* sink) {
  tensorflow::grappler::GrapplerItem item;
  if (!item.graph.ParseFromString(std::string(graph, graph_size))) return kPicassoFailed;
  for (std::string& name : SplitNames(feeds)) item.feed.emplace_back(std::move(name), tensorflow::Tensor());
  item.fetch = SplitNames(fetches);
  tensorflow::GraphDef annotated;
  if (!picasso::AnnotateShapes(item, &annotated) || !annotated.SerializeToString(&sink->bytes)) {
    return kPicassoUnchanged;
  }
  return kPicassoChanged;
}

}  // namespace

const char* picasso_built_for_tensorflow() { return kBuiltFor + kBuiltForPrefix; }

int picasso_register() {
  static std::once_flag once;
  static bool taken = false;
  std::call_once(once, [] {
    taken = !PluginGraphOptimizerRegistry::CreateOptimizers({"CPU", "GPU"}).empty();
    if (taken) return;
    Register("CPU");
    Register("GPU");
  });
  return taken ? 1 : 0;
}

void picasso_set_callback(PicassoCallback callback) { CallbackSlot::Global().Set(callback); }

void picasso_emit(PicassoSink* sink, const char* data, size_t size) { sink->bytes.assign(data, size); }

PicassoSink* picasso_new_sink() { return new PicassoSink; }
const char* picasso_sink_data(const PicassoSink* sink) { return sink->bytes.data(); }
size_t picasso_sink_size(const PicassoSink* sink) { return sink->bytes.size(); }
void picasso_free_sink(PicassoSink* sink) { delete sink; }

int picasso_close(int timeout_ms) { return CallbackSlot::Global().Close(timeout_ms); }

void picasso_after_fork() { CallbackSlot::Global().ForgetCalls(); }

void picasso_set_max_graph_bytes(int64_t bytes) { picasso::SetMaxGraphBytes(bytes); }

int picasso_annotate_shapes(const char* graph, size_t graph_size, const char* feeds, const char* fetches,
                            PicassoSink* sink) {
  try {
    return AnnotateShapes(graph, graph_size, feeds, fetches, sink);
  } catch (...) {
    return kPicassoFailed;
  }
}
