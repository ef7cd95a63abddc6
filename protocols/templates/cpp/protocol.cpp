// TCP, from POSIX sockets. THE FILE TO REPLACE: for another protocol, write its classes
// anew. linktrial/backend.hpp says what the rest needs of a protocol.
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "address.hpp"
#include "backend.hpp"

namespace linktrial {
namespace {

constexpr int kLookMS = 50;  // how long a wait lasts before it looks whether it shall end

// Waits until a descriptor is ready for the events of poll(2). Throws Timeout at the
// deadline; false once interrupted is set.
bool wait_for(int fd, short events, Nanoseconds deadline, const std::atomic<bool>& interrupted) {
  while (!interrupted) {
    if (now() >= deadline) throw Timeout{};
    pollfd p{fd, events, 0};
    if (::poll(&p, 1, left_ms(deadline, kLookMS)) > 0) return true;
  }
  return false;
}

Failure failure(const char* code, const std::string& doing, int error) { return Failure(code, errno_text(doing, error)); }

class TcpStream : public Stream {
 public:
  // As long as the transfer has not ended, the end of the process in whatever way
  // resets the connection (a linger of 0).
  TcpStream(int fd, const Parameters& p) : fd_(fd) {
    set_linger(1);
    const int on = p.options.flag("nodelay", true) ? 1 : 0;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  ~TcpStream() override { ::close(fd_); }

  size_t write(const uint8_t* b, size_t n, Nanoseconds deadline) override {
    for (;;) {
      wait(POLLOUT, deadline);
      const ssize_t took = ::send(fd_, b, n, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (took >= 0) return static_cast<size_t>(took);
      if (errno != EAGAIN && errno != EINTR) throw failure(code::kReset, "send", errno);
    }
  }

  size_t read(uint8_t* b, size_t n, Nanoseconds deadline) override {
    for (;;) {
      wait(POLLIN, deadline);
      const ssize_t got = ::recv(fd_, b, n, MSG_DONTWAIT);
      if (got >= 0) return static_cast<size_t>(got);
      if (errno != EAGAIN && errno != EINTR) throw failure(code::kReset, "receive", errno);
    }
  }

  size_t write_unit(size_t about) const override { return about; }

  std::optional<Backlog> backlog() override {
    int unsent = 0;
    tcp_info info{};
    socklen_t length = sizeof info;
    if (::ioctl(fd_, SIOCOUTQNSD, &unsent) < 0 || ::getsockopt(fd_, IPPROTO_TCP, TCP_INFO, &info, &length) < 0) return std::nullopt;
    return Backlog{unsent, int64_t{info.tcpi_snd_cwnd} * info.tcpi_snd_mss, Nanoseconds{info.tcpi_rtt} * 1000};
  }

  void state(Sample&, bool) override {}
  Info info() const override { return {"linux-kernel", {}, {}}; }

  // The destructor's close is in order then.
  void close_first(Nanoseconds) noexcept override { set_linger(0); }

  void close_second(Nanoseconds, Nanoseconds deadline) noexcept override {
    try {
      uint8_t b;
      read(&b, 1, deadline);
    } catch (const Timeout&) {
    } catch (const Failure&) {
    }
    if (!interrupted_) set_linger(0);
  }

  // What waits throws within kLookMS, and the destructor resets the connection.
  void interrupt() override { interrupted_ = true; }

 private:
  void wait(short events, Nanoseconds deadline) {
    if (!wait_for(fd_, events, deadline, interrupted_)) throw Failure(code::kReset, "the connection was given up");
  }
  void set_linger(int on) noexcept {
    const linger l{on, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &l, sizeof l);
  }

  const int fd_;
  std::atomic<bool> interrupted_{false};
};

class TcpListener : public Listener {
 public:
  explicit TcpListener(const Parameters& p) : parameters_(p) {
    Address local = parse_address(p.local, "local");
    const int on = 1;
    fd_ = ::socket(local.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    ::setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);  // also while connections of an earlier server are ending
    if (fd_ < 0 || ::bind(fd_, local.get(), local.length) < 0 || ::listen(fd_, 128) < 0) {
      throw failure(code::kListenFailed, "listen at " + local.text(), errno);
    }
  }
  ~TcpListener() override { ::close(fd_); }

  std::unique_ptr<Stream> accept() override {
    while (!interrupted_) {
      pollfd p{fd_, POLLIN, 0};
      ::poll(&p, 1, -1);  // an idle server does not wake up
      const int fd = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd >= 0) return std::make_unique<TcpStream>(fd, parameters_);
      if (interrupted_ || errno == EAGAIN || errno == EINTR) continue;
      log_line(errno_text("accept", errno));  // no descriptors left, or gone already
      std::this_thread::sleep_for(std::chrono::milliseconds(kLookMS));
    }
    return nullptr;
  }
  void interrupt() override {
    interrupted_ = true;
    ::shutdown(fd_, SHUT_RDWR);  // ends the wait
  }

 private:
  const Parameters& parameters_;
  int fd_;
  std::atomic<bool> interrupted_{false};
};

// Asks the kernel once; returns the errno of a connection that did not come about.
int ask(int fd, const Address& to, Nanoseconds deadline, const std::atomic<bool>& stop) {
  if (::connect(fd, to.get(), to.length) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  if (!wait_for(fd, POLLOUT, deadline, stop)) throw Failure(code::kAborted, "SIGTERM while connecting");
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0 ? errno : error;
}

const char* code_of(int error) {
  switch (error) {
    case ECONNREFUSED: return code::kConnectRefused;
    case ENETUNREACH: case EHOSTUNREACH: case ENETDOWN: case EADDRNOTAVAIL: return code::kUnreachable;
    case ECONNRESET: return code::kReset;
  }
  return code::kInternal;
}

class TcpBackend : public Backend {
 public:
  // Those of driver.yaml.
  const std::vector<Option>& options() const override {
    static const std::vector<Option> table = {{"nodelay", Option::Type::kBool, {}}};
    return table;
  }

  Info query(const Parameters&) override { return {"linux-kernel", {}, {}}; }
  std::unique_ptr<Listener> listen(const Parameters& p) override { return std::make_unique<TcpListener>(p); }

  std::unique_ptr<Stream> connect(const Parameters& p, Nanoseconds deadline, const std::atomic<bool>& stop) override {
    const Address remote = parse_address(p.remote, "remote"), local = client_address(p.local, remote);
    try {
      for (;;) {
        const int fd = ::socket(remote.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0) throw failure(code::kInternal, "socket", errno);
        auto stream = std::make_unique<TcpStream>(fd, p);
        if (::bind(fd, local.get(), local.length) < 0) throw failure(code::kUnreachable, "bind " + local.text(), errno);
        const int error = ask(fd, remote, deadline, stop);
        if (error == 0) return stream;
        // The kernel's own attempts may be over before the limit.
        if (error != ETIMEDOUT) throw failure(code_of(error), "connect to " + remote.text(), error);
        std::this_thread::sleep_for(std::chrono::milliseconds(kLookMS));
      }
    } catch (const Timeout&) {
      throw Failure(code::kConnectTimeout, "no connection to " + remote.text() + " within limits.connect_ms");
    }
  }
};

}  // namespace
}  // namespace linktrial

int main() {
  linktrial::TcpBackend backend;
  return linktrial::run_driver(backend);
}
