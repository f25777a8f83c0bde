// One call of a packed update: locks the variables, binds inputs to attributes and
// lists the tables. The same on every device.

#ifndef PICASSO_TF_CC_KERNELS_PACKED_UPDATE_CALL_H_
#define PICASSO_TF_CC_KERNELS_PACKED_UPDATE_CALL_H_

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "picasso_tf/cc/kernels/packed_update.h"
#include "picasso_tf/cc/kernels/packed_update_attrs.h"
#include "picasso_tf/cc/kernels/variables.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace picasso {
namespace packed_update {

class Call {
 public:
  Call(tensorflow::OpKernelContext* context, const Attrs& attrs)
      : context_(context), attrs_(attrs) {}

  // Locks all variables for writing, until the call goes out of scope, and binds
  // the tables. Nothing is written yet.
  absl::Status Prepare();

  // Finds how ids of table `table` that were pooled scale their gradients. False: one
  // belongs to a row that its gradient does not have. Of different tables at once.
  bool FindScales(size_t table);

  // After the ids were checked: makes the variables that will be written ones that
  // nobody else reads, and lets the tables point to them.
  absl::Status OpenStates();

  const std::vector<Table>& tables() const { return tables_; }

  // The error for the first id that is out of range: lowest segment, then lowest
  // position. Reads ids on the host.
  absl::Status BadIdError() const;

  // Likewise after FindScales was false.
  absl::Status BadPoolError();

 private:
  const tensorflow::Tensor& State(const TableSpec& spec, int state) const {
    return *vars_[spec.states[state]]->tensor();
  }
  const tensorflow::Tensor& Ids(const SegmentSpec& spec) const {
    return context_->input(attrs_.IdsInput(spec.ids));
  }
  const tensorflow::Tensor& Gradient(int gradient) const {
    return context_->input(attrs_.GradientInput(gradient));
  }
  std::string VariableName(const TableSpec& spec, int state) const;

  absl::Status FindInitialised();
  absl::Status CheckStates(const TableSpec& spec) const;
  absl::Status BindTable(const TableSpec& spec, Table* table);
  absl::Status BindSegment(const TableSpec& owner, size_t at, Table* table);
  absl::Status BindGradient(const std::string& reader, const GradientSpec& spec,
                            const Segment& segment, int64_t row, GradientRows* rows) const;
  absl::Status BindPool(const std::string& reader, const GradientSpec& spec,
                        const Segment& segment, int64_t row, ScaledPool* pool);
  absl::Status BindRowsOfPool(const std::string& reader, const GradientSpec& spec,
                              const Segment& segment, ScaledPool* pool) const;

  tensorflow::OpKernelContext* const context_;
  const Attrs& attrs_;
  Vars vars_;
  Locks locks_{Access::kWrite};  // released before the variables are
  std::vector<Table> tables_;
  std::vector<Segment> segments_;  // what the tables point to
  std::vector<GradientRows> gradients_;
  std::vector<ScaledPool> pools_;  // one for each of those, if there are any
  std::deque<std::vector<char>> zeros_;
  std::vector<void*> states_;
  std::vector<const void*> table_gradients_;
  std::vector<const void*> parameters_;
};

}  // namespace packed_update
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_PACKED_UPDATE_CALL_H_
