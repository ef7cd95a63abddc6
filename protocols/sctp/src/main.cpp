// sctp is the driver of SCTP (RFC 9260), a protocol of breedy-2015.
#include <unistd.h>

#include <algorithm>

#include "stack.hpp"

namespace linktrial {

size_t message_bytes(const Parameters& p, uint32_t fragmentation_point) {
  constexpr uint32_t kAnyPath = 512;
  if (p.options.has("message_size")) return static_cast<size_t>(p.options.number("message_size", 0));
  return fragmentation_point > 0 ? fragmentation_point : kAnyPath;
}

CookieWatch::CookieWatch(const Parameters& p, int dial)
    : timeout_(p.options.number("rto_initial", kInitialTimeoutMS) * kMillisecond), begin_(now()), dial_(dial) {}

bool CookieWatch::in_vain(bool echoed) {
  if (!echoed) return false;
  const Nanoseconds t = now();
  if (echoed_ == 0) echoed_ = t;
  // A timeout that a plan makes short makes no radio faster.
  constexpr Nanoseconds kLeast = kSecond;
  const Nanoseconds timeout = std::max(timeout_, kLeast);
  return t - echoed_ > std::max(3 * timeout, echoed_ - begin_ + timeout) + dial_ * timeout;
}

namespace {

class SctpBackend : public Backend {
 public:
  const std::vector<Option>& options() const override {
    using Type = Option::Type;
    constexpr double kMiB = 1 << 20;
    static const std::vector<Option> table = {
        {"stack", Type::kString, {"auto", "kernel", "userland"}},
        {"message_size", Type::kSize, {}, 1, 65536},
        {"nodelay", Type::kBool, {}},
        {"sack_delay", Type::kDuration, {}, 0, 500},
        {"rto_initial", Type::kDuration, {}, 1, 120000},
        {"rto_min", Type::kDuration, {}, 1, 120000},
        {"rto_max", Type::kDuration, {}, 1, 600000},
        {"max_retransmissions", Type::kInt, {}, 1, 65535},
        {"send_buffer", Type::kSize, {}, 4096, 256 * kMiB},
        {"receive_buffer", Type::kSize, {}, 4096, 256 * kMiB},
    };
    return table;
  }

  Info query(const Parameters& p) override {
    choose(p);
    Info info = stack_->info();
    std::string why;
    if (kernel_has_sctp(&why)) {
      info.choices["stack"] = {"auto", "kernel", "userland"};
    } else {
      info.choices["stack"] = {"auto", "userland"};
      info.detail["kernel_sctp"] = why;
    }
    return info;
  }

  std::unique_ptr<Listener> listen(const Parameters& p) override {
    choose(p);
    return stack_->listen(p);
  }

  std::unique_ptr<Stream> connect(const Parameters& p, Nanoseconds deadline, const std::atomic<bool>& stop) override {
    choose(p);
    return stack_->connect(p, deadline, stop);
  }

 private:
  void choose(const Parameters& p) {
    if (stack_) return;
    const Options& o = p.options;
    const int64_t initial = o.number("rto_initial", kInitialTimeoutMS);
    const int64_t least = o.number("rto_min", kLeastTimeoutMS), most = o.number("rto_max", kMostTimeoutMS);
    if (least > initial || initial > most) {
      throw Failure(code::kBadParameters, "parameters: expected rto_min ≤ rto_initial ≤ rto_max");
    }
    std::string stack = o.text("stack", "auto");
    std::string why;
    bool kernel = stack != "userland" && kernel_has_sctp(&why);
    if (stack == "kernel" && !kernel) throw Failure(code::kUnsupported, "this kernel has no SCTP (" + why + "); stack userland does without");
    stack_ = kernel ? kernel_stack() : userland_stack();
  }

  std::unique_ptr<Stack> stack_;
};

}  // namespace
}  // namespace linktrial

int main() {
  linktrial::SctpBackend backend;
  int code = linktrial::run_driver(backend);
  // usrsctp's end waits for sockets that may still be closing; this process
  // has written all its events.
  _exit(code);
}
