// SCTP from usrsctp, over UDP.
#include <usrsctp.h>

#include <cerrno>
#include <cstring>

#include "association.hpp"
#include "stack.hpp"
#include "transfer.hpp"
#include "userland_engine.hpp"

namespace linktrial {
namespace {

constexpr int kBacklog = 128;
// SCTP's own port, the same everywhere: the UDP port alone distinguishes listeners
// apart, and may be another on the way (a relay, a NAT).
constexpr int kSCTPPort = 5000;
constexpr int kDefaultMTU = 1500;
constexpr int kUDPBytes = 8;
constexpr int kSCTPHeaderBytes = 12;

Info userland_info() {
  Info info;
  info.implementation = "usrsctp 0.9.5.0";
  info.detail["encapsulation"] = "UDP (RFC 6951)";
  return info;
}

template <typename T>
void set(struct socket* s, int level, int option, const T& value, const char* name) {
  if (in_library(usrsctp_setsockopt, s, level, option, &value, sizeof value) < 0) {
    throw Failure(code::kInternal, errno_text(std::string("usrsctp option ") + name, errno));
  }
}

// Largest SCTP packet that fits the interface's MTU with UDP and IP around it.
int packet_bytes(const Parameters& p, int family) {
  int ip = family == AF_INET6 ? 40 : 20;
  return std::min(kDefaultMTU, device_mtu(p.device).value_or(kDefaultMTU)) - ip - kUDPBytes;
}

void set_options(struct socket* s, const Parameters& p, int family) {
  sctp_initmsg attempts{};
  attempts.sinit_max_init_timeo = static_cast<uint16_t>(std::min<int64_t>(p.options.number("rto_max", kMostTimeoutMS), UINT16_MAX));
  sctp_paddrparams path{};
  // No MTU discovery: no error comes back for a packet that is too big for UDP. The
  // library counts its common header apart.
  path.spp_flags = SPP_PMTUD_DISABLE;
  path.spp_pathmtu = static_cast<uint32_t>(packet_bytes(p, family) - kSCTPHeaderBytes);
  set_association(p.options, path, attempts,
                  [s](int level, int option, const auto& value, const char* name) { set(s, level, option, value, name); });
}

sockaddr_conn conn_address(void* peer, int port) {
  sockaddr_conn a{};
  a.sconn_family = AF_CONN;
  a.sconn_port = htons(static_cast<uint16_t>(port));
  a.sconn_addr = peer;
  return a;
}

// What an association holds of user data that was sent and not acknowledged, or
// not sent: an option that usrsctp has (netinet/sctp.h, netinet/sctp_uio.h) and
// its public header leaves out.
constexpr int kGetSndbufUse = 0x1101;
struct SndbufUse {
  sctp_assoc_t association;
  uint32_t send_bytes;
  uint32_t receive_bytes;
};

// One of the library's sockets, non-blocking, with the upcalls to wait for it.
class Socket {
 public:
  Socket(Engine& engine, struct socket* s) : engine_(engine), socket_(s), waiter_(std::make_shared<Waiter>()) {
    in_library(usrsctp_set_non_blocking, socket_, 1);
    engine_.watch(socket_, waiter_);
  }
  ~Socket() {
    engine_.unwatch(socket_);
    in_library(usrsctp_close, socket_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  struct socket* get() const { return socket_; }
  Waiter& waiter() const { return *waiter_; }
  bool interrupted() const { return interrupted_; }
  void interrupt() {
    interrupted_ = true;
    waiter_->notify();
  }
  // The close sends ABORT instead of SHUTDOWN.
  void abort_on_close() noexcept {
    linger now_or_never{1, 0};
    in_library(usrsctp_setsockopt, socket_, SOL_SOCKET, SO_LINGER, &now_or_never, sizeof now_or_never);
  }
  int error() const {
    int err = 0;
    socklen_t length = sizeof err;
    in_library(usrsctp_getsockopt, socket_, SOL_SOCKET, SO_ERROR, &err, &length);
    return err;
  }
  bool status(sctp_status& s) const {
    s = sctp_status{};
    socklen_t length = sizeof s;
    return in_library(usrsctp_getsockopt, socket_, IPPROTO_SCTP, SCTP_STATUS, &s, &length) == 0;
  }
  // User data that is not acknowledged, sent or not, in bytes, after a status. The
  // library counts every chunk that it has made of it with its header; where that
  // changes meanwhile, it comes out as too much.
  std::optional<int64_t> queued_bytes(const sctp_status& s) const {
    constexpr int64_t kChunkHeaderBytes = 16;
    SndbufUse use{};
    socklen_t length = sizeof use;
    sctp_status later;
    if (in_library(usrsctp_getsockopt, socket_, IPPROTO_SCTP, kGetSndbufUse, &use, &length) < 0 || !status(later)) return std::nullopt;
    const int64_t chunks = std::min(s.sstat_unackdata, later.sstat_unackdata);
    return std::max<int64_t>(0, int64_t{use.send_bytes} - kChunkHeaderBytes * chunks);
  }

 private:
  Engine& engine_;
  struct socket* const socket_;
  const std::shared_ptr<Waiter> waiter_;
  std::atomic<bool> interrupted_{false};
};

class UserlandStream : public Stream {
 public:
  // refusable: the engine serves this connection alone, and the network's
  // refusals are about it.
  UserlandStream(Engine& engine, std::unique_ptr<Socket> socket, const Parameters& p, bool refusable)
      : engine_(engine), socket_(std::move(socket)), refusable_(refusable), refusals_(engine.refusals()) {
    in_library(usrsctp_get_stat, &before_);
    sctp_status status;
    if (socket_->status(status)) fragment_ = status.sstat_fragmentation_point;
    message_ = message_bytes(p, fragment_);
  }

  size_t write(const uint8_t* b, size_t n, Nanoseconds deadline) override {
    for (;;) {
      const uint64_t seen = socket_->waiter().seen();
      alive();
      sctp_sndinfo info{};
      ssize_t took = in_library(usrsctp_sendv, socket_->get(), b, n, nullptr, 0, &info, sizeof info, SCTP_SENDV_SNDINFO, 0);
      if (took > 0) return static_cast<size_t>(took);
      if (took < 0 && errno != EAGAIN && errno != EINTR) lost("usrsctp send", errno);
      if (!socket_->waiter().wait(seen, deadline)) throw Timeout{};
    }
  }

  size_t read(uint8_t* b, size_t n, Nanoseconds deadline) override {
    for (;;) {
      const uint64_t seen = socket_->waiter().seen();
      alive();
      sctp_rcvinfo info{};
      socklen_t length = sizeof info;
      unsigned int type = 0;
      int flags = 0;
      ssize_t got = in_library(usrsctp_recvv, socket_->get(), b, n, nullptr, nullptr, &info, &length, &type, &flags);
      if (got >= 0 && (flags & MSG_NOTIFICATION) == 0) return static_cast<size_t>(got);
      if (got < 0 && errno != EAGAIN && errno != EINTR) lost("usrsctp receive", errno);
      if (got < 0 && !socket_->waiter().wait(seen, deadline)) throw Timeout{};
    }
  }

  size_t write_unit(size_t) const override { return message_; }

  std::optional<Backlog> backlog() override {
    sctp_status status;
    if (!socket_->status(status)) return std::nullopt;
    const std::optional<int64_t> queued = socket_->queued_bytes(status);
    if (!queued) return std::nullopt;
    Backlog b;
    b.unsent_bytes = std::max<int64_t>(0, *queued - flight_bytes(status));
    b.window_bytes = status.sstat_primary.spinfo_cwnd;
    b.round_trip = int64_t{status.sstat_primary.spinfo_srtt} * kMillisecond;
    return b;
  }

  void state(Sample& s, bool sender) override {
    sctp_status status;
    if (!socket_->status(status)) return;
    const sctp_paddrinfo& path = status.sstat_primary;
    if (path.spinfo_srtt > 0) s.srtt_us = int64_t{path.spinfo_srtt} * 1000;
    s.rto_us = int64_t{path.spinfo_rto} * 1000;
    s.more["path_mtu_bytes"] = path.spinfo_mtu;
    if (!sender) return;
    s.cwnd_bytes = path.spinfo_cwnd;
    s.more["peer_window_bytes"] = status.sstat_rwnd;
    s.flight_bytes = flight_bytes(status);
    if (const std::optional<int64_t> queued = socket_->queued_bytes(status)) {
      s.acked_bytes = s.sent_bytes - *queued;
    }
    // The library counts for the whole process, which at the client is this
    // association.
    struct sctpstat stat;
    in_library(usrsctp_get_stat, &stat);
    s.retransmits = int64_t{stat.sctps_sendretransdata - before_.sctps_sendretransdata};
    s.timeouts = int64_t{stat.sctps_timodata - before_.sctps_timodata};
    s.more["fast_retransmits"] = stat.sctps_sendfastretrans - before_.sctps_sendfastretrans;
  }

  Info info() const override { return userland_info(); }

  // The library's SHUTDOWN ends with the process, so it is waited for.
  void close_first(Nanoseconds deadline) noexcept override {
    in_library(usrsctp_shutdown, socket_->get(), SHUT_WR);
    close_second(kNever, deadline);
  }

  void close_second(Nanoseconds patience, Nanoseconds deadline) noexcept override {
    auto acknowledged = [this] {
      sctp_status status;
      return socket_->status(status) && socket_->queued_bytes(status) == 0;
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
    if (refusable_ && engine_.refusals() != refusals_) throw Failure(code::kReset, "the server's port is closed");
  }
  [[noreturn]] static void lost(const char* doing, int err) { throw Failure(code::kReset, errno_text(doing, err)); }

  // What the outstanding chunks hold, full ones all of them.
  int64_t flight_bytes(const sctp_status& s) const {
    return int64_t{s.sstat_unackdata} * static_cast<int64_t>(std::min<size_t>(message_, fragment_));
  }

  Engine& engine_;
  std::unique_ptr<Socket> socket_;
  const bool refusable_;
  const uint64_t refusals_;
  struct sctpstat before_ {};
  uint32_t fragment_ = 0;
  size_t message_ = 0;
};

std::unique_ptr<Socket> open_socket(Engine& engine, const Parameters& p, int family) {
  struct socket* s = in_library(usrsctp_socket, AF_CONN, SOCK_STREAM, IPPROTO_SCTP, nullptr, nullptr, 0, nullptr);
  if (!s) throw Failure(code::kInternal, errno_text("usrsctp socket", errno));
  auto socket = std::make_unique<Socket>(engine, s);
  set_options(s, p, family);
  return socket;
}

class UserlandListener : public Listener {
 public:
  UserlandListener(Engine& engine, std::unique_ptr<Socket> socket, const Parameters& p)
      : engine_(engine), socket_(std::move(socket)), parameters_(p) {}

  std::unique_ptr<Stream> accept() override {
    while (!socket_->interrupted()) {
      const uint64_t seen = socket_->waiter().seen();
      if (struct socket* s = in_library(usrsctp_accept, socket_->get(), nullptr, nullptr)) {
        return std::make_unique<UserlandStream>(engine_, std::make_unique<Socket>(engine_, s), parameters_, false);
      }
      if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) throw Failure(code::kInternal, errno_text("usrsctp accept", errno));
      if (!socket_->interrupted()) socket_->waiter().wait(seen, kNever);
    }
    return nullptr;
  }
  void interrupt() override { socket_->interrupt(); }

 private:
  Engine& engine_;
  std::unique_ptr<Socket> socket_;
  const Parameters parameters_;
};

class UserlandStack : public Stack {
 public:
  Info info() const override { return userland_info(); }

  std::unique_ptr<Listener> listen(const Parameters& p) override {
    Address local = parse_address(p.local, "local");
    engine_ = std::make_unique<Engine>(local, nullptr, p.dscp, code::kListenFailed);
    auto socket = open_socket(*engine_, p, local.family());
    sockaddr_conn any = conn_address(nullptr, kSCTPPort);
    if (in_library(usrsctp_bind, socket->get(), reinterpret_cast<sockaddr*>(&any), sizeof any) < 0 || in_library(usrsctp_listen, socket->get(), kBacklog) < 0) {
      throw Failure(code::kListenFailed, errno_text("usrsctp listen", errno));
    }
    return std::make_unique<UserlandListener>(*engine_, std::move(socket), p);
  }

  std::unique_ptr<Stream> connect(const Parameters& p, Nanoseconds deadline, const std::atomic<bool>& stop) override {
    Address remote = parse_address(p.remote, "remote");
    Address local = client_address(p.local, remote);
    check_route(local, remote);
    engine_ = std::make_unique<Engine>(local, &remote, p.dscp, code::kUnreachable);
    void* peer = engine_->peer(remote);
    return dial_until(remote, deadline, stop, [&](int n, int* err) { return dial(p, remote, peer, n, deadline, stop, err); });
  }

 private:
  // The n-th dial, from 0; null where it failed (err says how), is in vain or
  // not answered by the deadline.
  std::unique_ptr<Stream> dial(const Parameters& p, const Address& remote, void* peer, int n, Nanoseconds deadline,
                               const std::atomic<bool>& stop, int* err) {
    constexpr Nanoseconds kLook = 100 * kMillisecond;
    auto socket = open_socket(*engine_, p, remote.family());
    const uint64_t refusals = engine_->refusals();
    sockaddr_conn to = conn_address(peer, kSCTPPort);
    if (in_library(usrsctp_connect, socket->get(), reinterpret_cast<sockaddr*>(&to), sizeof to) < 0 && errno != EINPROGRESS) {
      throw Failure(code::kInternal, errno_text("usrsctp connect", errno));
    }
    for (CookieWatch cookie(p, n);;) {
      const uint64_t seen = socket->waiter().seen();
      sctp_status status;
      bool known = socket->status(status);
      if (known && status.sstat_state == SCTP_ESTABLISHED) return std::make_unique<UserlandStream>(*engine_, std::move(socket), p, true);
      if (engine_->refusals() != refusals) *err = ECONNREFUSED;
      // An answered refusal (ABORT) is a refusal too; that the library gave up is not.
      if (*err == 0 && (in_library(usrsctp_get_events, socket->get()) & SCTP_EVENT_ERROR) != 0) *err = socket->error() == ETIMEDOUT ? ETIMEDOUT : ECONNREFUSED;
      const bool in_vain = cookie.in_vain(known && status.sstat_state == SCTP_COOKIE_ECHOED);
      if (stop || *err != 0 || in_vain || now() >= deadline) {
        socket->abort_on_close();
        return nullptr;
      }
      socket->waiter().wait(seen, std::min(deadline, now() + kLook));
    }
  }

  std::unique_ptr<Engine> engine_;
};

}  // namespace

std::unique_ptr<Stack> userland_stack() { return std::make_unique<UserlandStack>(); }

}  // namespace linktrial
