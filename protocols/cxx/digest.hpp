// SHA-256 of a payload as it passes by.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

struct evp_md_ctx_st;

namespace linktrial {

class Digest {
 public:
  Digest();
  ~Digest();
  Digest(const Digest&) = delete;
  Digest& operator=(const Digest&) = delete;

  void add(const uint8_t* b, size_t n);
  // Lower-case hexadecimal; ends the digest.
  std::string hex();

 private:
  evp_md_ctx_st* context_;
};

}  // namespace linktrial
