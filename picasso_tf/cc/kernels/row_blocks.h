// Cuts the rows of several matrices into blocks, and runs these on a thread pool.

#ifndef PICASSO_TF_CC_KERNELS_ROW_BLOCKS_H_
#define PICASSO_TF_CC_KERNELS_ROW_BLOCKS_H_

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "picasso_tf/cc/kernels/parallel_blocks.h"

namespace picasso {

// Below this much memory traffic a second thread costs more than it saves.
constexpr int64_t kBytesPerThread = 128 << 10;

// The blocks of one matrix, numbered on from those of the matrices before it.
struct RowBlocks {
  int64_t first;
  int64_t block_rows;
  int64_t rows;  // of the matrix

  int64_t End() const { return first + rows / block_rows + (rows % block_rows != 0); }
};

// Calls fill(i, begin, end) for blocks of rows that make up all matrices i, and
// returns whether all calls gave true; after one that did not, others may be left
// out. `blocks` is a list with at least one entry, `bytes` the traffic of all of it.
template <typename Pool, typename List, typename Fill>
bool FillBlocks(Pool* pool, const List& blocks, int64_t bytes, const Fill& fill) {
  std::atomic<bool> good{true};
  // A small call stays on this thread.
  ParallelBlocks(pool, blocks.back().End(), bytes / kBytesPerThread, [&](int64_t block) {
    if (!good.load(std::memory_order_relaxed)) return;
    const auto after = std::upper_bound(
        blocks.begin(), blocks.end(), block,
        [](int64_t block, const RowBlocks& other) { return block < other.first; });
    const RowBlocks& matrix = after[-1];
    const int64_t begin = (block - matrix.first) * matrix.block_rows;
    const int64_t end = std::min(begin + matrix.block_rows, matrix.rows);
    if (!fill(after - blocks.begin() - 1, begin, end)) {
      good.store(false, std::memory_order_relaxed);
    }
  });
  return good;
}

// Calls fill(matrix, begin, end) for blocks of rows that make up all matrices, of as
// many rows as BlockRows(matrix), each moving RowTraffic(matrix) bytes; otherwise as
// FillBlocks. `Blocks` is the list type for RowBlocks.
template <typename Blocks, typename Pool, typename Matrices, typename Fill>
bool FillMatrices(Pool* pool, const Matrices& matrices, const Fill& fill) {
  Blocks blocks;
  blocks.reserve(matrices.size());
  int64_t bytes = 0;
  for (const auto& matrix : matrices) {
    const int64_t first = blocks.empty() ? 0 : blocks.back().End();
    blocks.push_back({first, BlockRows(matrix), matrix.rows});
    bytes += matrix.rows * RowTraffic(matrix);
  }
  return FillBlocks(pool, blocks, bytes, [&](int64_t i, int64_t begin, int64_t end) {
    return fill(matrices[i], begin, end);
  });
}

}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_ROW_BLOCKS_H_
