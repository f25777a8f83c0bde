// The optimizer that TensorFlow calls for every graph. It decides nothing: graphs go to Python and come back.

#ifndef PICASSO_TF_CC_GRAPPLER_PLUGIN_OPTIMIZER_H_
#define PICASSO_TF_CC_GRAPPLER_PLUGIN_OPTIMIZER_H_

#include <cstdint>
#include <string>
#include <utility>

#include "tensorflow/core/grappler/optimizers/custom_graph_optimizer.h"

namespace picasso {

class PicassoGraphOptimizer : public tensorflow::grappler::CustomGraphOptimizer {
 public:
  explicit PicassoGraphOptimizer(std::string device_type) : device_type_(std::move(device_type)) {}

  absl::Status Init(const tensorflow::RewriterConfig_CustomGraphOptimizer* config) override {
    return absl::OkStatus();
  }
  std::string name() const override { return "picasso"; }

  // Passes read function bodies, so the stub library that other optimizers get would not do.
  bool UsesFunctionLibrary() const override { return true; }

  // TensorFlow makes one optimizer per graph and calls it once in each of its two rounds; the graph is rewritten in the
  // last. In between, TensorFlow's arithmetic optimizer sorts the inputs of sums by name: a rewrite in the first round
  // would change names, and with them the order of additions and the last bits of results.
  //
  // Returns Aborted, which TensorFlow takes for "nothing to do" and passes over in silence, whenever the graph is to
  // run as it is: no callback, no op of interest, no change, or any failure.
  absl::Status Optimize(tensorflow::grappler::Cluster* cluster, const tensorflow::grappler::GrapplerItem& item,
                        tensorflow::GraphDef* optimized_graph) override;

 private:
  const std::string device_type_;
  int rounds_ = 0;
};

// See picasso_set_max_graph_bytes.
void SetMaxGraphBytes(int64_t bytes);

}  // namespace picasso

#endif  // PICASSO_TF_CC_GRAPPLER_PLUGIN_OPTIMIZER_H_
