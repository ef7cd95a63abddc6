// What SIGTERM interrupts: a blocking call registers an action that ends it.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <mutex>

namespace linktrial {

class Interrupts {
 public:
  using Action = std::function<void()>;

  // Holds an action for as long as it lives; the action is called at once when
  // the stop was already asked for.
  class Guard {
   public:
    Guard(Interrupts& owner, Action action) : owner_(owner) {
      std::lock_guard<std::mutex> lock(owner_.mutex_);
      if (owner_.stop_) action();
      at_ = owner_.actions_.insert(owner_.actions_.end(), std::move(action));
    }
    ~Guard() {
      std::lock_guard<std::mutex> lock(owner_.mutex_);
      owner_.actions_.erase(at_);
    }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    Interrupts& owner_;
    std::list<Action>::iterator at_;
  };

  void stop() {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
    for (auto& action : actions_) action();
  }
  const std::atomic<bool>& stopped() const { return stop_; }

 private:
  std::mutex mutex_;
  std::atomic<bool> stop_{false};
  std::list<Action> actions_;
};

}  // namespace linktrial
