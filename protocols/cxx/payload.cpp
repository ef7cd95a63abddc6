#include "payload.hpp"

#include <algorithm>
#include <cstring>

namespace linktrial {
namespace {

uint64_t word(uint64_t seed, uint64_t k) {
  uint64_t z = seed + (k + 1) * 0x9E3779B97F4A7C15ULL;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

void put_little_endian(uint8_t* b, uint64_t w) {
  for (int i = 0; i < 8; i++) b[i] = static_cast<uint8_t>(w >> (8 * i));
}

}  // namespace

void payload(uint8_t* b, size_t n, uint64_t seed, uint64_t offset) {
  uint64_t k = offset / 8;
  uint8_t w[8];
  if (size_t skip = offset % 8; skip != 0) {
    put_little_endian(w, word(seed, k++));
    size_t part = std::min(n, 8 - skip);
    std::memcpy(b, w + skip, part);
    b += part;
    n -= part;
  }
  for (; n >= 8; b += 8, n -= 8) put_little_endian(b, word(seed, k++));
  if (n > 0) {
    put_little_endian(w, word(seed, k));
    std::memcpy(b, w, n);
  }
}

size_t verify(const uint8_t* b, size_t n, uint64_t seed, uint64_t offset) {
  uint8_t want[4096];
  for (size_t at = 0; at < n;) {
    size_t part = std::min(sizeof want, n - at);
    payload(want, part, seed, offset + at);
    if (std::memcmp(want, b + at, part) != 0) {
      for (size_t i = 0; i < part; i++) {
        if (want[i] != b[at + i]) return at + i;
      }
    }
    at += part;
  }
  return n;
}

}  // namespace linktrial
