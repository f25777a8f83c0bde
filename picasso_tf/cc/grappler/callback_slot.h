// The one place that holds Python's callback, and knows how many threads are inside it.

#ifndef PICASSO_TF_CC_GRAPPLER_CALLBACK_SLOT_H_
#define PICASSO_TF_CC_GRAPPLER_CALLBACK_SLOT_H_

#include <atomic>

#include "picasso_tf/cc/grappler/bridge.h"

namespace picasso {

class CallbackSlot {
 public:
  // The slot of the process. Never destroyed: threads may still trace while static objects are taken down.
  static CallbackSlot& Global();

  void Set(PicassoCallback callback) { callback_ = callback; }

  // A cheap hint, for not doing work in vain. Only a Call decides.
  bool IsOpen() const { return !closed_ && callback_ != nullptr; }

  // See picasso_close.
  int Close(int timeout_ms);

  // See picasso_after_fork.
  void ForgetCalls() { calls_ = 0; }

  // Holds the slot open while one thread uses the callback. No lock is held, so any number can be inside.
  class Call {
   public:
    explicit Call(CallbackSlot& slot);
    ~Call() { --slot_.calls_; }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    // The callback, or null when there is none or the slot is closed.
    PicassoCallback callback() const { return callback_; }

   private:
    CallbackSlot& slot_;
    PicassoCallback callback_;
  };

 private:
  std::atomic<PicassoCallback> callback_{nullptr};
  std::atomic<bool> closed_{false};
  std::atomic<int> calls_{0};
};

}  // namespace picasso

#endif  // PICASSO_TF_CC_GRAPPLER_CALLBACK_SLOT_H_
