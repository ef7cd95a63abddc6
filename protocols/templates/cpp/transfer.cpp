// The transfer from both ends, and the driver's three roles.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <list>

#include "contract.hpp"

namespace {

constexpr size_t kHeader = 32;
constexpr int64_t kMaxSize = int64_t{1} << 40;
constexpr int64_t kMaxChunk = 1 << 20;
constexpr uint64_t kOpen = uint64_t{1} << 63;  // of the header's size: the payload comes in chunks
constexpr size_t kPiece = 32 << 10;            // of payload, made and hashed at a time
constexpr size_t kOpenPiece = 4 << 10;         // a chunk is sent whole, also when the time is up

int64_t nanoseconds(Clock::duration d) { return std::chrono::duration_cast<std::chrono::nanoseconds>(d).count(); }

void put(uint8_t* b, int bytes, uint64_t v) {
  for (int i = bytes - 1; i >= 0; i--, v >>= 8) b[i] = static_cast<uint8_t>(v);
}

uint64_t get(const uint8_t* b, int bytes) {
  uint64_t v = 0;
  for (int i = 0; i < bytes; i++) v = v << 8 | b[i];
  return v;
}

// Reads exactly n bytes.
void read_full(Stream& s, uint8_t* b, size_t n, Time deadline) {
  while (n > 0) {
    size_t got = s.read(b, n, deadline);
    if (got == 0) throw Failure("reset", "the other end closed the connection");
    b += got;
    n -= got;
  }
}

// The clock, bytes, digest and samples of one transfer.
class Transfer {
 public:
  Transfer(std::string id, Stream& s) : id_(std::move(id)), stream_(s) {}
  ~Transfer() { end(); }

  const Time began = Clock::now();
  std::atomic<int64_t> moved{0};
  Sha256 sum;

  // Writes samples at the interval, which doubles after 500 and every 250 more.
  void sample_every(int64_t ms) {
    thread_ = std::thread([this, interval = Clock::duration(std::chrono::milliseconds(ms))]() mutable {
      std::unique_lock<std::mutex> lock(mutex_);
      Time due = began + interval;
      for (int count = 1; !wake_.wait_until(lock, due, [this] { return ended_; }); count++) {
        sample(Clock::now() - began);
        if (count >= 500 && count % 250 == 0) interval *= 2;
        due += interval;
        if (Time now = Clock::now(); due <= now) due += ((now - due) / interval + 1) * interval;  // what was missed is left out
      }
    });
  }

  void end() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      ended_ = true;
    }
    wake_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  void result(Clock::duration elapsed, int64_t connect_ns) {
    end();
    Sample final = sample(elapsed);
    say_result(id_, sum.hex(), final, nanoseconds(elapsed), connect_ns);
  }

 private:
  Sample sample(Clock::duration at) {
    Sample s;
    last_ = std::max(last_, nanoseconds(at));
    s.elapsed_ns = last_;
    s.sent_bytes = moved;
    stream_.figures(s);
    say_sample(id_, s);
    return s;
  }

  std::string id_;
  Stream& stream_;
  int64_t last_ = 0;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool ended_ = false;
  std::thread thread_;
};

// Sends the payload: all of it, or chunks until its time is up.
void send_payload(Stream& s, const Parameters& p, Transfer& t, Time deadline) {
  const bool open = p.duration_ms > 0;
  const size_t piece = open ? kOpenPiece : kPiece;
  const Time until = t.began + std::chrono::milliseconds(p.duration_ms);
  if (open) s.keep_little_unsent(4 * kOpenPiece);
  std::vector<uint8_t> b(4 + piece);
  for (int64_t at = 0; at < p.size_bytes && !(open && Clock::now() >= until);) {
    const size_t n = static_cast<size_t>(std::min<int64_t>(static_cast<int64_t>(piece), p.size_bytes - at));
    put(b.data(), 4, n);
    payload(b.data() + 4, n, p.seed, static_cast<uint64_t>(at));
    t.sum.add(b.data() + 4, n);
    if (open) {
      s.write(b.data(), 4 + n, deadline);
    } else {
      s.write(b.data() + 4, n, deadline);
    }
    at += static_cast<int64_t>(n);
    t.moved = at;
  }
  const uint8_t none[4] = {};
  if (open) s.write(none, sizeof none, deadline);
}

