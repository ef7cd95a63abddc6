// The library gives up a handshake 3 s after it has begun, whatever the link
// (udt4 core.cpp, CUDT::connect). It takes two round trips, so that no link with
// a delay of 750 ms or more one way would ever connect. Here it goes on, asking
// every 250 ms as ever, until the driver closes the socket at limits.connect_ms.
// Nothing of the transfer changes.
//
// The linker sends the library's call of CRcvQueue::registerConnector here
// (--wrap), whose last argument is the moment it gives up at, in microseconds.
#include <cstdint>

struct sockaddr;

namespace {

constexpr uint64_t kYear = uint64_t{365} * 24 * 3600 * 1'000'000;

}  // namespace

extern "C" {

void real_register(void* queue, const int& id, void* socket, int family, const sockaddr* peer, uint64_t end) __asm__(
    "__real__ZN9CRcvQueue17registerConnectorERKiP4CUDTiPK8sockaddrm");
void wrap_register(void* queue, const int& id, void* socket, int family, const sockaddr* peer, uint64_t end) __asm__(
    "__wrap__ZN9CRcvQueue17registerConnectorERKiP4CUDTiPK8sockaddrm");

void wrap_register(void* queue, const int& id, void* socket, int family, const sockaddr* peer, uint64_t end) {
  real_register(queue, id, socket, family, peer, end + kYear);
}
}
