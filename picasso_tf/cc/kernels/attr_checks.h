// Checks that the attributes of the packed ops have in common. `op` begins each
// message.

#ifndef PICASSO_TF_CC_KERNELS_ATTR_CHECKS_H_
#define PICASSO_TF_CC_KERNELS_ATTR_CHECKS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

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

// `lookup_max_norm`: empty, or one entry for each of `count` lookups.
inline absl::Status CheckMaxNorms(absl::string_view op, const std::vector<float>& max_norms,
                                  size_t count, bool can_clip) {
  if (max_norms.empty()) return absl::OkStatus();
  const absl::Status status =
      CheckLength(op, "lookup_max_norm", max_norms.size(), count, "lookup");
  if (!status.ok()) return status;
  for (size_t i = 0; i < count; ++i) {
    if (max_norms[i] == 0 || (max_norms[i] > 0 && can_clip)) continue;
    return InvalidIn(op, "`lookup_max_norm[", i, "]` must be 0, or above 0 for rows of float or ",
                     "double, but it is ", max_norms[i], ".");
  }
  return absl::OkStatus();
}

}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_ATTR_CHECKS_H_
