#include "picasso_tf/cc/kernels/transform_call.h"

#include <algorithm>
#include <cstring>

#include "picasso_tf/cc/kernels/fingerprint.h"
#include "picasso_tf/cc/kernels/parallel_blocks.h"
#include "picasso_tf/cc/kernels/transform_tensors.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/hash.h"

// SipHash (highwayhash), which TensorFlow's framework library exports; its headers ask for the
// instruction set that they are compiled for.
extern "C" uint64_t SipHashC(const uint64_t* key, const char* text, uint64_t size);

namespace picasso {
namespace transforms {
namespace {

using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::lookup::LookupInterface;

constexpr int kMaxMaskedDims = 8;  // as Where, which takes no scalar either
constexpr int64_t kUnit = 4 * kBlock;  // elements; about as long as it takes to wake a thread

}  // namespace

uint64_t Call::HashLegacy(std::string_view text) const {
  return tensorflow::Hash64(text.data(), text.size());
}

uint64_t Call::HashFast(std::string_view text) const {
  return Fingerprint(text);
}

uint64_t Call::HashStrong(const uint64_t (&key)[2], std::string_view text) const {
  return SipHashC(key, text.data(), text.size());
}

bool Call::Find(int table, DType from, DType to, int64_t size, const Slot& keys,
                const Slot& missing, Room* out) const {
  Tensor key_tensor(TensorType(from), {size}), values(TensorType(to), {size});
  Tensor default_value(TensorType(to), {});
  StoreTo(from, keys, size, 0, &key_tensor);
  StoreTo(to, missing, 1, 0, &default_value);
  LookupInterface& found = *tables_[table];
  absl::Status status = found.CheckFindArguments(key_tensor, default_value);
  if (status.ok() && found.key_shape().dims() > 0) {
    status = absl::UnimplementedError("PackedTransforms: the keys of a hash table are no scalars.");
  }
  if (status.ok()) status = found.Find(context_, key_tensor, &values, default_value);
  if (!status.ok()) {
    absl::MutexLock lock(&mutex_);
    table_status_.Update(status);
    return false;
  }
  Loaded loaded;
  const Slot slot = loaded.Load(to, values, 0, size);
  WithType(StorageOf(to), [&](auto type) {
    using T = decltype(type);
    std::copy_n(Of<T>(slot).data, size, Of<T>(*out).begin());
  });
  return true;
}

absl::Status Call::Run() {
  TF_RETURN_IF_ERROR(CheckOthers());
  TF_RETURN_IF_ERROR(BindTables());
  TF_RETURN_IF_ERROR(BindScalars());
  TF_RETURN_IF_ERROR(Allocate());
  MakeUnits();
  auto* pool = context_->device()->tensorflow_cpu_worker_threads()->workers;
  int64_t elements = 0;
  for (const Unit& unit : units_) elements += unit.end - unit.begin;
  const int64_t threads = elements / kUnit + 1;
  ParallelBlocks(pool, units_.size(), threads, [this](int64_t i) { RunUnit(&units_[i]); });
  TF_RETURN_IF_ERROR(CheckUnits());
  TF_RETURN_IF_ERROR(AllocateTaken());
  ParallelBlocks(pool, masked_.size(), threads, [this](int64_t i) { CloseUp(masked_[i]); });
  return absl::OkStatus();
}

absl::Status Call::CheckOthers() const {
  for (size_t i = 0; i < attrs_.features.size(); ++i) {
    const TensorShape& shape = context_->input(i).shape();
    for (const int other : attrs_.features[i].program.others) {
      const TensorShape& found = context_->input(attrs_.FirstOther() + other).shape();
      if (found == shape) continue;
      return InvalidIn(kOp, "'", attrs_.features[i].name, "' reads tensors of shapes ",
                       shape.DebugString(), " and ", found.DebugString(), ".");
    }
  }
  return absl::OkStatus();
}

absl::Status Call::BindTables() {
  tables_.resize(attrs_.num_tables);
  for (int i = 0; i < attrs_.num_tables; ++i) {
    LookupInterface* table = nullptr;
    TF_RETURN_IF_ERROR(tensorflow::LookupResource(
        context_, tensorflow::HandleFromInput(context_, attrs_.FirstTable() + i), &table));
    tables_[i].reset(table);
  }
  return absl::OkStatus();
}

absl::Status Call::BindScalars() {
  for (size_t i = 0; i < attrs_.scalars.size(); ++i) {
    const Tensor& tensor = context_->input(attrs_.FirstScalar() + i);
    if (tensor.dims() != 0) {
      return InvalidIn(kOp, "scalar ", i, " has shape ", tensor.shape().DebugString(), ".");
    }
    Loaded loaded;
    const Slot slot = loaded.Load(attrs_.scalars[i], tensor, 0, 1);
    Room& room = rooms_.emplace_back();
    WithType(StorageOf(attrs_.scalars[i]), [&](auto type) {
      using T = decltype(type);
      Of<T>(room) = {Of<T>(slot)[0]};
      scalars_.emplace_back();
      Of<T>(scalars_.back()) = {Of<T>(room).data(), 0};
    });
  }
  for (const auto& table : tables_) {
    rooms_.emplace_back().ints = {static_cast<int64_t>(table->size())};
    scalars_.emplace_back().ints = {rooms_.back().ints.data(), 0};
  }
  return absl::OkStatus();
}

absl::Status Call::Allocate() {
  outputs_.resize(attrs_.outputs.size());
  taken_.resize(attrs_.features.size());
  for (size_t i = 0; i < attrs_.outputs.size(); ++i) {
    const OutputSpec& output = attrs_.outputs[i];
    const TensorShape& shape = context_->input(output.feature).shape();
    if (attrs_.LevelOf(output) == Level::kAll) {
      TF_RETURN_IF_ERROR(context_->allocate_output(i, shape, &outputs_[i]));
      continue;
    }
    if (shape.dims() < 1 || shape.dims() > kMaxMaskedDims) {
      return InvalidIn(kOp, "'", attrs_.features[output.feature].name,
                       "' takes a part of a tensor, whose rank must be 1 to 8, but its shape is ",
                       shape.DebugString(), ".");
    }
    Taken& taken = taken_[output.feature];
    taken.positions.resize(shape.num_elements());
    taken.values.resize(attrs_.features[output.feature].outputs.size());
  }
  for (size_t i = 0; i < attrs_.features.size(); ++i) {
    if (!taken_[i].values.empty()) masked_.push_back(static_cast<int>(i));
    for (size_t j = 0; j < taken_[i].values.size(); ++j) {
      const OutputSpec& output = attrs_.outputs[attrs_.features[i].outputs[j]];
      if (output.value == kIndices || attrs_.LevelOf(output) == Level::kAll) continue;
      const TensorShape all = {context_->input(i).NumElements()};
      TF_RETURN_IF_ERROR(
          context_->allocate_temp(TensorType(output.dtype), all, &taken_[i].values[j]));
    }
  }
  return absl::OkStatus();
}

void Call::MakeUnits() {
  for (size_t i = 0; i < attrs_.features.size(); ++i) {
    const int64_t size = context_->input(i).NumElements();
    first_unit_.push_back(units_.size());
    int64_t begin = 0;
    do {  // also once for nothing: a table may refuse even that
      const int64_t end = std::min(begin + kUnit, size);
      units_.push_back({static_cast<int>(i), begin, end, {}, Problem::kNone});
      begin = end;
    } while (begin < size);
  }
  first_unit_.push_back(units_.size());
}

void Call::RunUnit(Unit* unit) {
  const FeatureSpec& feature = attrs_.features[unit->feature];
  const std::vector<int>& others = feature.program.others;
  Block block(feature.program, scalars_, attrs_.boundaries.data(), attrs_.texts.data(), *this,
              std::min(kBlock, unit->end - unit->begin));
  Loaded loaded;
  std::vector<Loaded> loaded_others(others.size());
  int64_t at = unit->begin;
  do {
    const int64_t size = std::min(kBlock, unit->end - at);
    const DType dtype = feature.program.dtypes[0];
    const Slot slot = loaded.Load(dtype, context_->input(unit->feature), at, size);
    for (size_t i = 0; i < others.size(); ++i) {
      const Tensor& other = context_->input(attrs_.FirstOther() + others[i]);
      block.SetOther(others[i], loaded_others[i].Load(attrs_.others[others[i]], other, at, size));
    }
    const Problem problem = block.Run(slot, size);
    if (unit->problem == Problem::kNone) unit->problem = problem;
    Store(block, unit->feature, at);
    unit->taken.push_back(block.taken());
    at += size;
  } while (at < unit->end);
}

void Call::Store(const Block& block, int number, int64_t at) {
  const FeatureSpec& feature = attrs_.features[number];
  Taken& taken = taken_[number];
  for (size_t j = 0; j < feature.outputs.size(); ++j) {
    const OutputSpec& output = attrs_.outputs[feature.outputs[j]];
    if (output.value == kIndices) continue;
    Tensor* to = attrs_.LevelOf(output) == Level::kAll ? outputs_[feature.outputs[j]]
                                                       : &taken.values[j];
    StoreTo(output.dtype, block.value(output.value), block.size(output.value), at, to);
  }
  if (taken.positions.empty()) return;
  const Elements<int64_t> mask = block.value(feature.program.mask).ints;
  int64_t* next = taken.positions.data() + at;
  for (int64_t i = 0; i < block.size(feature.program.mask); ++i) {
    if (mask[i] != 0) *next++ = at + i;
  }
}

absl::Status Call::CheckUnits() const {
  for (const Unit& unit : units_) {
    if (unit.problem == Problem::kTable) {
      absl::MutexLock lock(&mutex_);
      return table_status_;
    }
    if (unit.problem == Problem::kDivisionByZero) {
      return InvalidIn(kOp, "Integer division by zero, in '", attrs_.features[unit.feature].name,
                       "'.");
    }
  }
  return absl::OkStatus();
}

absl::Status Call::AllocateTaken() {
  std::vector<int64_t> sizes(attrs_.features.size(), 0);
  for (const Unit& unit : units_) {
    for (const int64_t taken : unit.taken) sizes[unit.feature] += taken;
  }
  for (size_t i = 0; i < attrs_.outputs.size(); ++i) {
    const OutputSpec& output = attrs_.outputs[i];
    if (attrs_.LevelOf(output) == Level::kAll) continue;
    TensorShape shape = {sizes[output.feature]};
    if (output.value == kIndices) shape.AddDim(context_->input(output.feature).dims());
    TF_RETURN_IF_ERROR(context_->allocate_output(i, shape, &outputs_[i]));
  }
  return absl::OkStatus();
}

void Call::CloseUp(int number) {
  const Taken& taken = taken_[number];
  const FeatureSpec& feature = attrs_.features[number];
  const TensorShape& shape = context_->input(number).shape();
  int64_t to = 0;
  for (size_t u = first_unit_[number]; u < first_unit_[number + 1]; ++u) {
    const Unit& unit = units_[u];
    int64_t from = unit.begin;
    for (const int64_t count : unit.taken) {
      for (size_t j = 0; j < feature.outputs.size(); ++j) {
        const OutputSpec& output = attrs_.outputs[feature.outputs[j]];
        if (attrs_.LevelOf(output) == Level::kAll) continue;
        Tensor* closed = outputs_[feature.outputs[j]];
        if (output.value == kIndices) {
          int64_t* indices = closed->flat<int64_t>().data() + to * shape.dims();
          for (int64_t k = 0; k < count; ++k) {
            WriteIndices(shape, taken.positions[from + k], indices + k * shape.dims());
          }
          continue;
        }
        const int64_t bytes = tensorflow::DataTypeSize(TensorType(output.dtype));
        std::memcpy(static_cast<char*>(closed->data()) + to * bytes,
                    static_cast<const char*>(taken.values[j].data()) + from * bytes,
                    count * bytes);
      }
      to += count;
      from += kBlock;
    }
  }
}

}  // namespace transforms
}  // namespace picasso
