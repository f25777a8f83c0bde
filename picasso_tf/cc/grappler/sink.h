#ifndef PICASSO_TF_CC_GRAPPLER_SINK_H_
#define PICASSO_TF_CC_GRAPPLER_SINK_H_

#include <string>

// Declared in bridge.h, where Python's side sees it as an opaque pointer.
struct PicassoSink {
  std::string bytes;
};

#endif  // PICASSO_TF_CC_GRAPPLER_SINK_H_
