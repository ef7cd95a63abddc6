#include "events.hpp"

#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <nlohmann/json.hpp>

namespace linktrial {
namespace {

using json = nlohmann::ordered_json;

// contract.MaxLine is 64 KiB; a sentence for people needs far less.
constexpr size_t kMessageBytes = 1000;

json event(const char* kind, const std::string& transfer) {
  json e{{"event", kind}};
  if (!transfer.empty()) e["transfer"] = transfer;
  return e;
}

json to_json(const Info& info) {
  json j{{"implementation", info.implementation}};
  if (!info.choices.empty()) j["choices"] = info.choices;
  if (!info.detail.empty()) j["detail"] = info.detail;
  return j;
}

void put(json& j, const char* name, const std::optional<int64_t>& v) {
  if (v && *v >= 0) j[name] = *v;
}

void put(json& j, const char* name, const std::optional<double>& v) {
  if (v && std::isfinite(*v) && *v >= 0) j[name] = *v;
}

json to_json(const Sample& s) {
  json j{{"elapsed_ns", s.elapsed_ns}, {"sent_bytes", s.sent_bytes}};
  put(j, "acked_bytes", s.acked_bytes);
  put(j, "cwnd_bytes", s.cwnd_bytes);
  put(j, "ssthresh_bytes", s.ssthresh_bytes);
  put(j, "flight_bytes", s.flight_bytes);
  put(j, "srtt_us", s.srtt_us);
  put(j, "rttvar_us", s.rttvar_us);
  put(j, "rto_us", s.rto_us);
  put(j, "retransmits", s.retransmits);
  put(j, "timeouts", s.timeouts);
  put(j, "loss_events", s.loss_events);
  put(j, "pacing_bps", s.pacing_bps);
  put(j, "bandwidth_bps", s.bandwidth_bps);
  put(j, "transmitted_bytes", s.transmitted_bytes);
  put(j, "retransmitted_bytes", s.retransmitted_bytes);
  put(j, "min_rtt_us", s.min_rtt_us);
  for (const auto& [name, v] : s.more) {
    if (std::isfinite(v)) j["more"][name] = v;
  }
  return j;
}

std::string line(const json& j) { return j.dump(-1, ' ', false, json::error_handler_t::replace) + "\n"; }

bool write_all(int fd, const std::string& s) {
  for (size_t at = 0; at < s.size();) {
    ssize_t n = ::write(fd, s.data() + at, s.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += static_cast<size_t>(n);
  }
  return true;
}

}  // namespace

void Events::write_line(std::string s) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!write_all(fd_, s)) _exit(1);
}

void Events::ready(const Info& info) {
  json e = event("ready", "");
  e["info"] = to_json(info);
  write_line(line(e));
}

void Events::payload(const std::string& transfer, const uint8_t* b, size_t n) {
  json e = event("payload", transfer);
  e["bytes"] = n;
  std::string s = line(e);
  s.append(reinterpret_cast<const char*>(b), n);
  write_line(std::move(s));
}

void Events::connected(const std::string& transfer, std::optional<int64_t> connect_ns) {
  json e = event("connected", transfer);
  put(e, "connect_ns", connect_ns);
  write_line(line(e));
}

void Events::sample(const std::string& transfer, const Sample& s) {
  json e = event("sample", transfer);
  e["sample"] = to_json(s);
  write_line(line(e));
}

void Events::result(const std::string& transfer, const Result& r) {
  json e = event("result", transfer);
  json j{{"size_bytes", r.size_bytes}, {"elapsed_ns", r.elapsed_ns}};
  if (r.connect_ns > 0) j["connect_ns"] = r.connect_ns;
  j["final"] = to_json(r.final);
  j["info"] = to_json(r.info);
  e["result"] = j;
  write_line(line(e));
}

void Events::error(const std::string& transfer, const char* code, const std::string& message) {
  json e = event("error", transfer);
  e["code"] = code;
  e["message"] = message.substr(0, kMessageBytes);
  write_line(line(e));
}

void log_line(const std::string& message) { write_all(STDERR_FILENO, message + "\n"); }

}  // namespace linktrial
