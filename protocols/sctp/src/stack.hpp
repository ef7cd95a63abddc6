// The two stacks that can carry an association, behind one interface.
#pragma once

#include <memory>

#include "address.hpp"
#include "backend.hpp"

namespace linktrial {

// Retransmission timeouts unless an option says otherwise (RFC 4960, section 15).
constexpr int64_t kInitialTimeoutMS = 3000;
constexpr int64_t kLeastTimeoutMS = 1000;
constexpr int64_t kMostTimeoutMS = 60000;

// How many bytes one user message carries unless an option says otherwise.
// One DATA chunk each: the stacks count outstanding data in chunks, and only
// so do they give the acknowledged bytes. On the wire it differs from
// larger messages only in the chunks' begin and end bits.
size_t message_bytes(const Parameters& p, uint32_t fragmentation_point);

// Detects a dial that can no longer become an association. Linux
// sends its COOKIE ACK once: the socket that the server accepts has a key of
// its own and takes a repeated COOKIE ECHO for a forgery. Lost, it leaves an
// association that only the server has, and no timer of the client's helps.
// A new dial does.
//
// The protocol's own repetitions come first. A dial is in vain when its COOKIE
// ECHO was repeated once and the second repetition is due, or later where the
// INIT took so long that the answer may still be on its way. Every further dial
// waits an initial timeout longer, so that a slow link has its turn.
class CookieWatch {
 public:
  CookieWatch(const Parameters& p, int dial);
  // Called from time to time; echoed is whether the dial is in state COOKIE-ECHOED.
  // Reports whether the dial is in vain.
  bool in_vain(bool echoed);

 private:
  const Nanoseconds timeout_;
  const Nanoseconds begin_;
  const int dial_;           // 0: the first
  Nanoseconds echoed_ = 0;  // when
};

class Stack {
 public:
  virtual ~Stack() = default;
  virtual Info info() const = 0;
  virtual std::unique_ptr<Listener> listen(const Parameters& p) = 0;
  virtual std::unique_ptr<Stream> connect(const Parameters& p, Nanoseconds deadline, const std::atomic<bool>& stop) = 0;
};

// Whether this kernel opens SCTP sockets; why not, where it does not.
bool kernel_has_sctp(std::string* why);

std::unique_ptr<Stack> kernel_stack();
std::unique_ptr<Stack> userland_stack();

}  // namespace linktrial
