// UDT sockets as the shared transfer sees them.
#pragma once

#include <udt/udt.h>

#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "address.hpp"
#include "backend.hpp"

namespace linktrial {

Info udt_info(const Parameters& p);

// The text of the library's last error on this thread, after what was being done.
std::string udt_error(const std::string& doing);

// The UDP socket under the library's sockets.
//
// The library's receiver waits on it with a timeout, to look after its timers
// (every 100 ms, udt4 queue.cpp), and asks for 100 µs: on a kernel that ticks
// every millisecond these are a thousand wake-ups a second, which is what a
// virtual-time laboratory pays for. So the timeout is set from here, to the
// protocol's own clock interval (SYN, 10 ms) while there is a connection, and to
// seconds while there is none and only datagrams matter.
class UdpSocket {
 public:
  // Throws Failure(failing).
  UdpSocket(const Address& local, const char* failing);
  ~UdpSocket();
  UdpSocket(const UdpSocket&) = delete;
  UdpSocket& operator=(const UdpSocket&) = delete;

  // A descriptor of it for the library, which closes it.
  int lend() const;
  // After the library has set its own timeout. Counts connections.
  void opened();
  void closed();
  // No connection is expected soon.
  void idle();

  // Whether the peer's node has said (ICMP) that nothing listens at this address any
  // more, since it was last expected there.
  bool refused(const Address& peer);
  void expect(const Address& peer);

 private:
  void set_timeout(Nanoseconds timeout);
  void wake_receiver();

  int fd_ = -1;
  Address local_;  // with its port
  std::mutex mutex_;
  int connections_ = 0;
  std::set<std::string> refused_;
};

// A stream socket on udp with the options of p set. Throws Failure(failing).
UDTSOCKET udt_socket(const Parameters& p, const UdpSocket& udp, int family, const char* failing);

class UdtStream : public Stream {
 public:
  // Takes over a connected socket, which udp counts.
  UdtStream(UDTSOCKET socket, std::shared_ptr<UdpSocket> udp, const Parameters& p);
  ~UdtStream() override;

  size_t write(const uint8_t* b, size_t n, Nanoseconds deadline) override;
  size_t read(uint8_t* b, size_t n, Nanoseconds deadline) override;
  size_t write_unit(size_t about) const override;
  std::optional<Backlog> backlog() override;
  void state(Sample& s, bool sender) override;
  Info info() const override;
  void close_first(Nanoseconds deadline) noexcept override;
  void close_second(Nanoseconds patience, Nanoseconds deadline) noexcept override;
  void interrupt() override;

 private:
  [[noreturn]] void lost(const char* doing) const;
  int64_t acknowledged(int64_t sent, int queued_packets) const;

  const UDTSOCKET socket_;
  Address peer_;
  const std::shared_ptr<UdpSocket> udp_;
  const Info info_;
  int packet_bytes_;   // with IP, UDP and UDT headers
  int payload_bytes_;  // of a full packet
  std::atomic<bool> interrupted_{false};
};

class UdtListener : public Listener {
 public:
  // Takes over a listening socket.
  UdtListener(UDTSOCKET socket, std::shared_ptr<UdpSocket> udp, const Parameters& p)
      : socket_(socket), udp_(std::move(udp)), parameters_(p) {}
  ~UdtListener() override;
  std::unique_ptr<Stream> accept() override;
  void interrupt() override;

 private:
  const UDTSOCKET socket_;
  const std::shared_ptr<UdpSocket> udp_;
  const Parameters parameters_;
  std::atomic<bool> interrupted_{false};
};

}  // namespace linktrial
