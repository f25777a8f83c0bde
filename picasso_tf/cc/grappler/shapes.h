// Inferred shapes as `_output_shapes` attributes: on the way to Python, and off again on the way back.

#ifndef PICASSO_TF_CC_GRAPPLER_SHAPES_H_
#define PICASSO_TF_CC_GRAPPLER_SHAPES_H_

#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/grappler/grappler_item.h"

namespace picasso {

// Stores `item.graph` with the inferred shapes of all outputs in `annotated`. Returns false, with `annotated`
// undefined, when TensorFlow cannot infer shapes for the graph.
bool AnnotateShapes(const tensorflow::grappler::GrapplerItem& item, tensorflow::GraphDef* annotated);

// Gives every node of `rewritten` the `_output_shapes` that the node of the same name has in `original`, or none. An
// annotation that outlives its graph would be trusted later, after other optimizers changed what it describes.
void RestoreShapeAnnotations(const tensorflow::GraphDef& original, tensorflow::GraphDef* rewritten);

}  // namespace picasso

#endif  // PICASSO_TF_CC_GRAPPLER_SHAPES_H_
