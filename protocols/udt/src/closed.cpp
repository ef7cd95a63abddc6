// When the answer to a handshake comes, the library's receiving thread completes the
// connection and looks its socket up (udt4 core.cpp, CUDT::connect of a packet; api.cpp,
// CUDTUnited::connect_complete). Where the driver has closed the socket in that moment,
// because it was told to stop or limits.connect_ms is over, that throws, and no function
// of that thread may throw: the driver ended by SIGABRT. Nobody waits for the connection
// of a closed socket, so that there is nothing to complete.
//
// The linker sends the library's call of connect_complete here (--wrap).
#include <udt/udt.h>

extern "C" {

void real_complete(void* sockets, int id) __asm__("__real__ZN10CUDTUnited16connect_completeEi");
void wrap_complete(void* sockets, int id) __asm__("__wrap__ZN10CUDTUnited16connect_completeEi");

void wrap_complete(void* sockets, int id) {
  try {
    real_complete(sockets, id);
  } catch (const CUDTException&) {  // the socket is closed
  }
}
}
