// FarmHash's Fingerprint64, which TensorFlow's framework library exports. The wheel has no header
// that declares it.

#ifndef PICASSO_TF_CC_KERNELS_FINGERPRINT_H_
#define PICASSO_TF_CC_KERNELS_FINGERPRINT_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace farmhashna {
uint64_t Hash64(const char* text, size_t size);
}

namespace picasso {

inline uint64_t Fingerprint(std::string_view text) {
  return farmhashna::Hash64(text.data(), text.size());
}

}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_FINGERPRINT_H_
