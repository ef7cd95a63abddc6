// Preloaded into a driver (LD_PRELOAD): from the moment at which there is the file STEPPED
// its time of day is that of a clock that was set by STEP seconds.
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long offset() {
  const char* stepped = getenv("STEPPED");
  return stepped != nullptr && access(stepped, F_OK) == 0 ? atol(getenv("STEP")) : 0;
}

extern "C" int clock_gettime(clockid_t clock, timespec* now) noexcept {
  long failed = syscall(SYS_clock_gettime, clock, now);
  if (failed == 0 && clock == CLOCK_REALTIME) now->tv_sec += offset();
  return static_cast<int>(failed);
}

extern "C" int gettimeofday(timeval* now, void*) noexcept {
  timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  now->tv_sec = t.tv_sec;
  now->tv_usec = t.tv_nsec / 1000;
  return 0;
}

extern "C" time_t time(time_t* to) noexcept {
  timeval now;
  gettimeofday(&now, nullptr);
  if (to != nullptr) *to = now.tv_sec;
  return now.tv_sec;
}

// A wait ends when the stepped clock has its time.
extern "C" int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex, const timespec* end) {
  using Wait = int (*)(pthread_cond_t*, pthread_mutex_t*, const timespec*);
  static const Wait wait = reinterpret_cast<Wait>(dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2"));
  timespec t = *end;
  t.tv_sec -= offset();
  return wait(condition, mutex, &t);
}
