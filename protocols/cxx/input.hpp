// Standard input: the document in its first line, and in a client the payload after it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace linktrial {

class Input {
 public:
  explicit Input(int fd) : fd_(fd) {}

  // The first line, or all there is. Throws Failure(bad-parameters).
  std::string document();
  // The next n bytes of the payload. Throws Failure(internal) where it has ended.
  void payload(uint8_t* b, size_t n);

 private:
  size_t read_some(uint8_t* b, size_t n);

  int fd_;
  std::string ahead_;  // read with the document, and of the payload
  int64_t given_ = 0;
};

}  // namespace linktrial
