// One call of Picasso>PackedTransforms: reads scalars and hash tables, runs every feature's
// program over its elements and fills the outputs.

#ifndef PICASSO_TF_CC_KERNELS_TRANSFORM_CALL_H_
#define PICASSO_TF_CC_KERNELS_TRANSFORM_CALL_H_

#include <cstdint>
#include <deque>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "picasso_tf/cc/kernels/transform_attrs.h"
#include "picasso_tf/cc/kernels/transform_block.h"
#include "tensorflow/core/framework/lookup_interface.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace picasso {
namespace transforms {

class Call : public Outside {
 public:
  Call(tensorflow::OpKernelContext* context, const Attrs& attrs)
      : context_(context), attrs_(attrs) {}

  absl::Status Run();

  uint64_t HashLegacy(std::string_view text) const override;
  uint64_t HashFast(std::string_view text) const override;
  uint64_t HashStrong(const uint64_t (&key)[2], std::string_view text) const override;
  bool Find(int table, DType from, DType to, int64_t size, const Slot& keys, const Slot& missing,
            Room* out) const override;

 private:
  // A run of blocks of one feature, which one thread does.
  struct Unit {
    int feature;
    int64_t begin, end;
    std::vector<int64_t> taken;  // per block
    Problem problem = Problem::kNone;
  };

  // What a feature's mask takes is put where it stood; `outputs` are then closed up.
  struct Taken {
    std::vector<tensorflow::Tensor> values;  // one for each output, unused where it takes all
    std::vector<int64_t> positions;
  };

  absl::Status CheckOthers() const;
  absl::Status BindTables();
  absl::Status BindScalars();
  absl::Status Allocate();
  void MakeUnits();
  void RunUnit(Unit* unit);
  void Store(const Block& block, int feature, int64_t at);
  absl::Status CheckUnits() const;
  absl::Status AllocateTaken();
  void CloseUp(int feature);

  tensorflow::OpKernelContext* const context_;
  const Attrs& attrs_;
  std::vector<tensorflow::core::RefCountPtr<tensorflow::lookup::LookupInterface>> tables_;
  std::vector<Slot> scalars_;
  std::deque<Room> rooms_;  // of scalars
  std::vector<tensorflow::Tensor*> outputs_;
  std::vector<Taken> taken_;  // one for each feature
  std::vector<Unit> units_;  // in the order of features
  std::vector<size_t> first_unit_;  // of each feature, and the end
  std::vector<int> masked_;  // features of which some output is a part
  mutable absl::Mutex mutex_;
  mutable absl::Status table_status_;
};

}  // namespace transforms
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_TRANSFORM_CALL_H_
