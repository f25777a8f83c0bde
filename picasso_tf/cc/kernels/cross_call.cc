#include "picasso_tf/cc/kernels/cross_call.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "picasso_tf/cc/kernels/fingerprint.h"
#include "picasso_tf/cc/kernels/parallel_blocks.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"

namespace picasso {
namespace crosses {

using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::tstring;

namespace {

constexpr int64_t kUnit = 2048;  // strings or rows; about as long as it takes to wake a thread

const uint64_t* Integers(const Tensor& tensor) {
  return reinterpret_cast<const uint64_t*>(tensor.flat<int64_t>().data());
}

}  // namespace

absl::Status Call::Run() {
  TF_RETURN_IF_ERROR(BindColumns());
  HashStrings();
  TF_RETURN_IF_ERROR(BindCrosses());
  TF_RETURN_IF_ERROR(Allocate());
  WriteCrosses();
  return absl::OkStatus();
}

absl::Status Call::BindColumns() {
  columns_.resize(attrs_.NumColumns());
  for (int i = 0; i < attrs_.NumColumns(); ++i) {
    TF_RETURN_IF_ERROR(attrs_.IsSparse(i) ? BindSparse(i) : BindDense(i));
  }
  return absl::OkStatus();
}

absl::Status Call::BindSparse(int number) {
  const Tensor& indices = context_->input(attrs_.IndicesOf(number));
  const Tensor& values = context_->input(attrs_.ValuesOf(number));
  const Tensor& shape = context_->input(attrs_.ShapeOf(number));
  const bool good = indices.dims() == 2 && indices.dim_size(1) == 2 && values.dims() == 1 &&
                    values.dim_size(0) == indices.dim_size(0) && shape.dims() == 1 &&
                    shape.NumElements() == 2 && shape.flat<int64_t>()(0) >= 0 &&
                    shape.flat<int64_t>()(0) <= std::numeric_limits<int32_t>::max();
  if (!good) {
    return InvalidIn(kOp, "column ", number, " is no SparseTensor of rank 2: its indices are ",
                     indices.shape().DebugString(), ", its values ", values.shape().DebugString(),
                     ", its shape ", shape.SummarizeValue(2), ".");
  }
  BoundColumn& bound = columns_[number];
  bound.rows = shape.flat<int64_t>()(0);
  bound.row_begin =
      FindRows(indices.flat<int64_t>().data(), indices.dim_size(0), bound.rows);
  bound.column.row_begin = bound.row_begin.data();
  return absl::OkStatus();
}

absl::Status Call::BindDense(int number) {
  const Tensor& tensor = context_->input(attrs_.ValuesOf(number));
  if (tensor.dims() != 2) {
    return InvalidIn(kOp, "column ", number, " is no matrix: ", tensor.shape().DebugString(), ".");
  }
  columns_[number].rows = tensor.dim_size(0);
  columns_[number].column.width = tensor.dim_size(1);
  return absl::OkStatus();
}

void Call::HashStrings() {
  std::vector<int64_t> sizes(columns_.size(), 0);
  for (int i = 0; i < attrs_.NumColumns(); ++i) {
    BoundColumn& bound = columns_[i];
    const Tensor& values = context_->input(attrs_.ValuesOf(i));
    if (attrs_.TypeOf(i) == tensorflow::DT_INT64) {
      bound.column.features = Integers(values);
      continue;
    }
    sizes[i] = values.NumElements();
    bound.fingerprints.resize(sizes[i]);
    bound.column.features = bound.fingerprints.data();
  }
  InUnits(sizes, kUnit, [this](const Unit& unit) {
    const auto strings = context_->input(attrs_.ValuesOf(unit.number)).flat<tstring>();
    std::vector<uint64_t>& hashes = columns_[unit.number].fingerprints;
    for (int64_t i = unit.begin; i < unit.end; ++i) {
      hashes[i] = Fingerprint({strings(i).data(), strings(i).size()});
    }
  });
}

absl::Status Call::BindCrosses() {
  for (const CrossSpec& spec : attrs_.crosses) {
    BoundCross& bound = crosses_.emplace_back();
    bound.cross = {{}, spec.key, spec.num_buckets};
    bound.rows = columns_[spec.columns[0]].rows;
    for (const int column : spec.columns) {
      bound.cross.columns.push_back(&columns_[column].column);
      if (columns_[column].rows == bound.rows) continue;
      return InvalidIn(kOp, "'", spec.name, "' crosses columns of ", bound.rows, " and of ",
                       columns_[column].rows, " rows.");
    }
    bound.is_plain = IsPlain(bound.cross);
    if (bound.is_plain) {
      bound.most = bound.rows > 0;
      continue;
    }
    bound.most = CountCrosses(bound.cross, bound.rows, &bound.begin);
    if (bound.most < 0) return InvalidIn(kOp, "'", spec.name, "' has more than 2^63 crosses.");
  }
  return absl::OkStatus();
}

absl::Status Call::Allocate() {
  for (size_t i = 0; i < attrs_.outputs.size(); ++i) {
    BoundCross& bound = crosses_[attrs_.outputs[i].cross];
    const Kind kind = attrs_.outputs[i].kind;
    TensorShape shape;
    const int64_t first = kind == Kind::kShape   ? 2
                          : kind == Kind::kDense ? bound.rows
                                                 : bound.Total();
    TF_RETURN_IF_ERROR(shape.AddDimWithStatus(first));
    if (kind == Kind::kIndices) TF_RETURN_IF_ERROR(shape.AddDimWithStatus(2));
    if (kind == Kind::kDense) TF_RETURN_IF_ERROR(shape.AddDimWithStatus(bound.most));
    Tensor* tensor = nullptr;
    TF_RETURN_IF_ERROR(context_->allocate_output(i, shape, &tensor));
    int64_t* const data = tensor->flat<int64_t>().data();
    switch (kind) {
      case Kind::kIndices:
        bound.results.indices = data;
        break;
      case Kind::kValues:
        bound.results.values = data;
        break;
      case Kind::kShape:
        data[0] = bound.rows;
        data[1] = bound.most;
        break;
      case Kind::kDense:
        bound.results.dense = data;
        bound.results.row_size = bound.most;
        break;
    }
  }
  return absl::OkStatus();
}

void Call::WriteCrosses() {
  std::vector<int64_t> sizes;
  for (const BoundCross& bound : crosses_) sizes.push_back(bound.rows);
  InUnits(sizes, kUnit / 2, [this](const Unit& unit) {
    const BoundCross& bound = crosses_[unit.number];
    if (bound.is_plain) return WritePlain(bound.cross, unit.begin, unit.end, bound.results);
    WriteRows(bound.cross, bound.begin, unit.begin, unit.end, bound.results);
  });
}

// Calls work(Unit) for parts of [0, sizes[i]), for every i, on some threads.
template <typename Work>
void Call::InUnits(const std::vector<int64_t>& sizes, int64_t unit, const Work& work) {
  std::vector<Unit> units;
  for (size_t i = 0; i < sizes.size(); ++i) {
    for (int64_t begin = 0; begin < sizes[i]; begin += unit) {
      units.push_back({static_cast<int>(i), begin, std::min(begin + unit, sizes[i])});
    }
  }
  const int64_t all = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  auto* pool = context_->device()->tensorflow_cpu_worker_threads()->workers;
  ParallelBlocks(pool, units.size(), all / unit + 1, [&](int64_t i) { work(units[i]); });
}

}  // namespace crosses
}  // namespace picasso
