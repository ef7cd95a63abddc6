// TCP, from POSIX sockets. THE FILE TO REPLACE: for another protocol, write anew
// the functions and classes that the end of contract.hpp lists.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "contract.hpp"

namespace {

struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

Address address_of(const Endpoint& e) {
  Address a;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&a.storage);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&a.storage);
  if (inet_pton(AF_INET, e.address.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(static_cast<uint16_t>(e.port));
    a.length = sizeof *v4;
  } else if (inet_pton(AF_INET6, e.address.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(static_cast<uint16_t>(e.port));
    a.length = sizeof *v6;
  } else {
    throw Failure("bad-parameters", "parameters: " + e.address + " is no IP address");
  }
  return a;
}

bool nodelay(const Parameters& p) {
  auto at = p.options.find("nodelay");
  return at == p.options.end() || at->second.truth;
}

Failure failure(const std::string& doing, int error, const std::string& otherwise) {
  std::string code = otherwise;
  switch (error) {
    case ECONNREFUSED: code = "connect-refused"; break;
    case ENETUNREACH: case EHOSTUNREACH: case ENETDOWN: case EADDRNOTAVAIL: code = "unreachable"; break;
    case ECONNRESET: case EPIPE: case ETIMEDOUT: code = "reset"; break;
  }
  return Failure(code, doing + ": " + std::strerror(error));
}

class TcpStream : public Stream {
 public:
  // As long as the transfer has not ended, the end of the process in whatever way
  // resets the connection (a linger of 0).
  TcpStream(int fd, const Parameters& p) : fd_(fd) {
    set_linger(1);
    int on = nodelay(p) ? 1 : 0;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  ~TcpStream() override { ::close(fd_); }

  void write(const uint8_t* b, size_t n, Time deadline) override {
    while (n > 0) {
      wait_for(fd_, POLLOUT, deadline);
      ssize_t took = ::send(fd_, b, n, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (took < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (took < 0) throw failure("send", errno, "internal");
      b += took;
      n -= static_cast<size_t>(took);
    }
  }

  size_t read(uint8_t* b, size_t n, Time deadline) override {
    for (;;) {
      wait_for(fd_, POLLIN, deadline);
      ssize_t got = ::recv(fd_, b, n, MSG_DONTWAIT);
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (got < 0) throw failure("receive", errno, "internal");
      return static_cast<size_t>(got);
    }
  }

  void keep_little_unsent(int bytes) override {
    if (setsockopt(fd_, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof bytes) < 0) throw failure("TCP_NOTSENT_LOWAT", errno, "unsupported");
  }
  void figures(Sample&) override {}
  void finish() override { set_linger(0); }  // the destructor's close is in order then

 private:
  void set_linger(int on) {
    linger l{on, 0};
    setsockopt(fd_, SOL_SOCKET, SO_LINGER, &l, sizeof l);
  }
  int fd_;
};

class TcpListener : public Listener {
 public:
  explicit TcpListener(const Parameters& p) : p_(p) {
    Address a = address_of(p.local);
    int on = 1;
    fd_ = ::socket(a.get()->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);  // also while connections of an earlier server are ending
    if (fd_ < 0 || ::bind(fd_, a.get(), a.length) < 0 || ::listen(fd_, 128) < 0) {
      throw Failure("listen-failed", "listen at " + p.local.address + ": " + std::strerror(errno));
    }
  }
  ~TcpListener() override { ::close(fd_); }

  std::unique_ptr<Stream> accept() override {
    for (;;) {
      wait_for(fd_, POLLIN, Time::max());
      int fd = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd >= 0) return std::make_unique<TcpStream>(fd, p_);
      if (errno == EAGAIN || errno == EINTR) continue;
      log_line(std::string("accept: ") + std::strerror(errno));  // no descriptors left, or gone already
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }

 private:
  const Parameters& p_;
  int fd_;
};

// Asks the kernel once; returns the errno of a connection that did not come about.
int ask(int fd, Address to, Time deadline) {
  if (::connect(fd, to.get(), to.length) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  wait_for(fd, POLLOUT, deadline);
  int error = 0;
  socklen_t size = sizeof error;
  return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0 ? errno : error;
}

}  // namespace

void check_options(const std::map<std::string, Json>& options) {
  for (const auto& [name, value] : options) {
    if (name != "nodelay" || value.kind != Json::Kind::kBool) throw Failure("bad-parameters", "parameters: option " + name);
  }
}

Info probe(const Parameters&) { return {"linux-kernel", {}}; }

std::unique_ptr<Listener> listen(const Parameters& p) { return std::make_unique<TcpListener>(p); }

std::unique_ptr<Stream> connect(const Parameters& p, Time deadline) {
  Address to = address_of(p.remote);
  for (;;) {
    int fd = ::socket(to.get()->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) throw failure("socket", errno, "internal");
    auto stream = std::make_unique<TcpStream>(fd, p);
    if (!p.local.address.empty()) {
      Address from = address_of({p.local.address, 0});
      if (::bind(fd, from.get(), from.length) < 0) throw failure("bind " + p.local.address, errno, "unreachable");
    }
    int error = ask(fd, to, deadline);
    if (error == 0) return stream;
    // The kernel's own attempts may be over before the limit.
    if (error != ETIMEDOUT) throw failure("connect to " + p.remote.address, error, "internal");
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}
