// Periodic samples of one transfer, from a thread of its own.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

#include "backend.hpp"
#include "exchange.hpp"

namespace linktrial {

// When the next sample is due. The interval doubles after the first 500
// samples and after every 250 more, so that a transfer of ten hours yields
// about 3000 and not 360 000: no plot shows more, and in virtual time every
// sample costs more than the idle time around it.
class SampleSchedule {
 public:
  SampleSchedule(Nanoseconds start, Nanoseconds interval) : next_(start + interval), interval_(interval) {}
  Nanoseconds next() const { return next_; }
  // Moves past t: a sample was taken then. Beats that were missed are left out.
  void taken(Nanoseconds t) {
    if (++count_ == 500 || (count_ > 500 && count_ % 250 == 0)) interval_ *= 2;
    do next_ += interval_;
    while (next_ <= t);
  }

 private:
  Nanoseconds next_;
  Nanoseconds interval_;
  int64_t count_ = 0;
};

class Sampler {
 public:
  // Samples stream every interval from start on, until stop. bytes counts what
  // was sent after the header, or, of a server, what its to has handed over, and
  // framing says how much of that is payload.
  Sampler(Events& events, std::string transfer, Stream& stream, HandOver* to, const std::atomic<int64_t>& bytes,
          const Framing& framing, Nanoseconds start, Nanoseconds interval);
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  // Ends the thread, waits for it and returns the last state, which is also
  // written as the last sample event. Its time is the given moment, or that of a
  // sample that was taken in between.
  Sample stop(Nanoseconds at);

 private:
  void run(Nanoseconds interval);
  void end();
  Sample take(Nanoseconds at);

  Events& events_;
  const std::string transfer_;
  Stream& stream_;
  HandOver* const to_;  // null: a client's
  const std::atomic<int64_t>& bytes_;
  const Framing framing_;
  const Nanoseconds start_;
  // Of the thread while there is one.
  int64_t acked_ = 0;
  Nanoseconds last_ = 0;  // elapsed, of the last sample

  std::mutex mutex_;
  std::condition_variable wake_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace linktrial
