// The payload of a transfer: splitmix64 in counter mode (contract.Payload).
#pragma once

#include <cstddef>
#include <cstdint>

namespace linktrial {

// Fills b with the n bytes of the payload stream of seed that begin at offset.
void payload(uint8_t* b, size_t n, uint64_t seed, uint64_t offset);

// Index of the first of the n bytes of b that is not the payload of seed at
// offset, or n when all are.
size_t verify(const uint8_t* b, size_t n, uint64_t seed, uint64_t offset);

}  // namespace linktrial
