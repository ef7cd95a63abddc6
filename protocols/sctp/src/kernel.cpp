// SCTP of the Linux kernel: one-to-one sockets, by the plain socket interface
// (RFC 6458) and the kernel's own header.
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <fstream>
#include <sstream>

// After the headers above, whose types it uses without naming them.
#include <linux/sctp.h>

#include "association.hpp"
#include "stack.hpp"
#include "transfer.hpp"

namespace linktrial {
namespace {

constexpr int kLongestWaitMS = 3'600'000;
constexpr int kBacklog = 128;

template <typename T>
void set(int fd, int level, int option, const T& value, const char* name) {
  if (::setsockopt(fd, level, option, &value, sizeof value) < 0) {
    throw Failure(code::kInternal, errno_text(std::string("SCTP option ") + name, errno));
  }
}

Info kernel_info() {
  Info info;
  info.implementation = "linux-kernel";
  info.detail["encapsulation"] = "none (IP protocol 132)";
  return info;
}

void set_options(int fd, const Parameters& p) {
  set_association(p.options, {}, {}, [fd](int level, int option, const auto& value, const char* name) { set(fd, level, option, value, name); });
}

// A socket and the event that wakes the threads that wait for it.
class Socket {
 public:
  explicit Socket(int fd) : fd_(fd), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (wake_ < 0) {
      int err = errno;
      ::close(fd_);
      throw Failure(code::kInternal, errno_text("eventfd", err));
    }
  }
  ~Socket() {
    ::close(fd_);
    ::close(wake_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  int fd() const { return fd_; }
  // The close sends ABORT instead of SHUTDOWN.
  void abort_on_close() noexcept {
    linger now_or_never{1, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now_or_never, sizeof now_or_never);
  }
  bool interrupted() const { return interrupted_; }
  void interrupt() {
    interrupted_ = true;
    uint64_t one = 1;
    // It fails only when it is already set.
    if (::write(wake_, &one, sizeof one) < 0) return;
  }
  // Waits for events on the socket; false at the deadline or when interrupted.
  bool wait(short events, Nanoseconds deadline) {
    while (!interrupted_) {
      pollfd fds[2] = {{fd_, events, 0}, {wake_, POLLIN, 0}};
      int n = ::poll(fds, 2, left_ms(deadline, kLongestWaitMS));
      if (n < 0 && errno != EINTR) throw Failure(code::kInternal, errno_text("poll", errno));
      if (n > 0 && fds[0].revents != 0) return !interrupted_;
      if (n == 0 && now() >= deadline) return false;
    }
    return false;
  }

 private:
  const int fd_;
  const int wake_;
  std::atomic<bool> interrupted_{false};
};

class KernelStream : public Stream {
 public:
  KernelStream(std::unique_ptr<Socket> socket, const Parameters& p) : socket_(std::move(socket)) {
    sctp_status status{};
    socklen_t length = sizeof status;
    if (::getsockopt(socket_->fd(), IPPROTO_SCTP, SCTP_STATUS, &status, &length) == 0) {
      fragment_ = std::max<uint32_t>(1, status.sstat_fragmentation_point);
    }
    message_ = message_bytes(p, fragment_);
  }

  size_t write(const uint8_t* b, size_t n, Nanoseconds deadline) override {
    for (;;) {
      alive();
      ssize_t took = ::send(socket_->fd(), b, n, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (took > 0) {
        taken_chunks_ += (static_cast<size_t>(took) + fragment_ - 1) / fragment_;
        return static_cast<size_t>(took);
      }
      if (took < 0 && errno != EAGAIN && errno != EINTR) lost("SCTP send", errno);
      wait(POLLOUT, deadline);
    }
  }

  size_t read(uint8_t* b, size_t n, Nanoseconds deadline) override {
    for (;;) {
      alive();
      // Not subscribed to notifications, so everything that comes is data.
      ssize_t got = ::recv(socket_->fd(), b, n, MSG_DONTWAIT);
      if (got >= 0) return static_cast<size_t>(got);
      if (errno != EAGAIN && errno != EINTR) lost("SCTP receive", errno);
      wait(POLLIN, deadline);
    }
  }

  size_t write_unit(size_t) const override { return message_; }

  // The kernel does not report what it has not sent, but how many chunks it has
  // sent once.
  std::optional<Backlog> backlog() override {
    sctp_status status{};
    socklen_t length = sizeof status;
    if (::getsockopt(socket_->fd(), IPPROTO_SCTP, SCTP_STATUS, &status, &length) < 0) return std::nullopt;
    sctp_assoc_stats stats{};
    length = sizeof stats;
    if (::getsockopt(socket_->fd(), IPPROTO_SCTP, SCTP_GET_ASSOC_STATS, &stats, &length) < 0) return std::nullopt;
    Backlog b;
    const int64_t chunks = static_cast<int64_t>(taken_chunks_) - static_cast<int64_t>(stats.sas_oodchunks);
    b.unsent_bytes = std::max<int64_t>(0, chunks) * static_cast<int64_t>(std::min<size_t>(message_, fragment_));
    b.window_bytes = status.sstat_primary.spinfo_cwnd;
    b.round_trip = int64_t{status.sstat_primary.spinfo_srtt} * kMillisecond;
    return b;
  }

  void state(Sample& s, bool sender) override {
    sctp_status status{};
    socklen_t length = sizeof status;
    if (::getsockopt(socket_->fd(), IPPROTO_SCTP, SCTP_STATUS, &status, &length) < 0) return;
    const sctp_paddrinfo& path = status.sstat_primary;
    s.srtt_us = int64_t{path.spinfo_srtt} * 1000;
    s.rto_us = int64_t{path.spinfo_rto} * 1000;
    s.more["path_mtu_bytes"] = path.spinfo_mtu;
    sctp_assoc_stats stats{};
    length = sizeof stats;
    bool counted = ::getsockopt(socket_->fd(), IPPROTO_SCTP, SCTP_GET_ASSOC_STATS, &stats, &length) == 0;
    if (counted) {
      s.more["sent_packets"] = static_cast<double>(stats.sas_opackets);
      s.more["received_packets"] = static_cast<double>(stats.sas_ipackets);
    }
    if (!sender) {
      if (counted) s.more["duplicate_chunks"] = static_cast<double>(stats.sas_idupchunks);
      return;
    }
    s.cwnd_bytes = path.spinfo_cwnd;
    s.more["peer_window_bytes"] = status.sstat_rwnd;
    s.flight_bytes = int64_t{status.sstat_unackdata} * static_cast<int64_t>(std::min<size_t>(message_, fragment_));
    if (!counted) return;
    s.retransmits = static_cast<int64_t>(stats.sas_rtxchunks);
    s.more["largest_rto_ms"] = static_cast<double>(stats.sas_maxrto);
    // Chunks sent for the first time, less those outstanding, less the one of
    // the header; exact while each message is one chunk.
    if (message_ <= fragment_) {
      int64_t chunks = static_cast<int64_t>(stats.sas_oodchunks) - status.sstat_unackdata - 1;
      s.acked_bytes = std::max<int64_t>(0, chunks) * static_cast<int64_t>(message_);
    }
  }

  Info info() const override { return kernel_info(); }

  // The kernel goes on with the SHUTDOWN after the descriptor, and the process,
  // are gone.
  void close_first(Nanoseconds) noexcept override { ::shutdown(socket_->fd(), SHUT_WR); }

  void close_second(Nanoseconds patience, Nanoseconds deadline) noexcept override {
    auto acknowledged = [this] {
      sctp_status status{};
      socklen_t length = sizeof status;
      return ::getsockopt(socket_->fd(), IPPROTO_SCTP, SCTP_STATUS, &status, &length) == 0 && status.sstat_unackdata == 0;
    };
    if (!wait_for_end(*this, patience, deadline, acknowledged)) socket_->abort_on_close();
  }

  void interrupt() override {
    socket_->abort_on_close();
    socket_->interrupt();
  }

 private:
  void alive() const {
    if (socket_->interrupted()) throw Failure(code::kReset, "the association was given up");
  }
  void wait(short events, Nanoseconds deadline) {
    if (!socket_->wait(events, deadline)) {
      alive();
      throw Timeout{};
    }
  }
  [[noreturn]] static void lost(const char* doing, int err) { throw Failure(code::kReset, errno_text(doing, err)); }

  std::unique_ptr<Socket> socket_;
  uint32_t fragment_ = 1;
  size_t message_ = 0;
  uint64_t taken_chunks_ = 0;  // of the thread that writes
};

std::unique_ptr<Socket> open_socket(const Parameters& p, const Address& local, const char* failing) {
  int fd = ::socket(local.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_SCTP);
  if (fd < 0) throw Failure(failing, errno_text("SCTP socket", errno));
  auto socket = std::make_unique<Socket>(fd);
  set_options(fd, p);
  mark_socket(fd, local.family(), p.dscp);
  set<int>(fd, SOL_SOCKET, SO_REUSEADDR, 1, "SO_REUSEADDR");
  if (::bind(fd, local.get(), local.length) < 0) throw Failure(failing, errno_text("SCTP bind " + local.text(), errno));
  return socket;
}

class KernelListener : public Listener {
 public:
  KernelListener(std::unique_ptr<Socket> socket, const Parameters& p) : socket_(std::move(socket)), parameters_(p) {}

  std::unique_ptr<Stream> accept() override {
    while (socket_->wait(POLLIN, kNever)) {
      // Accepted sockets inherit the listener's options (RFC 6458, section 4.1.4).
      int fd = ::accept4(socket_->fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (fd >= 0) {
        auto accepted = std::make_unique<Socket>(fd);
        // The octet of the IP header is none of SCTP's options.
        mark_socket(fd, parse_address(parameters_.local, "local").family(), parameters_.dscp);
        return std::make_unique<KernelStream>(std::move(accepted), parameters_);
      }
      if (errno == EBADF || errno == EINVAL || errno == ENOTSOCK) throw Failure(code::kInternal, errno_text("SCTP accept", errno));
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        // The connection stays in the queue: without a pause this would spin.
        log_line(errno_text("SCTP accept", errno));
        ::poll(nullptr, 0, 100);
      }
    }
    return nullptr;
  }
  void interrupt() override { socket_->interrupt(); }

 private:
  std::unique_ptr<Socket> socket_;
  const Parameters parameters_;
};

// Whether a connecting socket's association is in the state COOKIE-ECHOED. The
// socket itself does not report before there is an association; false too where
// the list of associations cannot be read.
bool cookie_echoed(int fd) {
  constexpr int kCookieEchoed = 2;  // SCTP_STATE_COOKIE_ECHOED of the kernel's <net/sctp/constants.h>
  struct stat socket{};
  if (::fstat(fd, &socket) < 0) return false;
  std::ifstream list("/proc/net/sctp/assocs");
  std::string line, word;
  std::getline(list, line);
  // The columns' places, by their names; no value before these holds a space.
  std::istringstream names(line);
  int state_at = -1, inode_at = -1;
  for (int i = 0; names >> word; i++) {
    if (word == "ST") state_at = i;
    if (word == "INODE") inode_at = i;
  }
  while (std::getline(list, line)) {
    std::istringstream values(line);
    std::string state, inode;
    for (int i = 0; i <= std::max(state_at, inode_at) && values >> word; i++) {
      if (i == state_at) state = word;
      if (i == inode_at) inode = word;
    }
    if (inode == std::to_string(socket.st_ino)) return state == std::to_string(kCookieEchoed);
  }
  return false;
}

class KernelStack : public Stack {
 public:
  Info info() const override { return kernel_info(); }

  std::unique_ptr<Listener> listen(const Parameters& p) override {
    Address local = parse_address(p.local, "local");
    auto socket = open_socket(p, local, code::kListenFailed);
    if (::listen(socket->fd(), kBacklog) < 0) throw Failure(code::kListenFailed, errno_text("SCTP listen " + local.text(), errno));
    return std::make_unique<KernelListener>(std::move(socket), p);
  }

  std::unique_ptr<Stream> connect(const Parameters& p, Nanoseconds deadline, const std::atomic<bool>& stop) override {
    Address remote = parse_address(p.remote, "remote");
    Address local = client_address(p.local, remote);
    check_route(local, remote);
    return dial_until(remote, deadline, stop, [&](int n, int* err) { return dial(p, local, remote, n, deadline, stop, err); });
  }

 private:
  // The n-th dial, from 0; null where it failed (err says how), is in vain or
  // not answered by the deadline.
  static std::unique_ptr<Stream> dial(const Parameters& p, const Address& local, const Address& remote, int n, Nanoseconds deadline,
                                      const std::atomic<bool>& stop, int* err) {
    constexpr Nanoseconds kLook = 100 * kMillisecond;
    auto socket = open_socket(p, local, code::kUnreachable);
    if (::connect(socket->fd(), remote.get(), remote.length) < 0 && errno != EINPROGRESS) {
      *err = errno;
      return nullptr;
    }
    CookieWatch cookie(p, n);
    while (!socket->wait(POLLOUT, std::min(deadline, now() + kLook))) {
      if (stop || now() >= deadline || cookie.in_vain(cookie_echoed(socket->fd()))) {
        // The server may have the association, and would keep it.
        socket->abort_on_close();
        return nullptr;
      }
    }
    socklen_t length = sizeof *err;
    if (::getsockopt(socket->fd(), SOL_SOCKET, SO_ERROR, err, &length) < 0) *err = errno;
    if (*err != 0) return nullptr;
    return std::make_unique<KernelStream>(std::move(socket), p);
  }
};

}  // namespace

bool kernel_has_sctp(std::string* why) {
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_SCTP);
  if (fd < 0) {
    *why = std::strerror(errno);
    return false;
  }
  ::close(fd);
  return true;
}

std::unique_ptr<Stack> kernel_stack() { return std::make_unique<KernelStack>(); }

}  // namespace linktrial
