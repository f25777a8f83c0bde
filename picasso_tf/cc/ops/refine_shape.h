// A step that shape functions share.

#ifndef PICASSO_TF_CC_OPS_REFINE_SHAPE_H_
#define PICASSO_TF_CC_OPS_REFINE_SHAPE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace picasso {

// `shape` with its one unknown dimension computed, if the elements are known.
inline absl::Status RefineShape(tensorflow::shape_inference::InferenceContext* c,
                                tensorflow::shape_inference::DimensionHandle elements,
                                tensorflow::shape_inference::ShapeHandle* shape) {
  int64_t known = 1;
  int open = -1;
  for (int d = 0; d < c->Rank(*shape); ++d) {
    const int64_t size = c->Value(c->Dim(*shape, d));
    if (size < 0) {
      open = d;
    } else {
      known *= size;
    }
  }
  if (open < 0 || known == 0 || !c->ValueKnown(elements)) return absl::OkStatus();
  tensorflow::shape_inference::DimensionHandle size;
  TF_RETURN_IF_ERROR(c->Divide(elements, known, /*evenly_divisible=*/true, &size));
  return c->ReplaceDim(*shape, open, size, shape);
}

}  // namespace picasso

#endif  // PICASSO_TF_CC_OPS_REFINE_SHAPE_H_
