#include "input.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "failure.hpp"

namespace linktrial {
namespace {

// Longest document that standard input may hold, in bytes.
constexpr size_t kMaxDocument = 1 << 20;

}  // namespace

size_t Input::read_some(uint8_t* b, size_t n) {
  for (;;) {
    ssize_t got = ::read(fd_, b, n);
    if (got >= 0) return static_cast<size_t>(got);
    if (errno != EINTR) throw Failure(code::kBadParameters, errno_text("standard input", errno));
  }
}

std::string Input::document() {
  std::string document;
  uint8_t b[4096];
  for (;;) {
    size_t n = read_some(b, sizeof b);
    if (n == 0) return document;
    const uint8_t* all = b + n;
    const uint8_t* end = std::find(static_cast<const uint8_t*>(b), all, '\n');
    document.append(reinterpret_cast<const char*>(b), static_cast<size_t>(end - b));
    if (document.size() > kMaxDocument) throw Failure(code::kBadParameters, "parameters: longer than 1 MiB");
    if (end != all) {
      ahead_.assign(reinterpret_cast<const char*>(end) + 1, static_cast<size_t>(all - end) - 1);
      return document;
    }
  }
}

void Input::payload(uint8_t* b, size_t n) {
  const size_t ahead = std::min(n, ahead_.size());
  std::memcpy(b, ahead_.data(), ahead);
  ahead_.erase(0, ahead);
  for (size_t at = ahead; at < n;) {
    size_t got = read_some(b + at, n - at);
    if (got == 0) {
      throw Failure(code::kInternal, "standard input ended after " + std::to_string(given_ + static_cast<int64_t>(at)) + " bytes of payload");
    }
    at += got;
  }
  given_ += static_cast<int64_t>(n);
}

}  // namespace linktrial
