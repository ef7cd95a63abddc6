// The library ends a connection from whose peer nothing has come for about 46 s
// (udt4 core.cpp, CUDT::checkTimers: 16 expirations, each 300 ms longer than the
// one before), whatever limits.transfer_ms is. An outage may last for minutes, so
// that count stops one short of the end: the library then asks every 4.8 s, as
// it does at that count anyway, until the peer answers or the driver's own limit
// closes the socket. Until then nothing changes.
//
// The linker sends the receiving thread's call of checkTimers here (--wrap). It
// is the only thread that counts.
#include <udt/udt.h>

#include <udt/core.h>

#include <algorithm>

namespace {

// The library ends the connection when its count is above this.
constexpr int kMostExpirations = 16;

// The count is private. An explicit instantiation may name it all the same
// ([temp.spec] in the C++ standard), and hands out a reference.
int& expirations(CUDT& connection);

template <int CUDT::*Member>
struct Expirations {
  friend int& expirations(CUDT& connection) { return connection.*Member; }
};
template struct Expirations<&CUDT::m_iEXPCount>;

}  // namespace

extern "C" {

void real_check_timers(CUDT* connection) __asm__("__real__ZN4CUDT11checkTimersEv");
void wrap_check_timers(CUDT* connection) __asm__("__wrap__ZN4CUDT11checkTimersEv");

void wrap_check_timers(CUDT* connection) {
  int& count = expirations(*connection);
  count = std::min(count, kMostExpirations);
  real_check_timers(connection);
}
}
