// What a protocol gives to the shared transfer: streams of bytes, opened and accepted.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "clock.hpp"
#include "events.hpp"
#include "failure.hpp"
#include "parameters.hpp"

namespace linktrial {

// What a sender has still to do.
struct Backlog {
  int64_t unsent_bytes = 0;  // taken, and not sent once
  int64_t window_bytes = 0;  // sent in one round trip, about
  Nanoseconds round_trip = 0;
};

// One reliable connection. One thread reads and writes; state and interrupt
// may be called from others at the same time.
class Stream {
 public:
  virtual ~Stream() = default;

  // Hands over up to n bytes, waiting until the protocol takes at least one.
  // Returns how many it took. Throws Timeout at the deadline, Failure(reset)
  // when the connection is gone or interrupted.
  virtual size_t write(const uint8_t* b, size_t n, Nanoseconds deadline) = 0;

  // Reads up to n bytes, waiting for at least one; 0 is the end of the stream.
  // Throws as write does.
  virtual size_t read(uint8_t* b, size_t n, Nanoseconds deadline) = 0;

  // How many bytes to hand over at once, so that no packet but the last is
  // short: about so many, or as near as the protocol has it.
  virtual size_t write_unit(size_t about) const = 0;

  // None where the protocol does not know it.
  virtual std::optional<Backlog> backlog() = 0;

  // Fills in what the protocol knows. sent_bytes is already there, and counts
  // the stream after a header of kHeaderBytes, as acked_bytes must; sender says
  // which end this is.
  virtual void state(Sample& s, bool sender) = 0;

  // What carries this very connection.
  virtual Info info() const = 0;

  // The end that closes first, after the last byte has arrived: closes gracefully,
  // so that the other end learns of it. Waits until the deadline at most. The
  // transfer is over by then, so neither this nor the next fails.
  virtual void close_first(Nanoseconds deadline) noexcept = 0;

  // The other end: waits until what was written has arrived, until the deadline
  // at most, and then for the peer's close, for patience at most.
  virtual void close_second(Nanoseconds patience, Nanoseconds deadline) noexcept = 0;

  // Resets the connection at once, for good, and notifies the peer if it can. A
  // thread in read or write returns with a Failure.
  virtual void interrupt() = 0;
};

class Listener {
 public:
  virtual ~Listener() = default;
  // Waits for the next connection; null after interrupt.
  virtual std::unique_ptr<Stream> accept() = 0;
  virtual void interrupt() = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual const std::vector<Option>& options() const = 0;

  // What would carry the data with these options; throws Failure(unsupported).
  virtual Info query(const Parameters& p) = 0;

  // Throws Failure(listen-failed).
  virtual std::unique_ptr<Listener> listen(const Parameters& p) = 0;

  // Connects; retries until the deadline where there is no answer. A refusal
  // is an answer. Throws Failure with connect-refused, connect-timeout or
  // unreachable; returns early with
  // Failure(aborted) once stop is set.
  virtual std::unique_ptr<Stream> connect(const Parameters& p, Nanoseconds deadline, const std::atomic<bool>& stop) = 0;
};

// The whole of a driver process; returns its exit code.
int run_driver(Backend& backend);

}  // namespace linktrial
