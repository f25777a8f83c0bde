// Checks that the attributes of the packed ops have in common. `op` begins each
// message.

#ifndef PICASSO_TF_CC_KERNELS_ATTR_CHECKS_H_
#define PICASSO_TF_CC_KERNELS_ATTR_CHECKS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace picasso {

template <typename... Args>
absl::Status InvalidIn(absl::string_view op, const Args&... args) {
  return absl::InvalidArgumentError(absl::StrCat(op, ": ", args...));
}

inline absl::Status CheckLength(absl::string_view op, absl::string_view name, size_t found,
                                size_t wanted, absl::string_view of) {
  if (found == wanted) return absl::OkStatus();
  return InvalidIn(op, "`", name, "` must have one entry for each ", of, " (", wanted,
                   "), but it has ", found, ".");
}

inline absl::Status CheckIndex(absl::string_view op, absl::string_view name, size_t at,
                               int64_t found, int64_t begin, int64_t end) {
  if (begin <= found && found < end) return absl::OkStatus();
  return InvalidIn(op, "`", name, "[", at, "]` must be in [", begin, ", ", end, "), but it is ",
                   found, ".");
}

}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_ATTR_CHECKS_H_
