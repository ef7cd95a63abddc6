// UDT sockets as the shared transfer sees them.
#pragma once

#include <udt/udt.h>

#include "address.hpp"
#include "backend.hpp"

namespace linktrial {

Info udt_info(const Parameters& p);

// The text of the library's last error on this thread, after what was being done.
std::string udt_error(const std::string& doing);

// A stream socket bound to local with the options of p set. Throws
// Failure(failing).
UDTSOCKET udt_socket(const Parameters& p, const Address& local, const char* failing);

class UdtStream : public Stream {
 public:
  // Takes over a connected socket.
  UdtStream(UDTSOCKET socket, const Parameters& p);
  ~UdtStream() override;

  size_t write(const uint8_t* b, size_t n, Nanoseconds deadline) override;
  size_t read(uint8_t* b, size_t n, Nanoseconds deadline) override;
  size_t write_unit() const override;
  void state(Sample& s, bool sender) override;
  Info info() const override;
  void close_first(Nanoseconds deadline) noexcept override;
  void close_second(Nanoseconds patience, Nanoseconds deadline) noexcept override;
  void interrupt() override;

 private:
  [[noreturn]] void lost(const char* doing) const;
  int64_t acknowledged(int64_t sent, int queued_packets) const;

  const UDTSOCKET socket_;
  const Info info_;
  int packet_bytes_;   // with IP, UDP and UDT headers
  int payload_bytes_;  // of a full packet
  std::atomic<bool> interrupted_{false};
};

class UdtListener : public Listener {
 public:
  UdtListener(UDTSOCKET socket, const Parameters& p) : socket_(socket), parameters_(p) {}
  ~UdtListener() override;
  std::unique_ptr<Stream> accept() override;
  void interrupt() override;

 private:
  const UDTSOCKET socket_;
  const Parameters parameters_;
  std::atomic<bool> interrupted_{false};
};

}  // namespace linktrial
