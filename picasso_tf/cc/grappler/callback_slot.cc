#include "picasso_tf/cc/grappler/callback_slot.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace picasso {

CallbackSlot& CallbackSlot::Global() {
  static CallbackSlot* const slot = new CallbackSlot;
  return *slot;
}

CallbackSlot::Call::Call(CallbackSlot& slot) : slot_(slot) {
  // Counted before `closed_` is read, while Close writes `closed_` before it reads the count: one of the two sees the
  // other, so no call slips in behind a Close that has returned 0.
  ++slot_.calls_;
  callback_ = slot_.closed_ ? nullptr : slot_.callback_.load();
}

int CallbackSlot::Close(int timeout_ms) {
  closed_ = true;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  while (calls_ > 0 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  // A thread that forked inside the callback leaves it in the child after ForgetCalls, hence the lower bound.
  return std::max(0, calls_.load());
}

}  // namespace picasso
