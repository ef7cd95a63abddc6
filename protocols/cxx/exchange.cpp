#include "exchange.hpp"

#include <algorithm>
#include <optional>
#include <thread>
#include <vector>

#include "events.hpp"
#include "transfer.hpp"

namespace linktrial {
namespace {

// How much is handed over at once, about: it stays in the processor's cache,
// and sent_bytes grows in steps that a chart does not show.
constexpr size_t kWriteBytes = 64 << 10;
// Of an open payload: what was announced is sent, also when the time is up
// meanwhile; at 16 kbit/s that is 2 s at most, and 4 bytes in 4096 are of no weight.
constexpr size_t kOpenChunkBytes = 4 << 10;
constexpr size_t kReadBytes = 64 << 10;
// When a block is handed over at the latest: few enough writes, and little memory.
constexpr size_t kBlockBytes = 32 << 10;

// How often a sender looks whether the protocol has sent what it took: four
// times in a round trip, within these bounds. The lower is a look's own cost,
// the upper what a SIGTERM may have to wait for.
constexpr Nanoseconds kOftenest = kMillisecond;
constexpr Nanoseconds kSeldomest = 100 * kMillisecond;

// Hands over n bytes of the stream, at most unit at a time.
void write_counted(Stream& s, const uint8_t* b, size_t n, size_t unit, Nanoseconds deadline, std::atomic<int64_t>& sent) {
  for (size_t at = 0; at < n;) {
    size_t took = s.write(b + at, std::min(unit, n - at), deadline);
    at += took;
    sent += static_cast<int64_t>(took);
  }
}

// Waits until the protocol has so little left to send that it wants more;
// false when that moment does not come before until. What it may have left is
// twice what it sends between two looks, lest its queue run dry: that would be
// another sender than the one that is measured.
bool wants_more(Stream& s, size_t chunk, Nanoseconds until, Nanoseconds deadline) {
  for (;;) {
    const Nanoseconds t = now();
    if (t >= deadline) throw Timeout{};
    if (t >= until) return false;
    const std::optional<Backlog> b = s.backlog();
    if (!b) return true;
    const Nanoseconds round_trip = std::max(b->round_trip, kMillisecond);
    const Nanoseconds look = std::clamp(round_trip / 4, kOftenest, kSeldomest);
    const double between = static_cast<double>(b->window_bytes) * static_cast<double>(look) / static_cast<double>(round_trip);
    const double enough = std::max(2.0 * static_cast<double>(chunk), 2 * between);
    if (static_cast<double>(b->unsent_bytes) < enough) return true;
    std::this_thread::sleep_for(std::chrono::nanoseconds(std::min({look, until - t, deadline - t})));
  }
}

void receive_sized(Stream& s, int64_t size, Nanoseconds deadline, HandOver& to) {
  std::vector<uint8_t> b(kReadBytes);
  int64_t at = 0;
  while (at < size) {
    size_t want = static_cast<size_t>(std::min<int64_t>(static_cast<int64_t>(b.size()), size - at));
    size_t n = s.read(b.data(), want, deadline);
    if (n == 0) {
      throw Failure(code::kReset, "the client closed the connection after " + std::to_string(at) + " of " + std::to_string(size) + " bytes");
    }
    to.take(b.data(), n);
    at += static_cast<int64_t>(n);
  }
}

// Bytes after the end are ignored.
void receive_open(Stream& s, uint64_t at_most, Nanoseconds deadline, HandOver& to) {
  std::vector<uint8_t> b(kReadBytes);
  int64_t took = 0;
  for (Chunks chunks(at_most); !chunks.ended();) {
    size_t n = s.read(b.data(), b.size(), deadline);
    if (n == 0) {
      throw Failure(code::kReset, "the client closed the connection after " + std::to_string(took) + " bytes, before the payload's end");
    }
    for (size_t at = 0; at < n && !chunks.ended();) {
      size_t payload = 0;
      at += chunks.take(b.data() + at, n - at, &payload);
      if (payload > 0) to.take(b.data() + at - payload, payload);
      took += static_cast<int64_t>(payload);
    }
  }
}

}  // namespace

void put_big_endian32(uint8_t* b, uint32_t v) {
  for (int i = 3; i >= 0; i--, v >>= 8) b[i] = static_cast<uint8_t>(v);
}

int64_t Framing::payload(int64_t stream) const {
  if (chunk == 0) return stream;
  constexpr int64_t kLength = kChunkLengthBytes;
  // The end of the payload, where it follows a short last chunk, looks like more of it.
  return std::min(most, stream / chunk * (chunk - kLength) + std::max<int64_t>(0, stream % chunk - kLength));
}

Framing framing(const Stream& s, const Parameters& p) {
  Framing f;
  f.most = p.size_bytes;
  if (p.duration_ms > 0) {
    const size_t unit = std::max<size_t>(1, s.write_unit(kOpenChunkBytes));
    f.chunk = static_cast<int64_t>(unit * std::max<size_t>(1, kOpenChunkBytes / unit));
  }
  return f;
}

void send_sized(Stream& s, const Parameters& p, Input& from, Nanoseconds deadline, std::atomic<int64_t>& sent) {
  std::vector<uint8_t> b(std::max<size_t>(1, s.write_unit(kWriteBytes)));
  for (int64_t at = 0; at < p.size_bytes;) {
    size_t n = static_cast<size_t>(std::min<int64_t>(static_cast<int64_t>(b.size()), p.size_bytes - at));
    from.payload(b.data(), n);
    write_counted(s, b.data(), n, n, deadline, sent);
    at += static_cast<int64_t>(n);
  }
}

void send_open(Stream& s, const Parameters& p, Input& from, const Framing& f, Nanoseconds until, Nanoseconds deadline,
               std::atomic<int64_t>& sent) {
  const size_t unit = std::max<size_t>(1, s.write_unit(kOpenChunkBytes));
  const size_t chunk = static_cast<size_t>(f.chunk);
  std::vector<uint8_t> b(chunk + kChunkLengthBytes);
  bool ended = false;
  for (int64_t at = 0; at < p.size_bytes && (at == 0 || wants_more(s, chunk, until, deadline));) {
    const size_t n = static_cast<size_t>(std::min<int64_t>(static_cast<int64_t>(chunk - kChunkLengthBytes), p.size_bytes - at));
    put_big_endian32(b.data(), static_cast<uint32_t>(n));
    from.payload(b.data() + kChunkLengthBytes, n);
    at += static_cast<int64_t>(n);
    size_t length = kChunkLengthBytes + n;
    if (at == p.size_bytes) {
      // Together with the last chunk, so that no packet before the last is a short one.
      put_big_endian32(b.data() + length, 0);
      length += kChunkLengthBytes;
      ended = true;
    }
    write_counted(s, b.data(), length, unit, deadline, sent);
  }
  if (!ended) {
    put_big_endian32(b.data(), 0);
    write_counted(s, b.data(), kChunkLengthBytes, unit, deadline, sent);
  }
}

size_t Chunks::take(const uint8_t* b, size_t n, size_t* taken) {
  *taken = 0;
  size_t at = 0;
  while (left_ == 0 && at < n && !ended_) {
    length_[length_bytes_++] = b[at++];
    if (length_bytes_ < kChunkLengthBytes) continue;
    length_bytes_ = 0;
    uint32_t length = 0;
    for (uint8_t byte : length_) length = length << 8 | byte;
    if (length > kMaxChunkBytes) {
      throw Failure(code::kProtocolViolation, "after " + std::to_string(payload_) + " bytes: a chunk of " + std::to_string(length) +
                                                  " bytes, at most " + std::to_string(kMaxChunkBytes) + " are carried");
    }
    if (length > at_most_ - payload_) {
      throw Failure(code::kProtocolViolation, "a chunk of " + std::to_string(length) + " bytes after " + std::to_string(payload_) +
                                                  ", the header announced at most " + std::to_string(at_most_));
    }
    left_ = length;
    ended_ = length == 0;
  }
  *taken = std::min(left_, n - at);
  left_ -= *taken;
  payload_ += *taken;
  return at + *taken;
}

void HandOver::take(const uint8_t* b, size_t n) {
  std::lock_guard<std::mutex> lock(mutex_);
  block_.insert(block_.end(), b, b + n);
  if (block_.size() >= kBlockBytes) flush_locked();
}

void HandOver::flush() {
  std::lock_guard<std::mutex> lock(mutex_);
  flush_locked();
}

void HandOver::flush_locked() {
  if (block_.empty()) return;
  events_.payload(transfer_, block_.data(), block_.size());
  handed_ += static_cast<int64_t>(block_.size());
  block_.clear();
}

Nanoseconds receive_payload(Stream& s, const Header& h, HandOver& to, Nanoseconds deadline) {
  if (h.open) {
    receive_open(s, h.size_bytes, deadline, to);
  } else {
    receive_sized(s, static_cast<int64_t>(h.size_bytes), deadline, to);
  }
  const Nanoseconds end = now();
  to.flush();
  return end;
}

}  // namespace linktrial
