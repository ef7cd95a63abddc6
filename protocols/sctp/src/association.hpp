// What the two stacks do alike. Each includes this after its own header, whose
// types and numbers (RFC 6458, the same names in both) it uses; hence the
// namespace without a name.
#pragma once

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <thread>

#include "stack.hpp"

namespace linktrial {
namespace {

// Sets the options of an association, by set(level, option, value, name).
// path is what the stack has of its own of a path, attempts of an INIT.
template <typename Set>
void set_association(const Options& o, sctp_paddrparams path, sctp_initmsg attempts, Set set) {
  sctp_rtoinfo rto{};
  rto.srto_initial = static_cast<uint32_t>(o.number("rto_initial", kInitialTimeoutMS));
  rto.srto_min = static_cast<uint32_t>(o.number("rto_min", kLeastTimeoutMS));
  rto.srto_max = static_cast<uint32_t>(o.number("rto_max", kMostTimeoutMS));
  set(IPPROTO_SCTP, SCTP_RTOINFO, rto, "RTOINFO");

  // Enough retransmissions, of the association and of its one path, that an
  // outage of minutes is ended by the limits of the plan and not from here.
  const uint16_t most = static_cast<uint16_t>(o.number("max_retransmissions", 200));
  // The path first: Linux holds the association to the sum of its paths.
  path.spp_pathmaxrxt = most;
  set(IPPROTO_SCTP, SCTP_PEER_ADDR_PARAMS, path, "PEER_ADDR_PARAMS");
  sctp_assocparams association{};
  association.sasoc_asocmaxrxt = most;
  set(IPPROTO_SCTP, SCTP_ASSOCINFO, association, "ASSOCINFO");
  attempts.sinit_num_ostreams = 1;
  attempts.sinit_max_instreams = 1;
  attempts.sinit_max_attempts = most;
  set(IPPROTO_SCTP, SCTP_INITMSG, attempts, "INITMSG");

  sctp_sack_info sack{};
  sack.sack_delay = static_cast<uint32_t>(o.number("sack_delay", 200));
  // A delay of 0 means "unchanged"; a frequency of 1 acknowledges every packet.
  sack.sack_freq = sack.sack_delay == 0 ? 1 : 2;
  set(IPPROTO_SCTP, SCTP_DELAYED_SACK, sack, "DELAYED_SACK");
  set(IPPROTO_SCTP, SCTP_NODELAY, int{o.flag("nodelay", true)}, "NODELAY");
  set(IPPROTO_SCTP, SCTP_FRAGMENT_INTERLEAVE, int{0}, "FRAGMENT_INTERLEAVE");
  if (o.has("send_buffer")) set(SOL_SOCKET, SO_SNDBUF, static_cast<int>(o.number("send_buffer", 0)), "SO_SNDBUF");
  if (o.has("receive_buffer")) set(SOL_SOCKET, SO_RCVBUF, static_cast<int>(o.number("receive_buffer", 0)), "SO_RCVBUF");
}

// Waits for the peer's SHUTDOWN, or the end of our own: the end of the stream.
// Once acknowledged says that everything is, for patience more. False where
// neither came before the deadline.
template <typename Acknowledged>
bool wait_for_end(Stream& s, Nanoseconds patience, Nanoseconds deadline, Acknowledged acknowledged) noexcept {
  constexpr Nanoseconds kLook = kSecond;
  uint8_t b[256];
  for (Nanoseconds end = deadline; now() < end;) {
    try {
      if (s.read(b, sizeof b, std::min(end, now() + kLook)) == 0) return true;
    } catch (const Failure&) {
      return true;  // the peer is gone already
    } catch (const Timeout&) {
      if (acknowledged() && patience < end - now()) end = now() + patience;
    }
  }
  return false;
}

// Dials until there is an association: dial(n, err) dials for the n-th time, from
// 0, and sets the errno of a failure; 0 where there was no answer.
template <typename Dial>
std::unique_ptr<Stream> dial_until(const Address& remote, Nanoseconds deadline, const std::atomic<bool>& stop, Dial dial) {
  constexpr Nanoseconds kPause = 200 * kMillisecond;
  for (int n = 0;; n++) {
    int err = 0;
    if (std::unique_ptr<Stream> stream = dial(n, &err)) return stream;
    if (stop) throw Failure(code::kAborted, "SIGTERM while connecting");
    if (err == ECONNREFUSED) throw Failure(code::kConnectRefused, "no listener at " + remote.text());
    if (err == ENETUNREACH || err == EHOSTUNREACH) throw Failure(code::kUnreachable, errno_text(remote.text(), err));
    // A stack that gives up at once must not be asked in a loop.
    if (err != 0) std::this_thread::sleep_for(std::chrono::nanoseconds(std::clamp<Nanoseconds>(deadline - now(), 0, kPause)));
    if (now() >= deadline) throw Failure(code::kConnectTimeout, "no answer from " + remote.text() + " within limits.connect_ms");
  }
}

}  // namespace
}  // namespace linktrial
