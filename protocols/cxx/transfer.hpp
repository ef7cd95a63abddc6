// The measured transfer (contract/wire.go; breedy-2015, section V), over any Stream.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "backend.hpp"

namespace linktrial {

constexpr uint8_t kByteReady = 'R';
constexpr uint8_t kByteAccepted = '.';
constexpr size_t kHeaderBytes = 24;
constexpr int64_t kMaxSizeBytes = int64_t{1} << 40;

class Input;
class Interrupts;

struct Header {
  TransferID id{};
  uint64_t size_bytes = 0;  // of an open payload: the most it will be
  bool open = false;  // the payload comes in chunks, and its size shows at its end
};

void encode(const Header& h, uint8_t (&b)[kHeaderBytes]);
// Any 24 bytes are a header; whether its size can be carried, the caller has to see.
Header decode_header(const uint8_t (&b)[kHeaderBytes]);

// Carries one transfer of what input has, from connect to close, and writes its events,
// the last of them result. Throws Failure, without having written an error event.
// The stream is registered with interrupts for as long as it lives; delivered
// is set once the result is written.
void run_client(Backend& backend, const Parameters& p, Input& input, Events& events, Interrupts& interrupts, std::atomic<bool>& delivered);

// Serves one accepted connection to its end and writes its events. A
// connection that ends before its header names a transfer is only logged.
void serve(Stream& stream, const Parameters& p, Events& events, const std::atomic<bool>& stop);

}  // namespace linktrial
