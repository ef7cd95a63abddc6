// libudt reads the processor's time-stamp counter. That counter does not
// travel with the clock of a virtual-time laboratory, and drifts against it on
// machines that change their frequency; handshakes and transfers then break.
// The library has a fall-back to gettimeofday, which costs nothing measurable
// (a call without a kernel entry; the loopback throughput is the same), so
// the driver uses it unless the plan says otherwise; what it gets there is the
// time since the kernel was started (monotonic.cpp).
//
// The two variables are the library's own statics (CTimer in its common.h,
// private there); the static library exports them.
#include "driver_clock.hpp"

#include <time.h>

#include <cstdint>

extern bool udt_use_microseconds __asm__("_ZN6CTimer17m_bUseMicroSecondE");
extern uint64_t udt_ticks_per_microsecond __asm__("_ZN6CTimer17s_ullCPUFrequencyE");
uint64_t udt_measure_ticks() __asm__("_ZN6CTimer16readCPUFrequencyEv");

namespace {

bool running = false;

}  // namespace

// Before main, the library sleeps 100 ms to find the counter's frequency: dead
// time of every trial for a value that is not used. The linker sends its
// nanosleep calls here (--wrap=nanosleep).
extern "C" int __real_nanosleep(const timespec* request, timespec* rest);
extern "C" int __wrap_nanosleep(const timespec* request, timespec* rest) {
  return running ? __real_nanosleep(request, rest) : 0;
}

namespace linktrial {

void use_system_clock() {
  running = true;
  udt_use_microseconds = true;
  udt_ticks_per_microsecond = 1;
}

void use_time_stamp_counter() {
  running = true;
  udt_use_microseconds = false;
  udt_ticks_per_microsecond = udt_measure_ticks();
}

}  // namespace linktrial
