// cxxtcp is TCP under the shared transfer: every platform's tests can play the
// other end of it byte by byte, which libudt and SCTP do not let them.
#include <fcntl.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "address.hpp"
#include "backend.hpp"

namespace linktrial {
namespace {

constexpr int kLookMS = 50;  // for an interruption

class TcpStream : public Stream {
 public:
  TcpStream(int fd, const Parameters& p) : fd_(fd), unit_(static_cast<size_t>(p.options.number("write_unit", 0))) {}
  ~TcpStream() override { ::close(fd_); }

  size_t write(const uint8_t* b, size_t n, Nanoseconds deadline) override {
    for (;;) {
      ssize_t took = ::send(fd_, b, n, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (took > 0) return static_cast<size_t>(took);
      if (errno != EAGAIN) throw Failure(code::kReset, errno_text("send", errno));
      wait(POLLOUT, deadline);
    }
  }
  size_t read(uint8_t* b, size_t n, Nanoseconds deadline) override {
    for (;;) {
      ssize_t got = ::recv(fd_, b, n, MSG_DONTWAIT);
      if (got >= 0) return static_cast<size_t>(got);
      if (errno != EAGAIN) throw Failure(code::kReset, errno_text("receive", errno));
      wait(POLLIN, deadline);
    }
  }
  size_t write_unit(size_t about) const override { return unit_ > 0 ? unit_ : about; }

  std::optional<Backlog> backlog() override {
    int unsent = 0;
    tcp_info info{};
    socklen_t length = sizeof info;
    if (::ioctl(fd_, SIOCOUTQNSD, &unsent) < 0 || ::getsockopt(fd_, IPPROTO_TCP, TCP_INFO, &info, &length) < 0) return std::nullopt;
    return Backlog{unsent, int64_t{info.tcpi_snd_cwnd} * info.tcpi_snd_mss, Nanoseconds{info.tcpi_rtt} * 1000};
  }
  void state(Sample& s, bool sender) override {
    int queued = 0;
    if (sender && ::ioctl(fd_, SIOCOUTQ, &queued) == 0) s.acked_bytes = s.sent_bytes - queued;
  }
  Info info() const override { return Info{"linux-kernel", {}, {}}; }
  void close_first(Nanoseconds) noexcept override { ::shutdown(fd_, SHUT_WR); }
  void close_second(Nanoseconds, Nanoseconds deadline) noexcept override {
    uint8_t b[64];
    try {
      while (read(b, sizeof b, deadline) > 0) {
      }
    } catch (const Failure&) {
    } catch (const Timeout&) {
    }
  }
  void interrupt() override {
    interrupted_ = true;
    linger now_or_never{1, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now_or_never, sizeof now_or_never);
    ::shutdown(fd_, SHUT_RDWR);
  }

 private:
  void wait(short events, Nanoseconds deadline) {
    if (interrupted_) throw Failure(code::kReset, "the connection was given up");
    if (now() >= deadline) throw Timeout{};
    pollfd p{fd_, events, 0};
    ::poll(&p, 1, left_ms(deadline, kLookMS));
  }

  const int fd_;
  const size_t unit_;
  std::atomic<bool> interrupted_{false};
};

class TcpListener : public Listener {
 public:
  TcpListener(int fd, const Parameters& p) : fd_(fd), parameters_(p) {}
  ~TcpListener() override { ::close(fd_); }
  std::unique_ptr<Stream> accept() override {
    while (!interrupted_) {
      pollfd p{fd_, POLLIN, 0};
      if (::poll(&p, 1, kLookMS) <= 0) continue;
      int fd = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd >= 0) return std::make_unique<TcpStream>(fd, parameters_);
    }
    return nullptr;
  }
  void interrupt() override { interrupted_ = true; }

 private:
  const int fd_;
  const Parameters parameters_;
  std::atomic<bool> interrupted_{false};
};

class TcpBackend : public Backend {
 public:
  const std::vector<Option>& options() const override {
    static const std::vector<Option> table = {{"write_unit", Option::Type::kSize, {}, 1, 65536}};
    return table;
  }
  Info query(const Parameters&) override { return Info{"linux-kernel", {}, {}}; }

  std::unique_ptr<Listener> listen(const Parameters& p) override {
    Address local = parse_address(p.local, "local");
    int fd = socket(local, code::kListenFailed);
    int one = 1;
    ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (::bind(fd, local.get(), local.length) < 0 || ::listen(fd, 128) < 0) {
      const int err = errno;
      ::close(fd);
      throw Failure(code::kListenFailed, errno_text("listen " + local.text(), err));
    }
    return std::make_unique<TcpListener>(fd, p);
  }

  std::unique_ptr<Stream> connect(const Parameters& p, Nanoseconds, const std::atomic<bool>&) override {
    Address remote = parse_address(p.remote, "remote");
    Address local = client_address(p.local, remote);
    int fd = socket(remote, code::kUnreachable);
    if (::bind(fd, local.get(), local.length) < 0 || ::connect(fd, remote.get(), remote.length) < 0) {
      const int err = errno;
      ::close(fd);
      throw Failure(err == ECONNREFUSED ? code::kConnectRefused : code::kUnreachable, errno_text("connect " + remote.text(), err));
    }
    return std::make_unique<TcpStream>(fd, p);
  }

 private:
  static int socket(const Address& a, const char* failing) {
    int fd = ::socket(a.family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) throw Failure(failing, errno_text("TCP socket", errno));
    return fd;
  }
};

}  // namespace
}  // namespace linktrial

int main() {
  linktrial::TcpBackend backend;
  return linktrial::run_driver(backend);
}
