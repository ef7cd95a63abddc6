// What can go wrong, as the contract names it.
#pragma once

#include <cstring>
#include <stdexcept>
#include <string>

namespace linktrial {

// The closed list of contract.Codes.
namespace code {
constexpr const char* kUnsupported = "unsupported";
constexpr const char* kBadParameters = "bad-parameters";
constexpr const char* kListenFailed = "listen-failed";
constexpr const char* kConnectRefused = "connect-refused";
constexpr const char* kConnectTimeout = "connect-timeout";
constexpr const char* kUnreachable = "unreachable";
constexpr const char* kReset = "reset";
constexpr const char* kTransferTimeout = "transfer-timeout";
constexpr const char* kCorrupted = "corrupted";
constexpr const char* kProtocolViolation = "protocol-violation";
constexpr const char* kAborted = "aborted";
constexpr const char* kInternal = "internal";
}  // namespace code

// A failure that ends a transfer or the driver; code is one of the above.
struct Failure : std::runtime_error {
  Failure(const char* c, const std::string& message) : std::runtime_error(message), code(c) {}
  const char* code;
};

// A deadline passed. Who set it decides which code that is.
struct Timeout {};

inline std::string errno_text(const std::string& doing, int err) {
  return doing + ": " + std::strerror(err);
}

}  // namespace linktrial
