#include "digest.hpp"

#include <openssl/evp.h>

#include "failure.hpp"

namespace linktrial {
namespace {

void must(int ok) {
  if (ok != 1) throw Failure(code::kInternal, "libcrypto refuses SHA-256");
}

}  // namespace

Digest::Digest() : context_(EVP_MD_CTX_new()) {
  must(context_ != nullptr && EVP_DigestInit_ex(context_, EVP_sha256(), nullptr) == 1);
}

Digest::~Digest() { EVP_MD_CTX_free(context_); }

void Digest::add(const uint8_t* b, size_t n) { must(EVP_DigestUpdate(context_, b, n)); }

std::string Digest::hex() {
  unsigned char sum[EVP_MAX_MD_SIZE];
  unsigned int n = 0;
  must(EVP_DigestFinal_ex(context_, sum, &n));
  static const char digits[] = "0123456789abcdef";
  std::string out;
  for (unsigned int i = 0; i < n; i++) {
    out += digits[sum[i] >> 4];
    out += digits[sum[i] & 15];
  }
  return out;
}

}  // namespace linktrial
