// What the stand-alone kernel tests share: checks that are counted, random numbers, a
// pool of threads. Each test is one program, and includes this once.

#ifndef PICASSO_TF_CC_KERNELS_KERNEL_TEST_H_
#define PICASSO_TF_CC_KERNELS_KERNEL_TEST_H_

#include <cstdint>
#include <cstdio>
#include <functional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace kernel_test {

inline int passed = 0;
inline int failed = 0;

#define CHECK(condition)                                                      \
  do {                                                                        \
    const bool is_good = (condition);                                         \
    ++(is_good ? kernel_test::passed : kernel_test::failed);                  \
    if (!is_good) std::printf("line %d: failed: %s\n", __LINE__, #condition); \
  } while (false)

// What main returns.
inline int Report() {
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}

inline std::mt19937_64 random_source(20210821);

inline int64_t Random(int64_t begin, int64_t end) {
  return begin + random_source() % (end - begin);
}

// Starts a thread for each task; every third one only after the call has returned.
class TestPool {
 public:
  explicit TestPool(int threads) : threads_(threads) {}
  ~TestPool() {
    for (auto& task : late_) Start(task);
    for (std::thread& thread : started_) thread.join();
  }
  int NumThreads() const { return threads_; }
  void Schedule(std::function<void()> task) {
    if (++scheduled_ % 3 == 0) {
      late_.push_back(std::move(task));
    } else {
      Start(std::move(task));
    }
  }

 private:
  void Start(std::function<void()> task) { started_.emplace_back(std::move(task)); }

  int threads_;
  int scheduled_ = 0;
  std::vector<std::function<void()>> late_;
  std::vector<std::thread> started_;
};

}  // namespace kernel_test

#endif  // PICASSO_TF_CC_KERNELS_KERNEL_TEST_H_
