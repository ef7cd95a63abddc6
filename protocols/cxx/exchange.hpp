// The payload of a transfer on its way (contract/wire.go): as one piece where
// a size bounds it, in chunks with their lengths where a time does.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "backend.hpp"
#include "input.hpp"

namespace linktrial {

// Length of a chunk's length, and the longest chunk, in bytes.
constexpr size_t kChunkLengthBytes = 4;
constexpr uint32_t kMaxChunkBytes = 1 << 20;

void put_big_endian32(uint8_t* b, uint32_t v);

// Where the payload is in the stream after the header.
struct Framing {
  int64_t chunk = 0;  // bytes of a whole chunk with its length; 0: nothing but payload
  int64_t most = 0;   // payload there is at most

  // How much of so many bytes of the stream is payload.
  int64_t payload(int64_t stream) const;
};

// The framing of a payload sent over s: of chunks of whole packets of the
// protocol, short enough that a slow link soon has sent one.
Framing framing(const Stream& s, const Parameters& p);

// Sends a payload of a size. Counts the bytes of the stream in sent. Throws as
// Stream::write and Input::payload do.
void send_sized(Stream& s, const Parameters& p, Input& from, Nanoseconds deadline, std::atomic<int64_t>& sent);

// The same, of chunks until a moment, at least one, of a payload of p.size_bytes at
// most. What the protocol has not sent yet is kept small, so that little is left to
// send then.
void send_open(Stream& s, const Parameters& p, Input& from, const Framing& f, Nanoseconds until, Nanoseconds deadline,
               std::atomic<int64_t>& sent);

// Takes the stream of an open payload apart, in parts of any size.
class Chunks {
 public:
  explicit Chunks(uint64_t at_most) : at_most_(at_most) {}

  // Takes bytes of the stream. Returns how many it took, up to the next piece
  // of payload, which then is the last part of what was taken; taken names its
  // length. Throws Failure(protocol-violation).
  size_t take(const uint8_t* b, size_t n, size_t* taken);
  bool ended() const { return ended_; }

 private:
  const uint64_t at_most_;
  uint64_t payload_ = 0;
  uint8_t length_[kChunkLengthBytes];
  size_t length_bytes_ = 0;  // how much of it is there
  size_t left_ = 0;          // of the chunk
  bool ended_ = false;
};

class Events;

// Hands received payload over, in blocks: when one is full, before each sample, and at
// the end. From any thread.
class HandOver {
 public:
  HandOver(Events& events, std::string transfer) : events_(events), transfer_(std::move(transfer)) {}

  void take(const uint8_t* b, size_t n);
  void flush();
  const std::atomic<int64_t>& handed() const { return handed_; }

 private:
  void flush_locked();

  Events& events_;
  const std::string transfer_;
  std::mutex mutex_;
  std::vector<uint8_t> block_;
  std::atomic<int64_t> handed_{0};
};

struct Header;

// Receives the payload that h announces and hands it over; returns when its last byte
// came. Throws as Stream::read does, and Failure(protocol-violation).
Nanoseconds receive_payload(Stream& s, const Header& h, HandOver& to, Nanoseconds deadline);

}  // namespace linktrial
