// The lines a driver writes to standard output (contract.Event).
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace linktrial {

// contract.Info
struct Info {
  std::string implementation;
  std::map<std::string, std::vector<std::string>> choices;
  std::map<std::string, std::string> detail;
};

// contract.Sample; what a protocol does not know stays absent.
struct Sample {
  int64_t elapsed_ns = 0;
  int64_t sent_bytes = 0;  // server: received
  std::optional<int64_t> acked_bytes, cwnd_bytes, ssthresh_bytes, flight_bytes;
  std::optional<int64_t> srtt_us, rttvar_us, rto_us;
  std::optional<int64_t> retransmits, timeouts, loss_events;
  std::optional<double> pacing_bps, bandwidth_bps;
  std::optional<int64_t> transmitted_bytes, retransmitted_bytes, min_rtt_us;
  std::map<std::string, double> more;
};

// contract.Result
struct Result {
  int64_t size_bytes = 0;
  int64_t elapsed_ns = 0;
  int64_t connect_ns = 0;  // client only
  Sample final;
  Info info;
};

// Writes events as whole lines, one write(2) each, from any thread. The
// process ends when its reader has gone.
class Events {
 public:
  explicit Events(int fd) : fd_(fd) {}

  void ready(const Info& info);
  // Hands n bytes of a transfer's payload over: a line that announces them, and they.
  void payload(const std::string& transfer, const uint8_t* b, size_t n);
  void connected(const std::string& transfer, std::optional<int64_t> connect_ns);
  void sample(const std::string& transfer, const Sample& s);
  void result(const std::string& transfer, const Result& r);
  // transfer is empty for a failure of the driver as a whole.
  void error(const std::string& transfer, const char* code, const std::string& message);

 private:
  void write_line(std::string line);

  std::mutex mutex_;
  int fd_;
};

// One line of the log, on standard error.
void log_line(const std::string& message);

}  // namespace linktrial
