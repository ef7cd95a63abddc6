#include "udt_stream.hpp"

#include <fcntl.h>
#include <linux/errqueue.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "transfer.hpp"

namespace linktrial {
namespace {

// The library's headers: IP and UDP as it counts them (always those of IPv4),
// and its own (udt4 packet.h).
constexpr int kIPAndUDPBytes = 28;
constexpr int kUDTHeaderBytes = 16;
constexpr int kDefaultMSS = 1500;
constexpr int kIPv6Extra = 20;
// The receiver's timeout while there is a connection and while there is none.
constexpr Nanoseconds kReceiverActive = 10 * kMillisecond;
constexpr Nanoseconds kReceiverIdle = 5 * kSecond;
// A blocking call is given up this often to look at the deadline anew; the
// library takes milliseconds as int.
constexpr int kLongestWaitMS = 3'600'000;

template <typename T>
bool set(UDTSOCKET u, UDT::SOCKOPT option, T value) {
  return UDT::setsockopt(u, 0, option, &value, sizeof value) != UDT::ERROR;
}

bool timed_out() {
  int e = UDT::getlasterror_code();
  return e == CUDTException::EASYNCRCV || e == CUDTException::EASYNCSND || e == CUDTException::ETIMEOUT;
}

int segment_bytes(const Parameters& p, int family) {
  int mss = static_cast<int>(p.options.number("mss", 0));
  if (mss == 0) mss = std::min(kDefaultMSS, device_mtu(p.device).value_or(kDefaultMSS));
  // The library subtracts the headers of IPv4 even from packets of IPv6.
  return family == AF_INET6 ? mss - kIPv6Extra : mss;
}

}  // namespace

Info udt_info(const Parameters& p) {
  Info info;
  info.implementation = "libudt 4.11";
  info.detail["clock"] = p.options.text("clock", "system");
  return info;
}

std::string udt_error(const std::string& doing) {
  std::string text = UDT::getlasterror_desc();
  while (!text.empty() && (text.back() == '\n' || text.back() == '.' || text.back() == ' ')) text.pop_back();
  return doing + ": " + text;
}

UdpSocket::UdpSocket(const Address& local, const char* failing) : local_(local) {
  fd_ = ::socket(local.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0);
  auto fail = [&](const std::string& doing) {
    std::string text = errno_text(doing, errno);
    if (fd_ >= 0) ::close(fd_);
    throw Failure(failing, text);
  };
  if (fd_ < 0) fail("UDP socket");
  if (::bind(fd_, local.get(), local.length) < 0) fail("UDP bind " + local.text());
  local_.length = sizeof local_.storage;
  if (::getsockname(fd_, local_.get(), &local_.length) < 0) fail("address of the UDP socket");
}

UdpSocket::~UdpSocket() { ::close(fd_); }

int UdpSocket::lend() const { return ::fcntl(fd_, F_DUPFD_CLOEXEC, 3); }

void UdpSocket::set_timeout(Nanoseconds timeout) {
  timeval t{timeout / kSecond, timeout % kSecond / 1000};
  ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
}

// An empty datagram, which the library passes over: its receiver, which may be
// in a long wait, begins a new one.
void UdpSocket::wake_receiver() { ::sendto(fd_, "", 0, MSG_DONTWAIT, local_.get(), local_.length); }

void UdpSocket::opened() {
  std::lock_guard<std::mutex> lock(mutex_);
  connections_++;
  set_timeout(kReceiverActive);
  wake_receiver();
}

void UdpSocket::closed() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (--connections_ <= 0) set_timeout(kReceiverIdle);
}

void UdpSocket::idle() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (connections_ <= 0) set_timeout(kReceiverIdle);
}

void UdpSocket::expect(const Address& peer) {
  std::lock_guard<std::mutex> lock(mutex_);
  refused_.erase(peer.text());
}

