// Kernels of Picasso>PackedSparseUpdate and Picasso>PackedDenseUpdate.

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "picasso_tf/cc/kernels/packed_update_attrs.h"
#include "picasso_tf/cc/kernels/packed_update_call.h"
#include "picasso_tf/cc/kernels/packed_update_cpu.h"
#include "picasso_tf/cc/kernels/parallel_blocks.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/platform/denormal.h"

namespace picasso {
namespace packed_update {
namespace {

using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;

// The type in which the kernels know a dtype.
template <typename T>
struct Stored {
  using Type = T;
};
template <>
struct Stored<Eigen::half> {
  using Type = Half;
};
template <>
struct Stored<Eigen::bfloat16> {
  using Type = Bfloat16;
};

// Below this many ids, or bytes of rows, a second thread costs more than it saves.
constexpr int64_t kIdsPerThread = 8 << 10;

template <typename Type, Extent kExtent>
class PackedUpdateCpuOp : public OpKernel {
 public:
  explicit PackedUpdateCpuOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, ReadAttrs(*context, kExtent, &attrs_));
    plans_ = std::make_unique<Plans<T>>(attrs_.program);
  }

  void Compute(OpKernelContext* context) override {
    Call call(context, attrs_);
    OP_REQUIRES_OK(context, call.Prepare());
    std::vector<SortedIds> ids(call.tables().size());
    if (attrs_.has_pooled && !FindScales(context, &call)) {
      OP_REQUIRES_OK(context, call.BadPoolError());
    }
    if (!SortIds(context, call.tables(), &ids)) {
      OP_REQUIRES_OK(context, call.BadIdError());
    }
    OP_REQUIRES_OK(context, call.OpenStates());
    const std::vector<Task> tasks = CutTasks<T>(attrs_.program, call.tables(), ids, kAllRows);
    Parallel(context, tasks.size(), tasks.size(), [&](int64_t i) {
      // As in TensorFlow's own threads: the result must not depend on whether the
      // caller's thread is one of them.
      tensorflow::port::ScopedFlushDenormal flush;
      const int64_t table = tasks[i].table;
      RunTask<T>(*plans_, call.tables()[table], ids[table], kAllRows, tasks[i]);
    });
  }

 private:
  using T = typename Stored<Type>::Type;
  static constexpr bool kAllRows = kExtent == Extent::kAllRows;

  template <typename Run>
  static void Parallel(OpKernelContext* context, int64_t blocks, int64_t max_threads,
                       const Run& run) {
    ParallelBlocks(context->device()->tensorflow_cpu_worker_threads()->workers, blocks,
                   max_threads, run);
  }

  // False: an id belongs to a row that its gradient does not have.
  static bool FindScales(OpKernelContext* context, Call* call) {
    int64_t num_ids = 0;
    for (const Table& table : call->tables()) num_ids += table.num_ids;
    std::atomic<bool> good{true};
    Parallel(context, call->tables().size(), num_ids / kIdsPerThread + 1, [&](int64_t i) {
      if (!call->FindScales(i)) good.store(false, std::memory_order_relaxed);
    });
    return good;
  }

  // False: an id is out of range.
  bool SortIds(OpKernelContext* context, const std::vector<Table>& tables,
               std::vector<SortedIds>* ids) const {
    int64_t num_ids = 0;
    for (const Table& table : tables) num_ids += table.num_ids;
    std::atomic<bool> good{true};
    Parallel(context, tables.size(), num_ids / kIdsPerThread + 1, [&](int64_t i) {
      const int group_bits = GroupBits<T>(attrs_.program, tables[i]);
      const bool by_pool = NumberByPool<T>(attrs_.program, tables[i]);
      if (!(*ids)[i].Build(tables[i], attrs_.drop_negative, group_bits, by_pool)) {
        good.store(false, std::memory_order_relaxed);
      }
    });
    return good;
  }

  Attrs attrs_;
  std::unique_ptr<Plans<T>> plans_;
};

#define PICASSO_REGISTER(Type)                                                 \
  REGISTER_KERNEL_BUILDER(Name("Picasso>PackedSparseUpdate")                   \
                              .Device(tensorflow::DEVICE_CPU)                  \
                              .TypeConstraint<Type>("dtype"),                  \
                          PackedUpdateCpuOp<Type, Extent::kTouchedRows>);      \
  REGISTER_KERNEL_BUILDER(Name("Picasso>PackedDenseUpdate")                    \
                              .Device(tensorflow::DEVICE_CPU)                  \
                              .TypeConstraint<Type>("dtype"),                  \
                          PackedUpdateCpuOp<Type, Extent::kAllRows>);
PICASSO_REGISTER(Eigen::half)
PICASSO_REGISTER(Eigen::bfloat16)
PICASSO_REGISTER(float)
PICASSO_REGISTER(double)
#undef PICASSO_REGISTER

}  // namespace
}  // namespace packed_update
}  // namespace picasso
