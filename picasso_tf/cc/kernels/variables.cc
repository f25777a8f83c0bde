#include "picasso_tf/cc/kernels/variables.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "picasso_tf/cc/kernels/attr_checks.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/platform/errors.h"

#if GOOGLE_CUDA
#include <cuda_runtime_api.h>

#include "absl/strings/str_cat.h"
#include "xla/stream_executor/stream.h"
#endif

namespace picasso {

using tensorflow::DataType;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::Var;

absl::Status FindVars(OpKernelContext* context, int count, Vars* vars) {
  vars->resize(count);
  for (int i = 0; i < count; ++i) {
    TF_RETURN_IF_ERROR(tensorflow::LookupResource(
        context, tensorflow::HandleFromInput(context, i), &(*vars)[i]));
  }
  return absl::OkStatus();
}

absl::Status CheckTables(OpKernelContext* context, absl::string_view op, DataType dtype,
                         const Vars& vars) {
  for (size_t i = 0; i < vars.size(); ++i) {
    const Tensor& table = *vars[i]->tensor();
    if (table.dtype() == dtype && table.dims() >= 1) continue;
    return InvalidIn(op, "table ", i, " ('", tensorflow::HandleFromInput(context, i).name(),
                     "') must be ", DataTypeString(dtype), " of rank 1 or more, but it is ",
                     DataTypeString(table.dtype()), " of shape ", table.shape().DebugString(), ".");
  }
  return absl::OkStatus();
}

Locks::~Locks() {
  for (Var* var : vars_) {
    if (access_ == Access::kRead) {
      var->mu()->unlock_shared();
    } else {
      var->mu()->unlock();
    }
  }
}

void Locks::Take(const Vars& vars) {
  vars_.reserve(vars.size());
  for (const auto& var : vars) vars_.push_back(var.get());
  std::sort(vars_.begin(), vars_.end(),
            [](Var* a, Var* b) { return std::less<>()(a->mu(), b->mu()); });
  vars_.erase(std::unique(vars_.begin(), vars_.end()), vars_.end());
  for (Var* var : vars_) {
    if (access_ == Access::kRead) {
      var->mu()->lock_shared();
    } else {
      var->mu()->lock();
    }
  }
}

namespace {

// On a GPU the copy is one more step on the op's stream.
absl::Status CopyElements(OpKernelContext* context, const Tensor& from, Tensor* to) {
  if (from.TotalBytes() == 0) return absl::OkStatus();
#if GOOGLE_CUDA
  if (context->device()->tensorflow_accelerator_device_info() != nullptr) {
    const auto* stream = context->op_device_context()->stream();
    const cudaError_t error = cudaMemcpyAsync(
        to->data(), from.data(), from.TotalBytes(), cudaMemcpyDeviceToDevice,
        static_cast<cudaStream_t>(stream->platform_specific_handle().stream));
    if (error == cudaSuccess) return absl::OkStatus();
    return absl::InternalError(
        absl::StrCat("A variable cannot be copied: CUDA reports: ", cudaGetErrorString(error)));
  }
#endif
  std::memcpy(to->data(), from.data(), from.TotalBytes());
  return absl::OkStatus();
}

}  // namespace

absl::Status MakeOwn(OpKernelContext* context, Var* var) {
  if (var->tensor()->RefCountIsOne()) return absl::OkStatus();
  Tensor copy;
  TF_RETURN_IF_ERROR(
      context->allocate_temp(var->tensor()->dtype(), var->tensor()->shape(), &copy));
  TF_RETURN_IF_ERROR(CopyElements(context, *var->tensor(), &copy));
  *var->tensor() = copy;
  return absl::OkStatus();
}

}  // namespace picasso