// Compares what arrives with the payload.
class Verifier {
 public:
  Verifier(Stream& s, const Parameters& p, Transfer& t, uint64_t seed, Time deadline)
      : s_(s), p_(p), t_(t), seed_(seed ^ p.verify_seed_xor), deadline_(deadline) {}
  bool right = true;  // so far

  // Reads n bytes. A wrong payload is read to its end, too: the client listens only
  // when it has written everything.
  void sized(int64_t n) {
    while (n > 0) {
      size_t got = s_.read(b_.data(), static_cast<size_t>(std::min<int64_t>(n, kPiece)), deadline_);
      if (got == 0) throw Failure("reset", "the client closed the connection in its payload");
      const int64_t at = t_.moved;
      payload(want_.data(), got, seed_, static_cast<uint64_t>(at));
      if (p_.verify_flip_at >= at && p_.verify_flip_at < at + static_cast<int64_t>(got)) want_[static_cast<size_t>(p_.verify_flip_at - at)] ^= 0xff;
      right = right && std::memcmp(b_.data(), want_.data(), got) == 0;
      t_.sum.add(b_.data(), got);
      t_.moved = at + static_cast<int64_t>(got);
      n -= static_cast<int64_t>(got);
    }
  }

  // Reads chunks, of most bytes at most.
  void chunks(int64_t most) {
    for (;;) {
      uint8_t length[4];
      read_full(s_, length, sizeof length, deadline_);
      const int64_t n = static_cast<int64_t>(get(length, 4));
      if (n == 0) return;
      if (n > kMaxChunk || t_.moved + n > most) throw Failure("protocol-violation", "a chunk of " + std::to_string(n) + " bytes");
      sized(n);
    }
  }

 private:
  Stream& s_;
  const Parameters& p_;
  Transfer& t_;
  uint64_t seed_;
  Time deadline_;
  std::vector<uint8_t> b_ = std::vector<uint8_t>(kPiece), want_ = std::vector<uint8_t>(kPiece);
};

void send_all(Stream& s, const Parameters& p, Time begin, Time connect_deadline) {
  uint8_t first = 0;
  try {
    read_full(s, &first, 1, connect_deadline);
  } catch (const Timeout&) {
    throw Failure("connect-timeout", "connected, but the server sent no byte within limits.connect_ms");
  }
  if (first != 'R') throw Failure("protocol-violation", "the server's first byte is not R");
  const int64_t connect_ns = nanoseconds(Clock::now() - begin);
  say_connected(p.transfer_id, connect_ns);
  uint8_t header[kHeader];
  for (size_t i = 0; i < 16; i++) header[i] = static_cast<uint8_t>(std::stoi(p.transfer_id.substr(2 * i, 2), nullptr, 16));
  put(header + 16, 8, static_cast<uint64_t>(p.size_bytes) | (p.duration_ms > 0 ? kOpen : 0));
  put(header + 24, 8, p.seed);
  s.write(header, sizeof header, limit(p.transfer_ms));
  Transfer t(p.transfer_id, s);
  const Time deadline = limit(p.transfer_ms);
  t.sample_every(p.sample_interval_ms);
  send_payload(s, p, t, deadline);
  uint8_t answer = 0;
  read_full(s, &answer, 1, deadline);
  const Clock::duration elapsed = Clock::now() - t.began;
  if (answer == '!') throw Failure("corrupted", "the server received other bytes than were sent");
  if (answer != '.') throw Failure("protocol-violation", "the server's answer is neither . nor !");
  t.result(elapsed, connect_ns);
}

// Reads and verifies the payload, and answers; false: it was wrong.
bool receive(Stream& s, const Parameters& p, const std::string& id, const uint8_t* header) {
  Transfer t(id, s);
  const Time deadline = limit(p.transfer_ms);
  uint64_t size = get(header + 16, 8);
  const bool open = (size & kOpen) != 0;
  size &= ~kOpen;
  if (size > static_cast<uint64_t>(kMaxSize)) throw Failure("protocol-violation", "the header announces " + std::to_string(size) + " bytes");
  say_connected(id, -1);
  t.sample_every(p.sample_interval_ms);
  Verifier v(s, p, t, get(header + 24, 8), deadline);
  if (open) {
    v.chunks(static_cast<int64_t>(size));
  } else {
    v.sized(static_cast<int64_t>(size));
  }
  const Clock::duration elapsed = Clock::now() - t.began;
  const uint8_t answer = v.right ? '.' : '!';
  s.write(&answer, 1, deadline);
  if (v.right) t.result(elapsed, -1);
  return v.right;
}

