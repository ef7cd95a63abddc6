// udt is the driver of UDT 4.11 (libudt), a protocol of breedy-2015.
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "clock.hpp"
#include "driver_clock.hpp"
#include "udt_stream.hpp"

namespace linktrial {
namespace {

class UdtBackend : public Backend {
 public:
  const std::vector<Option>& options() const override {
    using Type = Option::Type;
    constexpr double kMiB = 1 << 20;
    static const std::vector<Option> table = {
        {"mss", Type::kSize, {}, 128, 9000},
        {"send_buffer", Type::kSize, {}, 65536, 256 * kMiB},
        {"receive_buffer", Type::kSize, {}, 65536, 256 * kMiB},
        {"udp_send_buffer", Type::kSize, {}, 4096, 256 * kMiB},
        {"udp_receive_buffer", Type::kSize, {}, 4096, 256 * kMiB},
        {"flight_window", Type::kInt, {}, 32, 1e6},
        {"max_bandwidth", Type::kInt, {}, 1000, 1e11},
        {"clock", Type::kString, {"system", "tsc"}},
    };
    return table;
  }

  // Every role asks this before it is ready. The clock is chosen here, because the
  // library takes 100 ms to measure the counter's frequency, which is no time to
  // connect.
  Info query(const Parameters& p) override {
    if (p.options.text("clock", "system") == "tsc") {
      use_time_stamp_counter();
    } else {
      use_system_clock();
    }
    return udt_info(p);
  }

  std::unique_ptr<Listener> listen(const Parameters& p) override {
    start();
    Address local = parse_address(p.local, "local");
    auto udp = std::make_shared<UdpSocket>(local, code::kListenFailed);
    UDTSOCKET u = udt_socket(p, *udp, local.family(), code::kListenFailed);
    auto listener = std::make_unique<UdtListener>(u, udp, p);
    if (UDT::listen(u, 128) == UDT::ERROR) throw Failure(code::kListenFailed, udt_error("UDT listen " + local.text()));
    udp->idle();
    return listener;
  }

  std::unique_ptr<Stream> connect(const Parameters& p, Nanoseconds deadline, const std::atomic<bool>& stop) override {
    start();
    Address remote = parse_address(p.remote, "remote");
    Address local = client_address(p.local, remote);
    check_route(local, remote);
    for (;;) {
      if (auto stream = dial(p, local, remote, deadline, stop)) return stream;
      if (stop) throw Failure(code::kAborted, "SIGTERM while connecting");
      if (now() >= deadline) throw Failure(code::kConnectTimeout, "no answer from " + remote.text() + " within limits.connect_ms");
    }
  }

 private:
  static void start() {
    if (UDT::startup() == UDT::ERROR) throw Failure(code::kInternal, udt_error("UDT startup"));
  }

  // One dial; null where it is not answered. Asked every 250 ms, it goes on
  // until the deadline (handshake.cpp). The library's blocking connect
  // cannot be ended at a deadline, so its state is looked at instead. (An
  // answer that comes within some 100 µs, before the library's connect has
  // returned, is lost to it and asked for again after 250 ms: that can happen
  // on a loopback interface, and to the time of the connect alone.)
  static std::unique_ptr<Stream> dial(const Parameters& p, const Address& local, const Address& remote, Nanoseconds deadline,
                                      const std::atomic<bool>& stop) {
    auto udp = std::make_shared<UdpSocket>(local, code::kUnreachable);
    UDTSOCKET u = udt_socket(p, *udp, local.family(), code::kUnreachable);
    bool blocking = false;
    UDT::setsockopt(u, 0, UDT_RCVSYN, &blocking, sizeof blocking);
    const Nanoseconds begin = now();
    if (UDT::connect(u, remote.get(), static_cast<int>(remote.length)) == UDT::ERROR) {
      std::string text = udt_error("UDT connect " + remote.text());
      UDT::close(u);
      throw Failure(code::kUnreachable, text);
    }
    for (Nanoseconds t = begin; !stop && t < deadline; t = now()) {
      UDTSTATUS status = UDT::getsockstate(u);
      if (status == CONNECTED) return std::make_unique<UdtStream>(u, udp, p);
      if (status != CONNECTING) break;
      // The wait is part of the connection time: at most a fiftieth of it.
      const Nanoseconds step = std::clamp((t - begin) / 50, kMillisecond / 2, 20 * kMillisecond);
      std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(step, deadline - t)));
    }
    UDT::close(u);
    return nullptr;
  }
};

}  // namespace
}  // namespace linktrial

int main() {
  linktrial::UdtBackend backend;
  int code = linktrial::run_driver(backend);
  // The library's cleanup waits more than a second for its own threads; this
  // process has written all its events.
  _exit(code);
}
