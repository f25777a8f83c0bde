// One call of Picasso>PackedCrosses: hashes the strings of all columns, once each, and fills the
// outputs of every cross.

#ifndef PICASSO_TF_CC_KERNELS_CROSS_CALL_H_
#define PICASSO_TF_CC_KERNELS_CROSS_CALL_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "picasso_tf/cc/kernels/cross_attrs.h"
#include "picasso_tf/cc/kernels/cross_loops.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace picasso {
namespace crosses {

class Call {
 public:
  Call(tensorflow::OpKernelContext* context, const Attrs& attrs)
      : context_(context), attrs_(attrs) {}

  absl::Status Run();

 private:
  struct BoundColumn {
    Column column;
    int64_t rows;
    std::vector<uint64_t> fingerprints;  // of strings
    std::vector<int64_t> row_begin;      // of a sparse column
  };

  struct BoundCross {
    Cross cross;
    int64_t rows;
    bool is_plain;
    std::vector<int64_t> begin;  // of each row, unless it is plain
    int64_t most = 1;            // crosses of a row
    Results results;

    int64_t Total() const { return is_plain ? rows : begin[rows]; }
  };

  // A run of a column's strings or of a cross's rows, which one thread does.
  struct Unit {
    int number;
    int64_t begin, end;
  };

  absl::Status BindColumns();
  absl::Status BindSparse(int number);
  absl::Status BindDense(int number);
  void HashStrings();
  absl::Status BindCrosses();
  absl::Status Allocate();
  void WriteCrosses();
  template <typename Work>
  void InUnits(const std::vector<int64_t>& sizes, int64_t unit, const Work& work);

  tensorflow::OpKernelContext* const context_;
  const Attrs& attrs_;
  std::vector<BoundColumn> columns_;
  std::vector<BoundCross> crosses_;
};

}  // namespace crosses
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_CROSS_CALL_H_
