// usrsctp on a UDP socket of our own (SCTP over UDP, RFC 6951).
#pragma once

#include <usrsctp.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "address.hpp"
#include "clock.hpp"

namespace linktrial {

// Held around every call into usrsctp, of any thread: the library's own locks
// leave gaps between its input and its users. netinet/sctp_input.c tests a
// socket's upcall and reads it again to call it; usrsctp_accept changes so_head,
// which input reads twice, with a lock that input does not take.
inline std::mutex library_mutex;

// Calls a function of the library. It does not wait for long: every socket of
// the library is non-blocking. errno is the function's.
template <typename Function, typename... Arguments>
auto in_library(Function* function, Arguments... arguments) {
  std::lock_guard<std::mutex> lock(library_mutex);
  return function(arguments...);
}

// Counts the library's upcalls of one socket, for a thread to wait for the
// next one.
class Waiter {
 public:
  uint64_t seen();
  void notify();
  // Waits until notify was called since seen returned count; false at the deadline.
  bool wait(uint64_t count, Nanoseconds deadline);

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  uint64_t count_ = 0;
};

// The library without its threads: one thread of the engine feeds it with
// datagrams and with time, and sleeps for good while no peer is known. (Its own
// threads wake every 10 ms for as long as the process lives, and bind every
// address of the node.) There is one engine in a process, as there is one
// library.
//
// To the library, a peer is an opaque address (AF_CONN): here a number under
// which the peer's UDP address is kept.
class Engine {
 public:
  // Opens the UDP socket at local and, for a client, fixes it to remote, so
  // that the network's refusals (ICMP) arrive. Throws Failure(failing).
  Engine(const Address& local, const Address* remote, int dscp, const char* failing);
  // Every socket of the library must have been closed before.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // The library's name of a peer, known from now on.
  void* peer(const Address& address);

  // Upcalls of socket go to waiter until unwatch; later ones are ignored.
  void watch(struct socket* socket, std::shared_ptr<Waiter> waiter);
  void unwatch(struct socket* socket);

  // How often the network said that the peer's port is closed (client only).
  uint64_t refusals() const { return refusals_; }

 private:
  struct Peer {
    Address address;
    Nanoseconds heard;
    bool over = false;  // its last association has ended on both sides
  };

  static int output(void* peer, void* packet, size_t length, uint8_t tos, uint8_t set_df);
  static void upcall(struct socket* socket, void* key, int flags);
  void run();
  void receive();
  // Learns from the first chunk of a packet whether the peer's association ended.
  void note_chunk(uintptr_t peer, const void* packet, size_t length);
  void forget_silent_peers(Nanoseconds t);
  void wake();

  int udp_ = -1;
  int wake_ = -1;
  const bool connected_;
  std::atomic<uint64_t> refusals_{0};
  std::atomic<bool> ending_{false};

  // Of what follows. Taken in upcalls and output, where library_mutex is held, so
  // never held while the library is called.
  std::mutex mutex_;
  std::map<uintptr_t, Peer> peers_;
  std::map<std::string, uintptr_t> names_;
  uintptr_t next_name_ = 1;
  std::map<struct socket*, std::shared_ptr<Waiter>> waiters_;

  std::thread thread_;
};

}  // namespace linktrial
