#include "contract.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

namespace {

[[noreturn]] void bad(const std::string& what) { throw Failure("bad-parameters", "parameters: " + what); }

// JSON (RFC 8259), as much as the parameters need.
class Parser {
 public:
  explicit Parser(const std::string& text) : text_(text) {}

  Json document() {
    Json v = value(0);
    space();
    if (at_ != text_.size()) bad("more than one JSON value");
    return v;
  }

 private:
  void space() {
    while (at_ < text_.size() && std::strchr(" \t\r\n", text_[at_]) && text_[at_] != 0) at_++;
  }
  char next() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void take(char c) {
    if (next() != c) bad("not a JSON document");
    at_++;
  }
  bool word(const char* w) {
    if (text_.compare(at_, std::strlen(w), w) != 0) return false;
    at_ += std::strlen(w);
    return true;
  }

  Json value(int depth) {
    if (depth > 64) bad("nested too deep");
    space();
    Json v;
    if (next() == '{') {
      v.kind = Json::Kind::kObject;
      object(v, depth);
    } else if (next() == '[') {
      v.kind = Json::Kind::kArray;
      array(v, depth);
    } else if (next() == '"') {
      v.kind = Json::Kind::kString;
      v.text = string();
    } else if (word("true")) {
      v.kind = Json::Kind::kBool;
      v.truth = true;
    } else if (word("false")) {
      v.kind = Json::Kind::kBool;
    } else if (!word("null")) {
      v.kind = Json::Kind::kNumber;
      v.text = number();
    }
    return v;
  }

  void object(Json& v, int depth) {
    take('{');
    for (space(); next() != '}'; space()) {
      if (!v.fields.empty()) take(',');
      space();
      std::string name = string();
      space();
      take(':');
      v.fields[name] = value(depth + 1);
    }
    take('}');
  }

  void array(Json& v, int depth) {
    take('[');
    for (space(); next() != ']'; space()) {
      if (!v.items.empty()) take(',');
      v.items.push_back(value(depth + 1));
    }
    take(']');
  }

  std::string string() {
    take('"');
    std::string out;
    while (next() != '"') {
      if (at_ >= text_.size() || static_cast<unsigned char>(next()) < 0x20) bad("not a JSON document");
      if (next() != '\\') {
        out += text_[at_++];
        continue;
      }
      at_++;
      const char* escapes = "\"\\/bfnrt";
      const char* found = next() == '\0' ? nullptr : std::strchr(escapes, next());
      if (found) {
        out += "\"\\/\b\f\n\r\t"[found - escapes];
      } else if (next() == 'u') {
        out += '?';  // no name or value of the contract needs one
        for (int i = 0; i < 4; i++) {
          at_++;
          if (!std::isxdigit(static_cast<unsigned char>(next()))) bad("not a JSON document");
        }
      } else {
        bad("not a JSON document");
      }
      at_++;
    }
    at_++;
    return out;
  }

  std::string number() {
    const size_t from = at_;
    while (next() != '\0' && std::strchr("+-.0123456789eE", next())) at_++;
    std::string n = text_.substr(from, at_ - from);
    char* end = nullptr;
    std::strtod(n.c_str(), &end);
    if (n.empty() || *end != '\0') bad("not a JSON document");
    return n;
  }

