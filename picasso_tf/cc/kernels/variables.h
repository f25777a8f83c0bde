// What the packed ops need of TensorFlow's resource variables.

#ifndef PICASSO_TF_CC_KERNELS_VARIABLES_H_
#define PICASSO_TF_CC_KERNELS_VARIABLES_H_

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_var.h"

namespace picasso {

// Beyond this many entries a call makes one allocation for each list.
template <typename T>
using List = absl::InlinedVector<T, 64>;

using Vars = List<tensorflow::core::RefCountPtr<tensorflow::Var>>;

// The variables that inputs [0, count) are handles of.
absl::Status FindVars(tensorflow::OpKernelContext* context, int count, Vars* vars);

// Checks the variables of inputs 0, 1, ... as tables: rows of `dtype`. `op` begins
// the message.
absl::Status CheckTables(tensorflow::OpKernelContext* context, absl::string_view op,
                         tensorflow::DataType dtype, const Vars& vars);

enum class Access { kRead, kWrite };

// Locks on variables, taken in address order as everywhere in TensorFlow; a
// variable that comes twice is locked once. The locks, not references to the
// tensors, keep others away: a second reference would make the next update copy
// the whole table.
class Locks {
 public:
  explicit Locks(Access access) : access_(access) {}
  ~Locks();
  Locks(const Locks&) = delete;
  Locks& operator=(const Locks&) = delete;

  void Take(const Vars& vars);

 private:
  const Access access_;
  List<tensorflow::Var*> vars_;
};

// Makes the tensor of a variable, locked for writing, one that nobody else has: a
// value that was read before must stay as it was.
absl::Status MakeOwn(tensorflow::OpKernelContext* context, tensorflow::Var* var);

}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_VARIABLES_H_
