// What every driver needs of the driver contract, whatever its protocol. The
// protocol is in protocol.cpp, the transfer in transfer.cpp.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using Clock = std::chrono::steady_clock;
using Time = Clock::time_point;

// A JSON value; text is that of strings and numbers.
struct Json {
  enum class Kind { kNull, kBool, kNumber, kString, kArray, kObject };
  Kind kind = Kind::kNull;
  bool truth = false;
  std::string text;
  std::vector<Json> items;
  std::map<std::string, Json> fields;
};
Json parse_json(const std::string& text);

// An error with its code in the contract.
struct Failure : std::runtime_error {
  Failure(std::string c, const std::string& message) : std::runtime_error(message), code(std::move(c)) {}
  std::string code;
};
struct Timeout {};  // a limit passed; who set it decides which code that is
struct Stopped {};  // SIGTERM

struct Endpoint {
  std::string address;
  int port = 0;
};

struct Parameters {
  std::string role, device;
  Endpoint local, remote;
  std::string transfer_id;  // 32 hexadecimal digits
  int64_t size_bytes = 0, duration_ms = 0;
  std::map<std::string, Json> options;
  int64_t connect_ms = 0, transfer_ms = 0, sample_interval_ms = 100;
};
Parameters parse_parameters(const std::string& document);

// When a limit that begins now ends; 0 is no limit.
Time limit(int64_t ms);

// What a sample has; add the fields that the protocol knows, and their lines to
// text() in contract.cpp.
struct Sample {
  int64_t elapsed_ns = 0, sent_bytes = 0;
  std::optional<int64_t> acked_bytes, cwnd_bytes, srtt_us, rto_us, retransmits;
};

struct Info {
  std::string implementation;
  std::map<std::string, std::string> detail;
};

// Events, one line each. connect_ns below 0 is left out.
void say_ready(const Info& info);
void say_connected(const std::string& transfer, int64_t connect_ns);
void say_payload(const std::string& transfer, const uint8_t* b, size_t n);  // hands payload over
void say_sample(const std::string& transfer, const Sample& s);
void say_result(const std::string& transfer, const Sample& final, int64_t elapsed_ns, int64_t connect_ns);
int say_error(const std::string& transfer, const Failure& f);  // returns the exit code
void log_line(const std::string& text);

// Standard input: the document in its first line, and after it the payload of a client.
class Input {
 public:
  std::string document();
  void payload(uint8_t* b, size_t n);  // the next n bytes; Failure("internal") where it has ended

 private:
  std::string ahead_;  // read with the document
};

// From here on SIGTERM ends waits: wait_for throws Stopped.
void handle_sigterm();
// Waits until a descriptor is ready for the events of poll(2). Throws Timeout at
// the deadline, Stopped after SIGTERM.
void wait_for(int fd, short events, Time deadline);

// One reliable connection. Every wait throws Timeout at its deadline, Stopped after
// SIGTERM, and Failure("reset") where the connection is gone. The destructor resets
// the connection: what was not sent is discarded.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual void write(const uint8_t* b, size_t n, Time deadline) = 0;      // all of it
  virtual size_t read(uint8_t* b, size_t n, Time deadline) = 0;           // at least 1 byte; 0 is the end
  virtual void keep_little_unsent(int bytes) = 0;                         // write waits while more is not sent
  virtual void figures(Sample& s) = 0;                                    // what the protocol knows; from any thread
  virtual void finish() = 0;                                              // closes in order: what was written still arrives
};

class Listener {
 public:
  virtual ~Listener() = default;
  virtual std::unique_ptr<Stream> accept() = 0;  // throws Stopped after SIGTERM
};

// What a protocol provides (protocol.cpp).
void check_options(const std::map<std::string, Json>& options);          // Failure("bad-parameters")
Info probe(const Parameters& p);                                          // Failure("unsupported")
std::unique_ptr<Listener> listen(const Parameters& p);                    // Failure("listen-failed")
std::unique_ptr<Stream> connect(const Parameters& p, Time deadline);      // Failure("connect-refused"), ("unreachable")

// The transfer from both ends (transfer.cpp).
int run_client(const Parameters& p, Input& in);
int run_server(const Parameters& p);
