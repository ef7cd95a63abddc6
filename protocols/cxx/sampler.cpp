#include "sampler.hpp"

#include <algorithm>

namespace linktrial {

Sampler::Sampler(Events& events, std::string transfer, Stream& stream, HandOver* to, const std::atomic<int64_t>& bytes,
                 const Framing& framing, Nanoseconds start, Nanoseconds interval)
    : events_(events), transfer_(std::move(transfer)), stream_(stream), to_(to), bytes_(bytes), framing_(framing), start_(start) {
  thread_ = std::thread([this, interval] { run(interval); });
}

Sampler::~Sampler() { end(); }

void Sampler::end() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Sample Sampler::take(Nanoseconds at) {
  Sample s;
  last_ = std::max(last_, at - start_);
  s.elapsed_ns = last_;
  if (to_ != nullptr) to_->flush();  // what a sample counts is there before it
  s.sent_bytes = bytes_;
  stream_.state(s, to_ == nullptr);
  s.sent_bytes = framing_.payload(s.sent_bytes);
  if (s.acked_bytes) {
    // The protocol's values and our own are not read in one instant; what was
    // acknowledged once stays so, and cannot be more than was sent.
    acked_ = std::max(acked_, std::clamp<int64_t>(framing_.payload(*s.acked_bytes), 0, s.sent_bytes));
    s.acked_bytes = acked_;
  }
  return s;
}

void Sampler::run(Nanoseconds interval) {
  SampleSchedule schedule(start_, interval);
  std::unique_lock<std::mutex> lock(mutex_);
  while (!ending_) {
    wake_.wait_until(lock, time_point(schedule.next()), [&] { return ending_; });
    Nanoseconds t = now();
    if (ending_ || t < schedule.next()) continue;
    schedule.taken(t);
    lock.unlock();
    events_.sample(transfer_, take(t));
    lock.lock();
  }
}

Sample Sampler::stop(Nanoseconds at) {
  end();
  Sample s = take(at);
  events_.sample(transfer_, s);
  return s;
}

}  // namespace linktrial
