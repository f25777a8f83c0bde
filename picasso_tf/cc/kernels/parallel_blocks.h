// Runs the blocks of one kernel on the calling thread and on a thread pool.
//
// Each thread takes the next block when it is done with its last one. Unlike
// ThreadPool::ParallelFor the caller works too and never waits for a pool thread
// that has not started: on a busy machine waking one can take longer than the
// whole kernel. It also cannot deadlock when the caller is itself a pool thread.

#ifndef PICASSO_TF_CC_KERNELS_PARALLEL_BLOCKS_H_
#define PICASSO_TF_CC_KERNELS_PARALLEL_BLOCKS_H_

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

namespace picasso {

// Calls run(block) for every block in [0, num_blocks), in no fixed order, on at
// most max_threads threads, and returns when all calls have returned. Pool is
// TensorFlow's ThreadPool or anything with its NumThreads and Schedule.
template <typename Pool, typename Run>
void ParallelBlocks(Pool* pool, int64_t num_blocks, int64_t max_threads, const Run& run) {
  const int64_t helpers = std::min<int64_t>({max_threads, num_blocks, pool->NumThreads()}) - 1;
  if (helpers < 1) {
    for (int64_t block = 0; block < num_blocks; ++block) run(block);
    return;
  }
  // Outlives this call: a helper that starts late finds no block left, and
  // touches nothing else.
  struct State {
    explicit State(int64_t blocks) : left(blocks) {}
    std::atomic<int64_t> next{0};
    std::atomic<int64_t> left;
    std::mutex mutex;
    std::condition_variable all_done;
    bool done = false;
  };
  auto state = std::make_shared<State>(num_blocks);
  auto work = [state, num_blocks, &run] {
    int64_t finished = 0;
    for (int64_t block; (block = state->next.fetch_add(1)) < num_blocks; ++finished) {
      run(block);
    }
    if (state->left.fetch_sub(finished) != finished) return;
    std::lock_guard<std::mutex> lock(state->mutex);
    state->done = true;
    state->all_done.notify_all();
  };
  for (int64_t i = 0; i < helpers; ++i) pool->Schedule(work);
  work();
  std::unique_lock<std::mutex> lock(state->mutex);
  state->all_done.wait(lock, [&] { return state->done; });
}

}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_PARALLEL_BLOCKS_H_
