#include "address.hpp"

#include <arpa/inet.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "failure.hpp"

namespace linktrial {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

int Address::port() const {
  return ntohs(family() == AF_INET6 ? reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_port
                                    : reinterpret_cast<const sockaddr_in*>(&storage)->sin_port);
}

void Address::set_port(int port) {
  in_port_t p = htons(static_cast<uint16_t>(port));
  if (family() == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(&storage)->sin6_port = p;
  } else {
    reinterpret_cast<sockaddr_in*>(&storage)->sin_port = p;
  }
}

std::string Address::text() const {
  char b[INET6_ADDRSTRLEN] = "?";
  if (family() == AF_INET6) {
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_addr, b, sizeof b);
    return "[" + std::string(b) + "]:" + std::to_string(port());
  }
  inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(&storage)->sin_addr, b, sizeof b);
  return std::string(b) + ":" + std::to_string(port());
}

Address parse_address(const Endpoint& e, const char* field) {
  Address a;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&a.storage);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&a.storage);
  if (e.address.find('\0') != std::string::npos) {
    throw Failure(code::kBadParameters, std::string("parameters: ") + field + ".address contains a zero byte");
  }
  if (inet_pton(AF_INET, e.address.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    a.length = sizeof *v4;
  } else if (inet_pton(AF_INET6, e.address.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    a.length = sizeof *v6;
  } else {
    throw Failure(code::kBadParameters, std::string("parameters: ") + field + ".address is not a numeric IP address");
  }
  a.set_port(e.port);
  return a;
}

Address client_address(const Endpoint& local, const Address& remote) {
  if (!local.address.empty()) {
    return parse_address({local.address, 0}, "local");
  }
  Address any;
  any.storage.ss_family = static_cast<sa_family_t>(remote.family());
  any.length = remote.length;
  return any;
}

void check_route(const Address& local, const Address& remote) {
  Descriptor fd(::socket(remote.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (fd.get() < 0) throw Failure(code::kInternal, errno_text("socket", errno));
  if (::bind(fd.get(), local.get(), local.length) < 0) {
    throw Failure(code::kUnreachable, errno_text("bind " + local.text(), errno));
  }
  if (::connect(fd.get(), remote.get(), remote.length) < 0) {
    throw Failure(code::kUnreachable, errno_text("route to " + remote.text(), errno));
  }
}

void mark_socket(int fd, int family, int dscp) {
  if (dscp == 0) return;
  int octet = dscp << 2;
  // A socket of IPv6 may carry IPv4, too.
  bool ok = family != AF_INET6 || ::setsockopt(fd, IPPROTO_IPV6, IPV6_TCLASS, &octet, sizeof octet) == 0;
  ok = ok && ::setsockopt(fd, IPPROTO_IP, IP_TOS, &octet, sizeof octet) == 0;
  if (!ok) throw Failure(code::kUnsupported, errno_text("DSCP " + std::to_string(dscp) + " of a socket", errno));
}

std::optional<int> device_mtu(const std::string& device) {
  if (device.empty() || device.size() >= IFNAMSIZ) return std::nullopt;
  Descriptor fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::memcpy(request.ifr_name, device.c_str(), device.size());
  if (fd.get() < 0 || ::ioctl(fd.get(), SIOCGIFMTU, &request) < 0) return std::nullopt;
  return request.ifr_mtu;
}

}  // namespace linktrial
