// The transfer from both ends, and the driver's three roles.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <list>

#include "contract.hpp"

namespace {

constexpr size_t kHeader = 24;
constexpr int64_t kMaxSize = int64_t{1} << 40;
constexpr int64_t kMaxChunk = 1 << 20;
constexpr uint64_t kOpen = uint64_t{1} << 63;  // of the header's size: the payload comes in chunks
constexpr size_t kPiece = 32 << 10;            // of payload at a time
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

// The clock, bytes and samples of one transfer.
class Transfer {
 public:
  Transfer(std::string i, Stream& s) : id(std::move(i)), stream_(s) {}
  ~Transfer() { end(); }

  const std::string id;
  const Time began = Clock::now();
  std::atomic<int64_t> moved{0};

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
    say_result(id, final, nanoseconds(elapsed), connect_ns);
  }

 private:
  Sample sample(Clock::duration at) {
    Sample s;
    last_ = std::max(last_, nanoseconds(at));
    s.elapsed_ns = last_;
    s.sent_bytes = moved;
    stream_.figures(s);
    say_sample(id, s);
    return s;
  }

  Stream& stream_;
  int64_t last_ = 0;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool ended_ = false;
  std::thread thread_;
};

// Sends the payload: all of it, or chunks until its time is up, at least one.
void send_payload(Stream& s, const Parameters& p, Input& in, Transfer& t, Time deadline) {
  const bool open = p.duration_ms > 0;
  const size_t piece = open ? kOpenPiece : kPiece;
  const Time until = t.began + std::chrono::milliseconds(p.duration_ms);
  if (open) s.keep_little_unsent(4 * kOpenPiece);
  std::vector<uint8_t> b(4 + piece);
  for (int64_t at = 0; at < p.size_bytes && !(open && at > 0 && Clock::now() >= until);) {
    const size_t n = static_cast<size_t>(std::min<int64_t>(static_cast<int64_t>(piece), p.size_bytes - at));
    put(b.data(), 4, n);
    in.payload(b.data() + 4, n);
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

// Hands over what arrives.
class Incoming {
 public:
  Incoming(Stream& s, Transfer& t, Time deadline) : s_(s), t_(t), deadline_(deadline) {}

  // Reads n bytes.
  void sized(int64_t n) {
    while (n > 0) {
      size_t got = s_.read(b_.data(), static_cast<size_t>(std::min<int64_t>(n, kPiece)), deadline_);
      if (got == 0) throw Failure("reset", "the client closed the connection in its payload");
      say_payload(t_.id, b_.data(), got);
      t_.moved += static_cast<int64_t>(got);
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
  Transfer& t_;
  Time deadline_;
  std::vector<uint8_t> b_ = std::vector<uint8_t>(kPiece);
};

void send_all(Stream& s, const Parameters& p, Input& in, Time begin, Time connect_deadline) {
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
  s.write(header, sizeof header, limit(p.transfer_ms));
  Transfer t(p.transfer_id, s);
  const Time deadline = limit(p.transfer_ms);
  t.sample_every(p.sample_interval_ms);
  send_payload(s, p, in, t, deadline);
  uint8_t answer = 0;
  read_full(s, &answer, 1, deadline);
  const Clock::duration elapsed = Clock::now() - t.began;
  if (answer != '.') throw Failure("protocol-violation", "the server's answer is not .");
  t.result(elapsed, connect_ns);
}

// Reads the payload, hands it over, and answers.
void receive(Stream& s, const Parameters& p, const std::string& id, const uint8_t* header) {
  Transfer t(id, s);
  const Time deadline = limit(p.transfer_ms);
  uint64_t size = get(header + 16, 8);
  const bool open = (size & kOpen) != 0;
  size &= ~kOpen;
  if (size > static_cast<uint64_t>(kMaxSize)) throw Failure("protocol-violation", "the header announces " + std::to_string(size) + " bytes");
  say_connected(id, -1);
  t.sample_every(p.sample_interval_ms);
  Incoming in(s, t, deadline);
  if (open) {
    in.chunks(static_cast<int64_t>(size));
  } else {
    in.sized(static_cast<int64_t>(size));
  }
  const Clock::duration elapsed = Clock::now() - t.began;
  const uint8_t answer = '.';
  s.write(&answer, 1, deadline);
  t.result(elapsed, -1);
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
    receive(s, p, id, header);
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

}  // namespace

// Reads some of standard input; 0: it has ended.
static size_t read_some(uint8_t* b, size_t n) {
  for (;;) {
    ssize_t got = ::read(STDIN_FILENO, b, n);
    if (got >= 0) return static_cast<size_t>(got);
    if (errno != EINTR) throw Failure("bad-parameters", "standard input cannot be read");
  }
}

std::string Input::document() {
  std::string text;
  uint8_t b[4096];
  for (;;) {
    const size_t n = read_some(b, sizeof b);
    text.append(reinterpret_cast<const char*>(b), n);
    if (text.size() > (1 << 20)) throw Failure("bad-parameters", "parameters: too long");
    const size_t end = text.find('\n');
    if (end != std::string::npos) ahead_ = text.substr(end + 1);
    if (end != std::string::npos || n == 0) return text.substr(0, end);
  }
}

void Input::payload(uint8_t* b, size_t n) {
  const size_t ahead = std::min(n, ahead_.size());
  std::memcpy(b, ahead_.data(), ahead);
  ahead_.erase(0, ahead);
  for (size_t at = ahead; at < n;) {
    const size_t got = read_some(b + at, n - at);
    if (got == 0) throw Failure("internal", "standard input ended within the payload");
    at += got;
  }
}

int run_client(const Parameters& p, Input& in) {
  const Time begin = Clock::now(), deadline = limit(p.connect_ms);
  std::string late = "connect-timeout";
  try {
    std::unique_ptr<Stream> s = connect(p, deadline);
    late = "transfer-timeout";
    send_all(*s, p, in, begin, deadline);
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
    Input in;
    Parameters p = parse_parameters(in.document());
    handle_sigterm();
    Info info = probe(p);
    if (p.role == "server") return run_server(p);
    say_ready(info);
    return p.role == "client" ? run_client(p, in) : 0;
  } catch (const Failure& f) {
    return say_error("", f);
  } catch (const std::exception& e) {
    return say_error("", Failure("internal", e.what()));
  }
}
