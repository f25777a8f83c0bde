// Kernels of Picasso>PackedLookup.

#include <cstdint>
#include <vector>

#include "picasso_tf/cc/kernels/packed_lookup_attrs.h"
#include "picasso_tf/cc/kernels/packed_lookup_call.h"
#include "picasso_tf/cc/kernels/packed_lookup_cpu.h"
#include "picasso_tf/cc/kernels/row_blocks.h"
#include "tensorflow/core/framework/op_kernel.h"

#if GOOGLE_CUDA
#include "picasso_tf/cc/kernels/packed_lookup_gpu.h"
#include "xla/stream_executor/stream.h"
#endif

namespace picasso {
namespace packed_lookup {
namespace {

using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;

// Runs all blocks of all matrices. False: an id is out of range.
bool FillOnCpu(OpKernelContext* context, const List<Matrix>& matrices) {
  return FillMatrices<List<RowBlocks>>(
      context->device()->tensorflow_cpu_worker_threads()->workers, matrices,
      [](const Matrix& matrix, int64_t begin, int64_t end) {
        return FillRows(matrix.pieces, matrix.num_pieces, begin, end);
      });
}

void LookUp(OpKernelContext* context, const Attrs& attrs) {
  Call call(context, attrs);
  OP_REQUIRES_OK(context, call.Prepare());
  if (!FillOnCpu(context, call.matrices())) {
    OP_REQUIRES_OK(context, call.BadIdError());
  }
}

class PackedLookupOp : public OpKernel {
 public:
  explicit PackedLookupOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, ReadAttrs(*context, &attrs_));
  }

 protected:
  Attrs attrs_;
};

class PackedLookupCpuOp : public PackedLookupOp {
 public:
  using PackedLookupOp::PackedLookupOp;

  void Compute(OpKernelContext* context) override { LookUp(context, attrs_); }
};

REGISTER_KERNEL_BUILDER(Name("Picasso>PackedLookup").Device(tensorflow::DEVICE_CPU),
                        PackedLookupCpuOp);

// One lookup of a table with shards, as a packed lookup with one natural output.
class TableGatherOp : public OpKernel {
 public:
  explicit TableGatherOp(OpKernelConstruction* context) : OpKernel(context) {
    RawAttrs raw;
    OP_REQUIRES_OK(context, context->GetAttr("dtype", &raw.dtype));
    OP_REQUIRES_OK(context, context->GetAttr("num_tables", &raw.num_tables));
    raw.ids_types.resize(1);
    OP_REQUIRES_OK(context, context->GetAttr("Tindices", &raw.ids_types[0]));
    raw.lookup_names = {name()};
    raw.lookup_table = {0};
    raw.lookup = {/*ids=*/{0}, /*column=*/{-1}, /*columns=*/{0}, /*wrap=*/{0}, /*narrow=*/{false}};
    raw.shards = {{raw.num_tables}, {0}, {0}};
    OP_REQUIRES_OK(context, context->GetAttr("shard_rows", &raw.shards.rows[0]));
    OP_REQUIRES_OK(context, context->GetAttr("shard_extras", &raw.shards.extras[0]));
    raw.lookup_max_norm.resize(1);
    OP_REQUIRES_OK(context, context->GetAttr("max_norm", &raw.lookup_max_norm[0]));
    raw.num_shapes = 0;
    raw.outputs.num_outputs = 1;
    raw.outputs.num_dense = 0;
    raw.outputs.piece_output = raw.outputs.piece_source = raw.outputs.piece_width = {0};
    raw.outputs.output_shapes = {tensorflow::PartialTensorShape()};
    OP_REQUIRES_OK(context, CheckAttrs(raw, &attrs_));
  }

  void Compute(OpKernelContext* context) override { LookUp(context, attrs_); }

 private:
  Attrs attrs_;
};

REGISTER_KERNEL_BUILDER(Name("Picasso>TableGather").Device(tensorflow::DEVICE_CPU),
                        TableGatherOp);

#if GOOGLE_CUDA

class PackedLookupGpuOp : public PackedLookupOp {
 public:
  explicit PackedLookupGpuOp(OpKernelConstruction* context) : PackedLookupOp(context) {
    for (const Lookup& lookup : attrs_.lookups) {
      OP_REQUIRES(context, lookup.shards.IsOne() && lookup.max_norm == 0,
                  absl::UnimplementedError(absl::StrCat(
                      kOp, ": lookup '", lookup.name, "' has shards or a norm, but not on a GPU.")));
    }
  }

  // The locks are released once the kernel is launched: writers of the same
  // variables run on the same stream, after it.
  void Compute(OpKernelContext* context) override {
    Call call(context, attrs_);
    OP_REQUIRES_OK(context, call.Prepare());
    const int64_t num_pieces = call.pieces().size();
    std::vector<Piece> host_plan(PlanBytes(num_pieces) / sizeof(Piece) + 1);
    const int64_t tiles = WritePlan(call.pieces().data(), num_pieces, host_plan.data());
    OP_REQUIRES(context, tiles >= 0, Invalid("a row has 2 GiB or more, too long for a GPU."));

    tensorflow::Tensor device_plan;
    const tensorflow::TensorShape shape({static_cast<int64_t>(PlanBytes(num_pieces))});
    OP_REQUIRES_OK(context, context->allocate_temp(tensorflow::DT_INT8, shape, &device_plan));
    const char* error = LaunchPackedLookup(
        host_plan.data(), device_plan.data(), num_pieces, tiles,
        context->op_device_context()->stream()->platform_specific_handle().stream);
    OP_REQUIRES(context, error == nullptr,
                absl::InternalError(absl::StrCat("PackedLookup: CUDA reports: ", error)));
  }
};

REGISTER_KERNEL_BUILDER(Name("Picasso>PackedLookup")
                            .Device(tensorflow::DEVICE_GPU)
                            .HostMemory("tables")
                            .HostMemory("shapes"),
                        PackedLookupGpuOp);

#endif  // GOOGLE_CUDA

}  // namespace
}  // namespace packed_lookup
}  // namespace picasso
