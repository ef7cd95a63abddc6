// Time as the drivers use it: nanoseconds of CLOCK_MONOTONIC.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace linktrial {

using Nanoseconds = int64_t;

constexpr Nanoseconds kMillisecond = 1'000'000;
constexpr Nanoseconds kSecond = 1'000'000'000;
// A deadline that never comes.
constexpr Nanoseconds kNever = INT64_MAX;

inline Nanoseconds now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Deadline ms milliseconds after from; a limit of 0 or less is no limit.
inline Nanoseconds after_ms(Nanoseconds from, int64_t ms) {
  if (ms <= 0 || ms > (kNever - from) / kMillisecond) return kNever;
  return from + ms * kMillisecond;
}

// Milliseconds left until deadline, rounded up, at most limit_ms.
inline int left_ms(Nanoseconds deadline, int limit_ms) {
  if (deadline == kNever) return limit_ms;
  Nanoseconds left = deadline - now();
  if (left <= 0) return 0;
  return static_cast<int>(std::min<Nanoseconds>((left + kMillisecond - 1) / kMillisecond, limit_ms));
}

inline std::chrono::steady_clock::time_point time_point(Nanoseconds t) {
  return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(t));
}

}  // namespace linktrial
