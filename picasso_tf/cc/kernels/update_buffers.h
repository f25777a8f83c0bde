// The memory that the CPU kernel computes in: buffers of one tile each, and the
// numbers that all rows of a table share.

#ifndef PICASSO_TF_CC_KERNELS_UPDATE_BUFFERS_H_
#define PICASSO_TF_CC_KERNELS_UPDATE_BUFFERS_H_

#include <memory>
#include <vector>

#include "picasso_tf/cc/kernels/packed_update.h"
#include "picasso_tf/cc/kernels/update_arithmetic.h"
#include "picasso_tf/cc/kernels/update_tiles.h"

namespace picasso {
namespace packed_update {

// Not set to anything at first. A vector that crosses a cache line costs twice, so
// each buffer begins with one.
template <typename C>
class Buffers {
 public:
  explicit Buffers(int count) : lines_(new Line[count * kLines]) {}

  C* operator[](int buffer) const { return lines_[buffer * kLines].elements; }

 private:
  struct alignas(64) Line {
    C elements[64 / sizeof(C)];
  };
  // Buffers that are a power of two apart would fall into the same sets of the cache.
  static constexpr int64_t kLines = kTileElements * sizeof(C) / sizeof(Line) + 5;

  const std::unique_ptr<Line[]> lines_;
};

// Parameters, and what instructions make of nothing else, by the number of the value.
template <typename T>
std::vector<Compute<T>> EvaluateScalars(const Program& program, const Table& table) {
  std::vector<Compute<T>> scalars(program.NumValues());
  const Counts& counts = program.counts;
  for (int i = 0; i < counts.parameters; ++i) {
    const T* parameter = static_cast<const T*>(table.parameters[i]);
    scalars[counts.FirstParameter() + i] = Value<T>::Load(*parameter);
  }
  for (size_t at = 0; at < program.instructions.size(); ++at) {
    const Instruction& instruction = program.instructions[at];
    const int result = counts.FirstResult() + at;
    if (program.levels[result] != Level::kScalar) continue;
    const int32_t* from = instruction.operands;
    scalars[result] =
        Evaluate<T>(instruction.opcode, scalars[from[0]], scalars[from[1]], scalars[from[2]]);
  }
  return scalars;
}

}  // namespace packed_update
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_UPDATE_BUFFERS_H_