// Takes one connection from R to its close.
void serve(Stream& s, const Parameters& p) {
  uint8_t header[kHeader];
  std::string id;
  try {
    const Time deadline = limit(p.connect_ms);
    const uint8_t ready = 'R';
    s.write(&ready, 1, deadline);
    read_full(s, header, sizeof header, deadline);
    for (size_t i = 0; i < 16; i++) {
      id += "0123456789abcdef"[header[i] >> 4];
      id += "0123456789abcdef"[header[i] & 15];
    }
    if (!receive(s, p, id, header)) say_error(id, Failure("corrupted", "the payload is not the one that the header announced"));
  } catch (const Timeout&) {
    if (!id.empty()) say_error(id, Failure("transfer-timeout", "the payload did not arrive within limits.transfer_ms"));
    return;
  } catch (const Stopped&) {
    if (!id.empty()) say_error(id, Failure("aborted", "SIGTERM while the transfer ran"));
    return;
  } catch (const Failure& f) {
    if (!id.empty()) say_error(id, f);
    else log_line(std::string("a connection ended before its header: ") + f.what());
    return;
  }
  // The client closes first, once it has the answer.
  try {
    uint8_t b;
    s.read(&b, 1, limit(p.transfer_ms));
  } catch (const Timeout&) {
  } catch (const Stopped&) {
  } catch (const Failure&) {
  }
  s.finish();
}

std::string read_standard_input() {
  std::string text;
  char b[4096];
  for (;;) {
    ssize_t n = ::read(STDIN_FILENO, b, sizeof b);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 || text.size() > (1 << 20)) throw Failure("bad-parameters", "parameters: standard input cannot be read, or is too long");
    if (n == 0) return text;
    text.append(b, static_cast<size_t>(n));
  }
}

}  // namespace

int run_client(const Parameters& p) {
  const Time begin = Clock::now(), deadline = limit(p.connect_ms);
  std::string late = "connect-timeout";
  try {
    std::unique_ptr<Stream> s = connect(p, deadline);
    late = "transfer-timeout";
    send_all(*s, p, begin, deadline);
    s->finish();
    return 0;
  } catch (const Timeout&) {
    return say_error(p.transfer_id, Failure(late, "the limit passed"));
  } catch (const Stopped&) {
    return say_error(p.transfer_id, Failure("aborted", "SIGTERM while the transfer ran"));
  } catch (const Failure& f) {
    return say_error(p.transfer_id, f);
  }
}

int run_server(const Parameters& p) {
  struct Connection {
    std::unique_ptr<Stream> stream;
    std::atomic<bool> done{false};
    std::thread thread;
  };
  std::list<Connection> running;
  auto join = [&](bool all) {
    running.remove_if([&](Connection& c) {
      if (!all && !c.done) return false;
      c.thread.join();
      return true;
    });
  };
  std::unique_ptr<Listener> l = listen(p);
  say_ready(probe(p));
  try {
    for (;;) {
      std::unique_ptr<Stream> s = l->accept();
      join(false);
      Connection& c = running.emplace_back();
      c.stream = std::move(s);
      c.thread = std::thread([&c, &p] {
        serve(*c.stream, p);
        c.stream.reset();
        c.done = true;
      });
    }
  } catch (const Stopped&) {
  }
  l.reset();
  join(true);
  return 0;
}

int main() {
  std::signal(SIGPIPE, SIG_IGN);
  try {
    Parameters p = parse_parameters(read_standard_input());
    handle_sigterm();
    Info info = probe(p);
    if (p.role == "server") return run_server(p);
    say_ready(info);
    return p.role == "client" ? run_client(p) : 0;
  } catch (const Failure& f) {
    return say_error("", f);
  } catch (const std::exception& e) {
    return say_error("", Failure("internal", e.what()));
  }
}
