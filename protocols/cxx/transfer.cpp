#include "transfer.hpp"

#include <algorithm>

#include "exchange.hpp"
#include "interrupts.hpp"
#include "sampler.hpp"

namespace linktrial {
namespace {

// How long the ends take care, after the result, that the close arrives. It is
// outside the measured time; a longer care would only put packets on the radio
// in the next trial's time. The server's begins when its answer was
// acknowledged; until then, within limits.transfer_ms, the client may still be
// waiting for it.
constexpr Nanoseconds kCloseFirst = 4 * kSecond;  // below contract.ExitPatience
constexpr Nanoseconds kCloseSecond = 10 * kSecond;
// Of the header's size field: the payload is an open one.
constexpr uint64_t kOpenBit = uint64_t{1} << 63;

void put_big_endian(uint8_t* b, uint64_t v) {
  for (int i = 7; i >= 0; i--, v >>= 8) b[i] = static_cast<uint8_t>(v);
}

uint64_t get_big_endian(const uint8_t* b) {
  uint64_t v = 0;
  for (int i = 0; i < 8; i++) v = v << 8 | b[i];
  return v;
}

void write_all(Stream& s, const uint8_t* b, size_t n, Nanoseconds deadline) {
  for (size_t at = 0; at < n;) at += s.write(b + at, n - at, deadline);
}

// Reads exactly n bytes; false at an end of the stream before.
bool read_full(Stream& s, uint8_t* b, size_t n, Nanoseconds deadline) {
  for (size_t at = 0; at < n;) {
    size_t got = s.read(b + at, n - at, deadline);
    if (got == 0) return false;
    at += got;
  }
  return true;
}

std::string byte_text(uint8_t b) {
  static const char digits[] = "0123456789abcdef";
  return std::string("0x") + digits[b >> 4] + digits[b & 15];
}

void check_ready(Stream& s, Nanoseconds deadline) {
  uint8_t ready = 0;
  try {
    if (!read_full(s, &ready, 1, deadline)) throw Failure(code::kReset, "the server closed the connection before its first byte");
  } catch (const Timeout&) {
    throw Failure(code::kConnectTimeout, "connected, but the server sent no byte within limits.connect_ms");
  }
  if (ready != kByteReady) throw Failure(code::kProtocolViolation, "the server's first byte is " + byte_text(ready));
}

void check_acknowledgement(Stream& s, Nanoseconds deadline) {
  uint8_t ack = 0;
  if (!read_full(s, &ack, 1, deadline)) throw Failure(code::kReset, "the server closed the connection before its acknowledgement");
  if (ack != kByteAccepted) throw Failure(code::kProtocolViolation, "the server's acknowledgement is " + byte_text(ack));
}

void serve_transfer(Stream& stream, const Header& h, const Parameters& p, Events& events) {
  const std::string id = hex(h.id);
  const Nanoseconds start = now();
  // The client's clock started earlier than this one, so its own limit comes first.
  const Nanoseconds deadline = after_ms(start, p.transfer_ms);
  if (h.size_bytes > static_cast<uint64_t>(kMaxSizeBytes)) {
    throw Failure(code::kProtocolViolation, "the header announces " + std::to_string(h.size_bytes) + " bytes, at most " +
                                                std::to_string(kMaxSizeBytes) + " are carried");
  }
  events.connected(id, std::nullopt);
  HandOver to(events, id);
  Sampler sampler(events, id, stream, &to, to.handed(), Framing{0, kMaxSizeBytes}, start, p.sample_interval_ms * kMillisecond);
  const Nanoseconds end = receive_payload(stream, h, to, deadline);
  write_all(stream, &kByteAccepted, 1, deadline);
  Sample last = sampler.stop(end);
  Result result;
  result.size_bytes = to.handed();
  result.elapsed_ns = end - start;
  result.final = last;
  result.info = stream.info();
  events.result(id, result);
}

}  // namespace

void encode(const Header& h, uint8_t (&b)[kHeaderBytes]) {
  std::copy(h.id.begin(), h.id.end(), b);
  put_big_endian(b + 16, h.size_bytes | (h.open ? kOpenBit : 0));
}

Header decode_header(const uint8_t (&b)[kHeaderBytes]) {
  Header h;
  std::copy(b, b + 16, h.id.begin());
  const uint64_t size = get_big_endian(b + 16);
  h.open = (size & kOpenBit) != 0;
  h.size_bytes = size & ~kOpenBit;
  return h;
}

void run_client(Backend& backend, const Parameters& p, Input& input, Events& events, Interrupts& interrupts, std::atomic<bool>& delivered) {
  const std::string id = hex(p.transfer_id);
  const Nanoseconds begin = now();
  const Nanoseconds connect_deadline = after_ms(begin, p.connect_ms);
  std::unique_ptr<Stream> stream = backend.connect(p, connect_deadline, interrupts.stopped());
  Interrupts::Guard guard(interrupts, [&] { stream->interrupt(); });
  try {
    check_ready(*stream, connect_deadline);
    const Nanoseconds connect_ns = now() - begin;
    events.connected(id, connect_ns);

    uint8_t header[kHeaderBytes];
    encode({p.transfer_id, static_cast<uint64_t>(p.size_bytes), p.duration_ms > 0}, header);
    write_all(*stream, header, sizeof header, after_ms(now(), p.transfer_ms));

    const Nanoseconds start = now();
    const Nanoseconds deadline = after_ms(start, p.transfer_ms);
    std::atomic<int64_t> sent{0};  // of the stream
    const Framing f = framing(*stream, p);
    Sampler sampler(events, id, *stream, nullptr, sent, f, start, p.sample_interval_ms * kMillisecond);
    Result result;
    if (p.duration_ms > 0) {
      send_open(*stream, p, input, f, after_ms(start, p.duration_ms), deadline, sent);
    } else {
      send_sized(*stream, p, input, deadline, sent);
    }
    check_acknowledgement(*stream, deadline);
    const Nanoseconds end = now();
    result.elapsed_ns = end - start;
    result.final = sampler.stop(end);
    // The server's byte is the acknowledgement of everything.
    result.size_bytes = f.payload(sent);
    if (result.final.acked_bytes) result.final.acked_bytes = result.size_bytes;
    result.connect_ns = connect_ns;
    result.info = stream->info();
    events.result(id, result);
    delivered = true;
  } catch (const Timeout&) {
    stream->interrupt();
    throw Failure(code::kTransferTimeout, "no acknowledgement within limits.transfer_ms");
  } catch (const Failure&) {
    stream->interrupt();
    throw;
  }
  stream->close_first(now() + kCloseFirst);
}

void serve(Stream& stream, const Parameters& p, Events& events, const std::atomic<bool>& stop) {
  std::string id;
  try {
    // A client that vanished in the handshake must not keep its connection.
    const Nanoseconds deadline = after_ms(now(), p.connect_ms);
    uint8_t b[kHeaderBytes];
    write_all(stream, &kByteReady, 1, deadline);
    if (!read_full(stream, b, sizeof b, deadline)) {
      log_line("a connection closed before its header");
      return;
    }
    Header h = decode_header(b);
    id = hex(h.id);
    serve_transfer(stream, h, p, events);
    stream.close_second(kCloseSecond, after_ms(now(), p.transfer_ms));
    return;
  } catch (const Timeout&) {
    if (id.empty()) {
      log_line("a connection sent no header within limits.connect_ms");
    } else {
      events.error(id, code::kTransferTimeout, "the payload did not arrive within limits.transfer_ms");
    }
  } catch (const Failure& f) {
    if (id.empty()) {
      log_line(std::string("a connection failed before its transfer was known: ") + f.what());
    } else if (stop) {
      events.error(id, code::kAborted, "SIGTERM at the server while the transfer ran");
    } else {
      events.error(id, f.code, f.what());
    }
  }
  stream.interrupt();
}

}  // namespace linktrial
