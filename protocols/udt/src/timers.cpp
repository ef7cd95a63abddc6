// The library ends a connection from whose peer nothing has come for about 46 s
// (udt4 core.cpp, CUDT::checkTimers: 16 expirations, each 300 ms longer than the
// one before), whatever limits.transfer_ms is. An outage may last for minutes, so
// that count stops one short of the end: the library then asks every 4.8 s, as
// it does at that count anyway, until the peer answers or the driver's own limit
// closes the socket. Until then nothing changes.
//
// And it acknowledges when the time of the next acknowledgement has passed, not
// when it has come. The last packet of a message, which is shorter than the others,
// sets that time to the present and has the timers checked at once. By the
// time-stamp counter the present has then passed; by a clock of microseconds often
// not, and in virtual time never. The acknowledgement, without which the reader
// does not get the bytes, then waited for the next check of a silent connection,
// 100 ms later (udt4 queue.cpp, CRcvQueue::worker), in the handshake ('R') as at
// the end ('.'). So a time that has come counts as passed.
//
// The linker sends the receiving thread's call of checkTimers here (--wrap). It
// is the only thread that counts, and that acknowledges.
#include <udt/udt.h>

#include <udt/core.h>

#include <algorithm>

namespace {

// The library ends the connection when its count is above this.
constexpr int kMostExpirations = 16;

// Both members are private. An explicit instantiation may name them all the same
// ([temp.spec] in the C++ standard), and hands out a reference.
int& expirations(CUDT& connection);
uint64_t& next_acknowledgement(CUDT& connection);

template <int CUDT::*Member>
struct Expirations {
  friend int& expirations(CUDT& connection) { return connection.*Member; }
};
template struct Expirations<&CUDT::m_iEXPCount>;

template <uint64_t CUDT::*Member>
struct NextAcknowledgement {
  friend uint64_t& next_acknowledgement(CUDT& connection) { return connection.*Member; }
};
template struct NextAcknowledgement<&CUDT::m_ullNextACKTime>;

}  // namespace

extern "C" {

void real_check_timers(CUDT* connection) __asm__("__real__ZN4CUDT11checkTimersEv");
void wrap_check_timers(CUDT* connection) __asm__("__wrap__ZN4CUDT11checkTimersEv");

void wrap_check_timers(CUDT* connection) {
  int& count = expirations(*connection);
  count = std::min(count, kMostExpirations);
  uint64_t present = 0;
  CTimer::rdtsc(present);
  uint64_t& next = next_acknowledgement(*connection);
  if (next == present) next--;
  real_check_timers(connection);
}
}
