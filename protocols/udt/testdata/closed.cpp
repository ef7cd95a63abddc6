// Linked as the driver is: completes the connection of a socket that does not exist, as
// the library does with one that was closed in that moment, from a thread that may not throw.
#include <udt/udt.h>

#include <thread>

extern char sockets __asm__("_ZN4CUDT11s_UDTUnitedE");
extern "C" void complete(void* sockets, int id) __asm__("_ZN10CUDTUnited16connect_completeEi");

int main() {
  UDT::startup();
  std::thread([] { complete(&sockets, 12345); }).join();
  UDT::cleanup();
}
