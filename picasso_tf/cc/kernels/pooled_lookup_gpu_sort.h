// GPU side of the packed pooled lookup: ids that do not come in the order of the rows that
// they belong to. They are rare, and only the device knows of them, so one block brings
// those of a piece into order, and leaves at once where they are in order already.
//
// Ids are counted for each row, and put into the rows in whatever order the threads come;
// each row then sorts its own. So the order is always the same: that in which ids stand.

#ifndef PICASSO_TF_CC_KERNELS_POOLED_LOOKUP_GPU_SORT_H_
#define PICASSO_TF_CC_KERNELS_POOLED_LOOKUP_GPU_SORT_H_

#include <cstdint>

#include "picasso_tf/cc/kernels/pooled_lookup_gpu_plan.h"

namespace picasso {
namespace pooled_lookup {

constexpr int kSortThreads = 1024;

// Adds 1 to what other threads add to as well. Returns what was there before.
PICASSO_HOST_DEVICE inline int64_t Increment(int64_t* to) {
#if defined(__CUDA_ARCH__)
  return atomicAdd(reinterpret_cast<unsigned long long*>(to), 1ull);
#else
  return (*to)++;
#endif
}

// The row of id `j`, or -1: it is left out, or its segment is out of range.
PICASSO_HOST_DEVICE inline int64_t RowOfId(const GpuPiece& piece, int64_t j) {
  const int64_t row = SegmentAt(piece.segments, j);
  return row >= 0 && row < piece.rows && !IsLeftOut(piece, j) ? row : -1;
}

// Lets `root` sink into a heap of `count` numbers with the largest on top.
PICASSO_HOST_DEVICE inline void Sink(int32_t* heap, int64_t root, int64_t count) {
  const int32_t value = heap[root];
  for (int64_t child; (child = 2 * root + 1) < count; root = child) {
    if (child + 1 < count && heap[child] < heap[child + 1]) ++child;
    if (heap[child] <= value) break;
    heap[root] = heap[child];
  }
  heap[root] = value;
}

PICASSO_HOST_DEVICE inline void HeapSort(int32_t* numbers, int64_t count) {
  for (int64_t root = count / 2 - 1; root >= 0; --root) Sink(numbers, root, count);
  for (int64_t last = count - 1; last > 0; --last) {
    const int32_t largest = numbers[0];
    numbers[0] = numbers[last];
    numbers[last] = largest;
    Sink(numbers, 0, last);
  }
}

enum class SortPhase { kClear, kCount, kSum, kSumOfSums, kStarts, kPlace, kSort, kEnd };

// What falls to `thread` of kSortThreads. All threads are through with a phase before one
// begins the next; they share `sums`, one number for each.
PICASSO_HOST_DEVICE inline void SortIds(const GpuPiece& piece, SortPhase phase, int thread,
                                        int64_t* sums) {
  int64_t* starts = piece.starts;
  const int64_t share = (piece.rows + kSortThreads - 1) / kSortThreads;
  const int64_t begin = thread * share;
  const int64_t end = begin + share < piece.rows ? begin + share : piece.rows;
  switch (phase) {
    case SortPhase::kClear:
      for (int64_t row = thread; row <= piece.rows; row += kSortThreads) starts[row] = 0;
      return;
    case SortPhase::kCount:
      for (int64_t j = thread; j < piece.num_ids; j += kSortThreads) {
        const int64_t row = RowOfId(piece, j);
        if (row >= 0) Increment(&starts[row + 1]);
      }
      return;
    case SortPhase::kSum:
      sums[thread] = 0;
      for (int64_t row = begin; row < end; ++row) sums[thread] += starts[row + 1];
      return;
    case SortPhase::kSumOfSums:
      for (int64_t i = 0, sum = 0; i < kSortThreads && thread == 0; ++i) {
        const int64_t own = sums[i];
        sums[i] = sum;
        sum += own;
      }
      return;
    case SortPhase::kStarts:
      for (int64_t row = begin, sum = sums[thread]; row < end; ++row) {
        const int64_t own = starts[row + 1];
        starts[row + 1] = sum;
        sum += own;
      }
      return;
    case SortPhase::kPlace:  // moves the start of a row to its end, which is the next one's start
      for (int64_t j = thread; j < piece.num_ids; j += kSortThreads) {
        const int64_t row = RowOfId(piece, j);
        if (row >= 0) piece.order[Increment(&starts[row + 1])] = static_cast<int32_t>(j);
      }
      return;
    case SortPhase::kSort:
      for (int64_t row = thread; row < piece.rows; row += kSortThreads) {
        HeapSort(piece.order + starts[row], starts[row + 1] - starts[row]);
      }
      return;
    case SortPhase::kEnd:
      return;
  }
}

}  // namespace pooled_lookup
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_POOLED_LOOKUP_GPU_SORT_H_
