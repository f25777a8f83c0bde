// The plugin's gate, callable from Python: `benchmarks.pass_time` compiles this file with gate.cc and loads it.

#include <chrono>
#include <cstddef>

#include "picasso_tf/cc/grappler/gate.h"

// Asks the gate `repeats` times about a serialised GraphDef. Stores whether the graph has an op of interest, and returns
// the seconds that the fastest answer took, or -1 when the bytes are no GraphDef.
extern "C" double picasso_gate_seconds(const char* graph, size_t size, int repeats, int* has_op_of_interest) {
  tensorflow::GraphDef graph_def;
  if (!graph_def.ParseFromArray(graph, static_cast<int>(size))) return -1;
  double fastest = 0;
  for (int i = 0; i < repeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    *has_op_of_interest = picasso::HasOpOfInterest(graph_def);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    if (i == 0 || taken.count() < fastest) fastest = taken.count();
  }
  return fastest;
}
