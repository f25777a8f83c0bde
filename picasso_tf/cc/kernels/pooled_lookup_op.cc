// Kernel of Picasso>PackedPooledLookup.

#include <atomic>
#include <cstdint>

#include "picasso_tf/cc/kernels/pooled_lookup_attrs.h"
#include "picasso_tf/cc/kernels/pooled_lookup_call.h"
#include "picasso_tf/cc/kernels/pooled_lookup_cpu.h"
#include "picasso_tf/cc/kernels/parallel_blocks.h"
#include "picasso_tf/cc/kernels/row_blocks.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace picasso {
namespace pooled_lookup {
namespace {

using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;

using tensorflow::thread::ThreadPool;

// Below this many ids a second thread costs more than it saves.
constexpr int64_t kIdsPerThread = 8 << 10;

// False: segments decrease or are out of range.
bool FindAllStarts(ThreadPool* pool, const List<Piece>& pieces) {
  int64_t num_ids = 0;
  for (const Piece& piece : pieces) num_ids += piece.finds_starts ? piece.num_ids : 0;
  std::atomic<bool> good{true};
  ParallelBlocks(pool, pieces.size(), num_ids / kIdsPerThread + 1, [&](int64_t i) {
    if (pieces[i].finds_starts && !FindStarts(pieces[i])) {
      good.store(false, std::memory_order_relaxed);
    }
  });
  return good;
}

// Runs all blocks of all matrices. False: an id is out of range.
template <typename T>
bool FillAs(ThreadPool* pool, const List<Matrix>& matrices) {
  return FillMatrices<List<RowBlocks>>(pool, matrices,
                                       [](const Matrix& matrix, int64_t begin, int64_t end) {
                                         return FillRows<T>(matrix, begin, end);
                                       });
}

bool Fill(ThreadPool* pool, tensorflow::DataType dtype, const List<Matrix>& matrices) {
  switch (dtype) {
    case tensorflow::DT_HALF:
      return FillAs<Half>(pool, matrices);
    case tensorflow::DT_BFLOAT16:
      return FillAs<Bfloat16>(pool, matrices);
    case tensorflow::DT_DOUBLE:
      return FillAs<double>(pool, matrices);
    default:
      return FillAs<float>(pool, matrices);
  }
}

class PackedPooledLookupOp : public OpKernel {
 public:
  explicit PackedPooledLookupOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, ReadAttrs(*context, &attrs_));
  }

  void Compute(OpKernelContext* context) override {
    Call call(context, attrs_);
    OP_REQUIRES_OK(context, call.Prepare());
    ThreadPool* const pool = context->device()->tensorflow_cpu_worker_threads()->workers;
    bool good = FindAllStarts(pool, call.pieces());
    if (!good && call.SortIds()) good = FindAllStarts(pool, call.pieces());
    good = good && Fill(pool, attrs_.dtype, call.matrices());
    if (!good) OP_REQUIRES_OK(context, call.BadInputError());
  }

 private:
  Attrs attrs_;
};

REGISTER_KERNEL_BUILDER(Name("Picasso>PackedPooledLookup").Device(tensorflow::DEVICE_CPU),
                        PackedPooledLookupOp);

}  // namespace
}  // namespace pooled_lookup
}  // namespace picasso
