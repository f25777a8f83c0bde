// The cheap question that is asked of every graph: can it hold anything that the passes work on?

#ifndef PICASSO_TF_CC_GRAPPLER_GATE_H_
#define PICASSO_TF_CC_GRAPPLER_GATE_H_

#include "tensorflow/core/framework/graph.pb.h"

namespace picasso {

// Whether the graph looks rows up in a variable. Two linear passes that copy nothing: 25,000 nodes take well under a
// millisecond, so a graph without embeddings pays nothing for the plugin.
bool HasOpOfInterest(const tensorflow::GraphDef& graph);

}  // namespace picasso

#endif  // PICASSO_TF_CC_GRAPPLER_GATE_H_
