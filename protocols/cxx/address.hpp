// Addresses, routes and interfaces.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <optional>
#include <string>

#include "parameters.hpp"

namespace linktrial {

struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;

  int family() const { return storage.ss_family; }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  int port() const;
  void set_port(int port);
  // "10.0.0.1:7000", "[fd00::1]:7000"
  std::string text() const;
};

// Reads a numeric address. Throws Failure(bad-parameters) with the field's name.
Address parse_address(const Endpoint& e, const char* field);

// The address to bind for traffic to remote: local, or any of the same family
// where none is given.
Address client_address(const Endpoint& local, const Address& remote);

// Looks up the route from local to remote in the kernel's routing table, without
// sending anything. Throws Failure(unreachable) where there is none.
void check_route(const Address& local, const Address& remote);

// Gives the packets of a socket of this family a DSCP (RFC 2474); 0 changes
// nothing. Throws Failure(unsupported).
void mark_socket(int fd, int family, int dscp);

// MTU of an interface in bytes; none when there is no such interface.
std::optional<int> device_mtu(const std::string& device);

}  // namespace linktrial
