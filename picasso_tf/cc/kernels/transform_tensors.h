// Elements of TensorFlow's tensors as a transform program takes and gives them.

#ifndef PICASSO_TF_CC_KERNELS_TRANSFORM_TENSORS_H_
#define PICASSO_TF_CC_KERNELS_TRANSFORM_TENSORS_H_

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "picasso_tf/cc/kernels/transform_block.h"
#include "tensorflow/core/framework/tensor.h"

namespace picasso {
namespace transforms {

// Views elements [begin, begin + size) of a tensor, through `room_` where they have to be
// widened.
class Loaded {
 public:
  Slot Load(DType dtype, const tensorflow::Tensor& tensor, int64_t begin, int64_t size) {
    Slot slot;
    switch (dtype) {
      case DType::kBool:
        slot.ints = Widened(tensor.flat<bool>().data() + begin, size, &room_.ints);
        break;
      case DType::kInt32:
        slot.ints = Widened(tensor.flat<int32_t>().data() + begin, size, &room_.ints);
        break;
      case DType::kInt64:
        slot.ints = {tensor.flat<int64_t>().data() + begin, 1};
        break;
      case DType::kFloat32:
        slot.floats = {tensor.flat<float>().data() + begin, 1};
        break;
      case DType::kFloat64:
        slot.doubles = {tensor.flat<double>().data() + begin, 1};
        break;
      case DType::kString:
        slot.strings = Widened(tensor.flat<tensorflow::tstring>().data() + begin, size, &room_.strings);
        break;
    }
    return slot;
  }

 private:
  template <typename From, typename To>
  static Elements<To> Widened(const From* from, int64_t size, std::vector<To>* to) {
    to->resize(size);
    std::copy_n(from, size, to->begin());
    return {to->data(), 1};
  }

  Room room_;
};

// Writes `size` elements of a slot to elements [at, at + size) of a tensor of its dtype.
inline void StoreTo(DType dtype, const Slot& slot, int64_t size, int64_t at, tensorflow::Tensor* tensor) {
  const auto copy = [&](auto elements, auto* to) {
    for (int64_t i = 0; i < size; ++i) to[at + i] = elements[i];
  };
  switch (dtype) {
    case DType::kBool:
      return copy(slot.ints, tensor->flat<bool>().data());
    case DType::kInt32:
      return copy(slot.ints, tensor->flat<int32_t>().data());
    case DType::kInt64:
      return copy(slot.ints, tensor->flat<int64_t>().data());
    case DType::kFloat32:
      return copy(slot.floats, tensor->flat<float>().data());
    case DType::kFloat64:
      return copy(slot.doubles, tensor->flat<double>().data());
    case DType::kString:
      for (int64_t i = 0; i < size; ++i) {
        const std::string_view text = slot.strings[i];
        tensor->flat<tensorflow::tstring>()(at + i).assign_as_view(text.data(), text.size());
      }
  }
}

// Where element `position` of a tensor of a shape is.
inline void WriteIndices(const tensorflow::TensorShape& shape, int64_t position, int64_t* indices) {
  for (int d = shape.dims() - 1; d >= 0; --d) {
    indices[d] = position % shape.dim_size(d);
    position /= shape.dim_size(d);
  }
}

}  // namespace transforms
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_TRANSFORM_TENSORS_H_
