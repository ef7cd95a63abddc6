// libudt takes all of its times from gettimeofday: those of its timers, which decide when
// the next packet is sent and when a connection is silent, those of its measurements, and
// the ends of its waits. A node's clock that is set during a transfer would move them: one
// that is set back by an hour has the library send the next packet in an hour. So the
// linker sends these calls here (--wrap), and the library gets the time since the kernel
// was started, which nobody sets. It never needs the time of day.
//
// Its waits end at a time that it has made from gettimeofday, so they are by the same
// clock. What the driver itself waits for is by this clock anyway, and does not come here.
#include <pthread.h>
#include <sys/time.h>
#include <time.h>

extern "C" {

int __wrap_gettimeofday(timeval* now, void*) {
  timespec t;
  if (int failed = clock_gettime(CLOCK_MONOTONIC, &t)) return failed;
  now->tv_sec = t.tv_sec;
  now->tv_usec = t.tv_nsec / 1000;
  return 0;
}

int __wrap_pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex, const timespec* end) {
  return pthread_cond_clockwait(condition, mutex, CLOCK_MONOTONIC, end);
}
}