// Errors are asked for with the first question: with them the kernel also fails one
// call of the library, which loses a packet by that.
bool UdpSocket::refused(const Address& peer) {
  std::lock_guard<std::mutex> lock(mutex_);
  const int on = 1;
  ::setsockopt(fd_, IPPROTO_IP, IP_RECVERR, &on, sizeof on);
  if (local_.family() == AF_INET6) ::setsockopt(fd_, IPPROTO_IPV6, IPV6_RECVERR, &on, sizeof on);
  for (;;) {
    Address to;
    alignas(cmsghdr) char control[256];
    msghdr m{};
    m.msg_name = to.get();
    m.msg_namelen = sizeof to.storage;
    m.msg_control = control;
    m.msg_controllen = sizeof control;
    if (::recvmsg(fd_, &m, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) break;
    to.length = m.msg_namelen;
    for (cmsghdr* c = CMSG_FIRSTHDR(&m); c != nullptr; c = CMSG_NXTHDR(&m, c)) {
      if (!(c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR) && !(c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR)) continue;
      sock_extended_err e{};
      memcpy(&e, CMSG_DATA(c), sizeof e);
      if (e.ee_errno == ECONNREFUSED) refused_.insert(to.text());
    }
  }
  return refused_.erase(peer.text()) > 0;  // the connection ends by that
}

UDTSOCKET udt_socket(const Parameters& p, const UdpSocket& udp, int family, const char* failing) {
  UDTSOCKET u = UDT::socket(family, SOCK_STREAM, 0);
  if (u == UDT::INVALID_SOCK) throw Failure(failing, udt_error("UDT socket"));
  auto fail = [&](const std::string& doing) {
    std::string text = udt_error(doing);
    UDT::close(u);
    throw Failure(failing, text);
  };
  const Options& o = p.options;
  bool ok = set<int>(u, UDT_MSS, segment_bytes(p, family));
  // The flow window before the receive buffer, which the library keeps below it.
  if (o.has("flight_window")) ok = ok && set<int>(u, UDT_FC, static_cast<int>(o.number("flight_window", 0)));
  if (o.has("send_buffer")) ok = ok && set<int>(u, UDT_SNDBUF, static_cast<int>(o.number("send_buffer", 0)));
  if (o.has("receive_buffer")) ok = ok && set<int>(u, UDT_RCVBUF, static_cast<int>(o.number("receive_buffer", 0)));
  if (o.has("udp_send_buffer")) ok = ok && set<int>(u, UDP_SNDBUF, static_cast<int>(o.number("udp_send_buffer", 0)));
  if (o.has("udp_receive_buffer")) ok = ok && set<int>(u, UDP_RCVBUF, static_cast<int>(o.number("udp_receive_buffer", 0)));
  if (o.has("max_bandwidth")) ok = ok && set<int64_t>(u, UDT_MAXBW, o.number("max_bandwidth", 0) / 8);
  // Closing is waited for by close_first and close_second, never by the library,
  // which would do so for three minutes.
  ok = ok && set<linger>(u, UDT_LINGER, linger{0, 0});
  if (!ok) fail("UDT options");
  int fd = udp.lend();
  if (fd < 0) fail("descriptor of the UDP socket");
  mark_socket(fd, family, p.dscp);
  if (UDT::bind2(u, fd) == UDT::ERROR) fail("UDT bind");
  return u;
}

UdtStream::UdtStream(UDTSOCKET socket, std::shared_ptr<UdpSocket> udp, const Parameters& p)
    : socket_(socket), udp_(std::move(udp)), info_(udt_info(p)), packet_bytes_(kDefaultMSS) {
  udp_->opened();
  int length = sizeof peer_.storage;
  if (UDT::getpeername(socket_, peer_.get(), &length) != UDT::ERROR) peer_.length = length;
  udp_->expect(peer_);
  set<bool>(socket_, UDT_SNDSYN, true);
  set<bool>(socket_, UDT_RCVSYN, true);
  // What the ends agreed upon.
  length = sizeof packet_bytes_;
  UDT::getsockopt(socket_, 0, UDT_MSS, &packet_bytes_, &length);
  payload_bytes_ = packet_bytes_ - kIPAndUDPBytes - kUDTHeaderBytes;
}

UdtStream::~UdtStream() {
  UDT::close(socket_);
  udp_->closed();
}

void UdtStream::lost(const char* doing) const {
  if (interrupted_) throw Failure(code::kReset, "the connection was given up");
  throw Failure(code::kReset, udt_error(doing));
}

size_t UdtStream::write(const uint8_t* b, size_t n, Nanoseconds deadline) {
  for (;;) {
    set<int>(socket_, UDT_SNDTIMEO, left_ms(deadline, kLongestWaitMS));
    int took = UDT::send(socket_, reinterpret_cast<const char*>(b), static_cast<int>(n), 0);
    if (took > 0) return static_cast<size_t>(took);
    if (took == UDT::ERROR && !timed_out()) lost("UDT send");
    if (now() >= deadline) throw Timeout{};
  }
}

size_t UdtStream::read(uint8_t* b, size_t n, Nanoseconds deadline) {
  for (;;) {
    set<int>(socket_, UDT_RCVTIMEO, left_ms(deadline, kLongestWaitMS));
    int got = UDT::recv(socket_, reinterpret_cast<char*>(b), static_cast<int>(n), 0);
    if (got > 0) return static_cast<size_t>(got);
    // The library has no orderly end of a stream: a close arrives as a lost connection.
    if (got == UDT::ERROR && !timed_out()) lost("UDT receive");
    if (now() >= deadline) throw Timeout{};
  }
}

// Whole packets, so that the queue's length in packets gives the bytes that
// are not acknowledged.
size_t UdtStream::write_unit(size_t about) const {
  const size_t packet = static_cast<size_t>(payload_bytes_);
  return packet * std::max<size_t>(1, about / packet);
}

// Its send queue holds what is not acknowledged. In slow start (a period of
// 1 µs) the window bounds what it sends in a round trip, later the period does.
std::optional<Backlog> UdtStream::backlog() {
  int queued = 0;
  int length = sizeof queued;
  UDT::TRACEINFO t{};
  if (UDT::getsockopt(socket_, 0, UDT_SNDDATA, &queued, &length) == UDT::ERROR || UDT::perfmon(socket_, &t, false) == UDT::ERROR) return std::nullopt;
  Backlog b;
  b.unsent_bytes = int64_t{std::max(0, queued - std::max(0, t.pktFlightSize))} * payload_bytes_;
  const double paced = t.msRTT * 1000 / std::max(t.usPktSndPeriod, 1.0);
  b.window_bytes = static_cast<int64_t>(std::min<double>(paced, t.pktCongestionWindow)) * payload_bytes_;
  b.round_trip = static_cast<Nanoseconds>(t.msRTT * kMillisecond);
  return b;
}

// The send queue holds, first in first out, the packet of the header, then
// full packets of the stream, then a last one that may be shorter; a packet
// leaves it when it and all before are acknowledged.
int64_t UdtStream::acknowledged(int64_t sent, int queued_packets) const {
  if (queued_packets == 0) return sent;
  int64_t packets = 1 + (sent + payload_bytes_ - 1) / payload_bytes_;
  return std::clamp<int64_t>((packets - queued_packets - 1) * payload_bytes_, 0, sent);
}

void UdtStream::state(Sample& s, bool sender) {
  if (sender) {
    int queued = 0;
    int length = sizeof queued;
    if (UDT::getsockopt(socket_, 0, UDT_SNDDATA, &queued, &length) != UDT::ERROR) {
      s.acked_bytes = acknowledged(s.sent_bytes, queued);
    }
  }
  UDT::TRACEINFO t{};
  if (UDT::perfmon(socket_, &t, false) == UDT::ERROR) return;
  s.srtt_us = static_cast<int64_t>(t.msRTT * 1000);
  // The estimate is the receiver's, and is one packet a second until
  // the first packet pair.
  if (t.mbpsBandwidth > 0.1) s.bandwidth_bps = t.mbpsBandwidth * 1e6;
  if (sender) {
    s.cwnd_bytes = int64_t{t.pktCongestionWindow} * payload_bytes_;
    s.flight_bytes = int64_t{std::max(0, t.pktFlightSize)} * payload_bytes_;
    s.retransmits = t.pktRetransTotal;
    s.loss_events = t.pktSndLossTotal;
    // In slow start the period is 1 µs: the library does not pace then.
    if (t.usPktSndPeriod > 1) s.pacing_bps = packet_bytes_ * 8e6 / t.usPktSndPeriod;
    s.more["flow_window_packets"] = t.pktFlowWindow;
    s.more["sent_packets"] = static_cast<double>(t.pktSentTotal);
    s.more["received_naks"] = t.pktRecvNAKTotal;
  } else {
    s.loss_events = t.pktRcvLossTotal;
    s.more["received_packets"] = static_cast<double>(t.pktRecvTotal);
    s.more["sent_naks"] = t.pktSentNAKTotal;
  }
}

Info UdtStream::info() const { return info_; }

void UdtStream::close_first(Nanoseconds) noexcept {
  // The library hands bytes to the reader only when it acknowledges them, so
  // the last one is acknowledged by now; the close, sent only once, says the
  // same again.
  interrupt();
}

void UdtStream::close_second(Nanoseconds, Nanoseconds deadline) noexcept {
  // Wakes when the peer has closed; now and then looks whether the last byte
  // was acknowledged, which is as good: the close is sent only once. So is that the
  // peer's process has gone: where the queue of its radio was full, neither its close
  // nor an acknowledgement left it, and this end would send until the deadline, into
  // the trials of others.
  constexpr int kLookMS = 250;
  uint8_t b[64];
  while (now() < deadline) {
    set<int>(socket_, UDT_RCVTIMEO, left_ms(deadline, kLookMS));
    if (UDT::recv(socket_, reinterpret_cast<char*>(b), sizeof b, 0) == UDT::ERROR && !timed_out()) break;
    int queued = 0;
    int length = sizeof queued;
    if (UDT::getsockopt(socket_, 0, UDT_SNDDATA, &queued, &length) == UDT::ERROR || queued == 0) break;
    if (udp_->refused(peer_)) break;
  }
  interrupt();
}

void UdtStream::interrupt() {
  interrupted_ = true;
  UDT::close(socket_);
}

UdtListener::~UdtListener() { UDT::close(socket_); }

std::unique_ptr<Stream> UdtListener::accept() {
  for (;;) {
    Address peer;
    int length = sizeof peer.storage;
    UDTSOCKET u = UDT::accept(socket_, peer.get(), &length);
    if (u != UDT::INVALID_SOCK) return std::make_unique<UdtStream>(u, udp_, parameters_);
    if (interrupted_) return nullptr;
    std::string text = udt_error("UDT accept");
    if (UDT::getsockstate(socket_) != LISTENING) throw Failure(code::kInternal, text);
    log_line(text);
  }
}

void UdtListener::interrupt() {
  interrupted_ = true;
  UDT::close(socket_);
}

}  // namespace linktrial