  const std::string& text_;
  size_t at_ = 0;
};

// A field of an object; null where it is absent.
const Json* field(const Json& object, const char* name, Json::Kind kind) {
  auto at = object.fields.find(name);
  if (at == object.fields.end() || at->second.kind == Json::Kind::kNull) return nullptr;
  if (at->second.kind != kind) bad(std::string(name) + " has the wrong type");
  return &at->second;
}

int64_t whole(const Json& object, const char* name, int64_t low, int64_t high, int64_t absent = 0) {
  const Json* v = field(object, name, Json::Kind::kNumber);
  if (!v) return absent;
  char* end = nullptr;
  errno = 0;
  const int64_t n = std::strtoll(v->text.c_str(), &end, 10);
  if (*end != '\0' || errno != 0 || n < low || n > high) bad(std::string(name) + " is " + v->text);
  return n;
}

std::string text(const Json& object, const char* name) {
  const Json* v = field(object, name, Json::Kind::kString);
  return v ? v->text : "";
}

Endpoint endpoint(const Json& document, const char* name) {
  const Json* v = field(document, name, Json::Kind::kObject);
  if (!v) return {};
  Endpoint e{text(*v, "address"), static_cast<int>(whole(*v, "port", 0, 65535))};
  in6_addr any;
  if (!e.address.empty() && inet_pton(AF_INET, e.address.c_str(), &any) != 1 && inet_pton(AF_INET6, e.address.c_str(), &any) != 1) {
    bad(std::string(name) + ".address is no IP address");
  }
  return e;
}

// A string of JSON; what is not plain ASCII becomes a question mark.
std::string quoted(const std::string& s) {
  std::string out = "\"";
  for (char c : s.substr(0, 1000)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c >= 0x20 && c < 0x7f ? c : '?';
  }
  return out + "\"";
}

std::mutex output;

// Writes one event as one line, and the payload that it announces, at once.
void say(const char* kind, const std::string& transfer, const std::string& more, const std::string& payload = "") {
  std::string line = std::string("{\"event\":\"") + kind + "\"";
  if (!transfer.empty()) line += ",\"transfer\":" + quoted(transfer);
  line += more + "}\n" + payload;
  std::lock_guard<std::mutex> lock(output);
  for (size_t at = 0; at < line.size();) {
    ssize_t n = ::write(STDOUT_FILENO, line.data() + at, line.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) _exit(1);
    at += static_cast<size_t>(n);
  }
}

std::string figure(const char* name, const std::optional<int64_t>& v) {
  return v ? std::string(",\"") + name + "\":" + std::to_string(*v) : "";
}

std::string text_of(const Sample& s) {
  return "{\"elapsed_ns\":" + std::to_string(s.elapsed_ns) + ",\"sent_bytes\":" + std::to_string(s.sent_bytes) + figure("acked_bytes", s.acked_bytes) +
         figure("cwnd_bytes", s.cwnd_bytes) + figure("srtt_us", s.srtt_us) + figure("rto_us", s.rto_us) + figure("retransmits", s.retransmits) + "}";
}

int stop_pipe[2] = {-1, -1};  // readable for good after SIGTERM

void on_sigterm(int) {
  const int was = errno;
  if (::write(stop_pipe[1], "", 1) < 0) {
    // It is readable already.
  }
  errno = was;
}

}  // namespace

Json parse_json(const std::string& t) { return Parser(t).document(); }

Parameters parse_parameters(const std::string& document) {
  const Json d = parse_json(document);
  if (d.kind != Json::Kind::kObject) bad("expected an object");
  if (whole(d, "contract", INT64_MIN, INT64_MAX) != 2) bad("contract is another version, this driver speaks 2");
  Parameters p;
  p.role = text(d, "role");
  p.device = text(d, "device");
  p.local = endpoint(d, "local");
  p.remote = endpoint(d, "remote");
  if (const Json* limits = field(d, "limits", Json::Kind::kObject)) {
    p.connect_ms = whole(*limits, "connect_ms", INT64_MIN, INT64_MAX);
    p.transfer_ms = whole(*limits, "transfer_ms", INT64_MIN, INT64_MAX);
  }
  if ((p.sample_interval_ms = whole(d, "sample_interval_ms", INT32_MIN, INT32_MAX)) <= 0) p.sample_interval_ms = 100;
  if (const Json* o = field(d, "options", Json::Kind::kObject)) p.options = o->fields;
  check_options(p.options);
  if (p.role == "server") {
    if (p.local.address.empty() || p.local.port == 0) bad("a server needs local.address and local.port");
  } else if (p.role == "client") {
    const Json* t = field(d, "transfer", Json::Kind::kObject);
    if (!t || p.remote.address.empty() || p.remote.port == 0) bad("a client needs transfer, remote.address and remote.port");
    bool v6 = p.remote.address.find(':') != std::string::npos;
    if (!p.local.address.empty() && (p.local.address.find(':') != std::string::npos) != v6) bad("local.address and remote.address are of two families");
    p.transfer_id = text(*t, "id");
    if (p.transfer_id.size() != 32 || p.transfer_id.find_first_not_of("0123456789abcdef") != std::string::npos) bad("transfer.id is not 32 lower-case hexadecimal digits");
    p.size_bytes = whole(*t, "size_bytes", 0, int64_t{1} << 40);
    p.duration_ms = whole(*t, "duration_ms", 0, int64_t{365} * 24 * 3600 * 1000);
  } else if (p.role != "probe") {
    bad("role is " + p.role + ", expected probe, server or client");
  }
  return p;
}

