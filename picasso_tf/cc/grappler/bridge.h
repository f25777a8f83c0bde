// The C interface between the library and Python: bytes in, bytes out.
//
// Python calls these functions, and sets the callback, through ctypes. ctypes takes the interpreter lock around the
// callback by itself, so the library needs no Python.h and one build serves every Python version.

#ifndef PICASSO_TF_CC_GRAPPLER_BRIDGE_H_
#define PICASSO_TF_CC_GRAPPLER_BRIDGE_H_

#include <cstddef>
#include <cstdint>

#define PICASSO_EXPORT __attribute__((visibility("default")))

extern "C" {

// One graph that TensorFlow is about to run. Lists of names are joined by newlines. Every pointer is valid only during
// the call. `picasso_tf/bridge/library.py` declares the same struct: change both.
struct PicassoRequest {
  const char* graph;  // a serialised GraphDef, with `_output_shapes` on its nodes; null when it is above the limit
  size_t graph_size;  // in bytes, in both cases
  const char* id;           // what TensorFlow calls the graph: the function's name, or "tf_graph" in a Session
  const char* device_type;  // "CPU" or "GPU": the registration that this call came through
  const char* feeds;
  const char* fetches;
  const char* preserve;  // nodes that must keep their name and outputs; holds the feeds and fetches too
  int allow_pruning;     // 0: stateful and dataset nodes stay even when nothing uses them
  int allow_non_differentiable;  // 0: a gradient is taken of this graph later, so only ops with a gradient may come in
};

// What a PicassoCallback returns.
enum PicassoResult {
  kPicassoUnchanged = 0,
  kPicassoChanged = 1,  // the new graph was handed over with picasso_emit
  kPicassoFailed = 2,   // the caller has already been told why
  kPicassoSignal = 16,  // plus a signal's number: failed because of that signal, which is to be raised again
};

// Receives the bytes that a call produces.
struct PicassoSink;

typedef int (*PicassoCallback)(const PicassoRequest* request, PicassoSink* sink);

// The version of TensorFlow whose headers the library was compiled with.
PICASSO_EXPORT const char* picasso_built_for_tensorflow();

// Registers the optimizer for the device types CPU and GPU. Returns 0, or 1 when another plugin already holds one of
// them: TensorFlow allows one per device type and would end the process. Later calls return what the first returned.
PICASSO_EXPORT int picasso_register();

// Sets the function that rewrites graphs; null turns rewriting off. It may be called from many threads at once.
PICASSO_EXPORT void picasso_set_callback(PicassoCallback callback);

// Hands `size` bytes over; the last call counts. To be called inside a PicassoCallback or with a sink of
// picasso_new_sink.
PICASSO_EXPORT void picasso_emit(PicassoSink* sink, const char* data, size_t size);

// A sink of one's own, for picasso_annotate_shapes. The bytes live until the sink is freed.
PICASSO_EXPORT PicassoSink* picasso_new_sink();
PICASSO_EXPORT const char* picasso_sink_data(const PicassoSink* sink);
PICASSO_EXPORT size_t picasso_sink_size(const PicassoSink* sink);
PICASSO_EXPORT void picasso_free_sink(PicassoSink* sink);

// Lets no new call in and waits, at most `timeout_ms`, until the running ones have left the callback. Returns how many
// are still inside. For the end of the interpreter; there is no way back.
PICASSO_EXPORT int picasso_close(int timeout_ms);

// To be called in the child after a fork: the calls of the parent's other threads do not exist there.
PICASSO_EXPORT void picasso_after_fork();

// Graphs above this many serialised bytes run unchanged; the callback is only told their size. The default is the limit of protobuf; tests lower it.
PICASSO_EXPORT void picasso_set_max_graph_bytes(int64_t bytes);

// Writes `graph` with inferred `_output_shapes` to `sink`. Names are joined by newlines. Returns kPicassoChanged,
// kPicassoUnchanged when shapes could not be inferred (nothing is written), kPicassoFailed when `graph` is no GraphDef.
PICASSO_EXPORT int picasso_annotate_shapes(const char* graph, size_t graph_size, const char* feeds,
                                           const char* fetches, PicassoSink* sink);

}  // extern "C"

#endif  // PICASSO_TF_CC_GRAPPLER_BRIDGE_H_