Time limit(int64_t ms) {
  if (ms <= 0 || ms > int64_t{1} << 40) return Time::max();
  return Clock::now() + std::chrono::milliseconds(ms);
}

void say_ready(const Info& info) {
  std::string detail;
  for (const auto& [name, value] : info.detail) detail += (detail.empty() ? "" : ",") + quoted(name) + ":" + quoted(value);
  say("ready", "", ",\"info\":{\"implementation\":" + quoted(info.implementation) + (detail.empty() ? "" : ",\"detail\":{" + detail + "}") + "}");
}

void say_connected(const std::string& transfer, int64_t connect_ns) {
  say("connected", transfer, connect_ns < 0 ? "" : ",\"connect_ns\":" + std::to_string(connect_ns));
}

void say_payload(const std::string& transfer, const uint8_t* b, size_t n) {
  say("payload", transfer, ",\"bytes\":" + std::to_string(n), std::string(reinterpret_cast<const char*>(b), n));
}

void say_sample(const std::string& transfer, const Sample& s) { say("sample", transfer, ",\"sample\":" + text_of(s)); }

void say_result(const std::string& transfer, const Sample& final, int64_t elapsed_ns, int64_t connect_ns) {
  say("result", transfer, ",\"result\":{\"size_bytes\":" + std::to_string(final.sent_bytes) + ",\"elapsed_ns\":" + std::to_string(elapsed_ns) +
                              (connect_ns < 0 ? "" : ",\"connect_ns\":" + std::to_string(connect_ns)) + ",\"final\":" + text_of(final) + "}");
}

int say_error(const std::string& transfer, const Failure& f) {
  say("error", transfer, ",\"code\":" + quoted(f.code) + ",\"message\":" + quoted(f.what()));
  return f.code == "unsupported" ? 127 : 1;
}

void log_line(const std::string& s) {
  const std::string line = s + "\n";
  if (::write(STDERR_FILENO, line.data(), line.size()) < 0) {
    // Nobody reads it.
  }
}

void handle_sigterm() {
  if (::pipe2(stop_pipe, O_CLOEXEC | O_NONBLOCK) < 0) throw Failure("internal", std::string("pipe: ") + std::strerror(errno));
  struct sigaction a {};
  a.sa_handler = on_sigterm;
  sigaction(SIGTERM, &a, nullptr);
  sigaction(SIGINT, &a, nullptr);
}

void wait_for(int fd, short events, Time deadline) {
  for (;;) {
    int64_t ms = -1;
    if (deadline != Time::max()) {
      const auto left = deadline - Clock::now();
      if (left <= Clock::duration::zero()) throw Timeout{};
      ms = std::min<int64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(left).count() + 1, 1 << 30);
    }
    pollfd p[2] = {{fd, events, 0}, {stop_pipe[0], POLLIN, 0}};
    const int n = ::poll(p, 2, static_cast<int>(ms));
    if (n < 0 && errno != EINTR) throw Failure("internal", std::string("poll: ") + std::strerror(errno));
    if (n <= 0) continue;
    if (p[1].revents != 0) throw Stopped{};
    if (p[0].revents != 0) return;
  }
}
