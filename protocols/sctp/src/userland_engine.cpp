#include "userland_engine.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "failure.hpp"

namespace linktrial {
namespace {

// The library counts time in ticks of 10 ms.
constexpr int kTickMS = 10;
// A peer is forgotten after so long without a packet of it: while connections
// are open, longer than the interval of heartbeats (30 s) and any outage;
// otherwise, as long as the end of an association may take when one of its
// packets was lost. A server between two trials then does nothing at all.
constexpr Nanoseconds kSilence = 3600 * kSecond;
constexpr Nanoseconds kSilenceUnused = 15 * kSecond;
// Once an association has ended on both sides, the library needs some ticks to
// release its own state.
constexpr Nanoseconds kSilenceOver = 300 * kMillisecond;
constexpr size_t kMaxPeers = 4096;
constexpr int kSocketBuffer = 4 << 20;

std::atomic<Engine*> the_engine{nullptr};

}  // namespace

uint64_t Waiter::seen() {
  std::lock_guard<std::mutex> lock(mutex_);
  return count_;
}

void Waiter::notify() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    count_++;
  }
  wake_.notify_all();
}

bool Waiter::wait(uint64_t count, Nanoseconds deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  auto changed = [&] { return count_ != count; };
  if (deadline == kNever) {
    wake_.wait(lock, changed);
    return true;
  }
  return wake_.wait_until(lock, time_point(deadline), changed);
}

Engine::Engine(const Address& local, const Address* remote, int dscp, const char* failing) : connected_(remote != nullptr) {
  udp_ = ::socket(local.family(), SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  auto fail = [&](const std::string& doing) {
    int err = errno;
    if (udp_ >= 0) ::close(udp_);
    if (wake_ >= 0) ::close(wake_);
    throw Failure(failing, errno_text(doing, err));
  };
  if (udp_ < 0 || wake_ < 0) fail("UDP socket");
  mark_socket(udp_, local.family(), dscp);
  if (::bind(udp_, local.get(), local.length) < 0) fail("UDP bind " + local.text());
  if (remote && ::connect(udp_, remote->get(), remote->length) < 0) fail("UDP connect " + remote->text());
  // As large as the system allows; where it allows less, the rest is dropped
  // and sent again as on any path.
  int buffer = kSocketBuffer;
  ::setsockopt(udp_, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);

  the_engine = this;
  in_library(usrsctp_init_nothreads, 0, &Engine::output, nullptr);
  // What the other drivers do not have either, or a datagram cannot carry.
  in_library(usrsctp_sysctl_set_sctp_ecn_enable, 0);
  in_library(usrsctp_sysctl_set_sctp_asconf_enable, 0);
  in_library(usrsctp_sysctl_set_sctp_auth_enable, 0);
  in_library(usrsctp_sysctl_set_sctp_reconfig_enable, 0);
  in_library(usrsctp_sysctl_set_sctp_nrsack_enable, 0);
  in_library(usrsctp_sysctl_set_sctp_pktdrop_enable, 0);
  in_library(usrsctp_sysctl_set_sctp_blackhole, 0);
  thread_ = std::thread([this] { run(); });
}

Engine::~Engine() {
  ending_ = true;
  wake();
  thread_.join();
  // The library itself stays as it is: its end waits for associations that
  // this thread no longer serves, and the process ends next.
  the_engine = nullptr;
  ::close(udp_);
  ::close(wake_);
}

void Engine::wake() {
  uint64_t one = 1;
  // It fails only when it is already set.
  if (::write(wake_, &one, sizeof one) < 0) return;
}

void* Engine::peer(const Address& address) {
  uintptr_t name;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    auto known = names_.find(address.text());
    if (known != names_.end()) {
      peers_[known->second].heard = now();
      return reinterpret_cast<void*>(known->second);
    }
    if (peers_.size() >= kMaxPeers) return nullptr;
    name = next_name_++;
    peers_[name] = {address, now()};
    names_[address.text()] = name;
  }
  in_library(usrsctp_register_address, reinterpret_cast<void*>(name));
  wake();
  return reinterpret_cast<void*>(name);
}

void Engine::watch(struct socket* socket, std::shared_ptr<Waiter> waiter) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    waiters_[socket] = std::move(waiter);
  }
  in_library(usrsctp_set_upcall, socket, &Engine::upcall, nullptr);
}

// The upcall itself stays: the library may be about to call it.
void Engine::unwatch(struct socket* socket) {
  std::lock_guard<std::mutex> lock(mutex_);
  waiters_.erase(socket);
}

void Engine::upcall(struct socket* socket, void*, int) {
  Engine* engine = the_engine;
  if (!engine) return;
  std::shared_ptr<Waiter> waiter;
  {
    std::lock_guard<std::mutex> lock(engine->mutex_);
    auto at = engine->waiters_.find(socket);
    if (at != engine->waiters_.end()) waiter = at->second;
  }
  if (waiter) waiter->notify();
}

int Engine::output(void* peer, void* packet, size_t length, uint8_t, uint8_t) {
  Engine* engine = the_engine;
  if (!engine) return ENOTCONN;
  Address to;
  {
    std::lock_guard<std::mutex> lock(engine->mutex_);
    auto at = engine->peers_.find(reinterpret_cast<uintptr_t>(peer));
    if (at == engine->peers_.end()) return EHOSTUNREACH;
    to = at->second.address;
  }
  engine->note_chunk(reinterpret_cast<uintptr_t>(peer), packet, length);
  ssize_t n = engine->connected_ ? ::send(engine->udp_, packet, length, 0) : ::sendto(engine->udp_, packet, length, 0, to.get(), to.length);
  if (n >= 0) return 0;
  if (errno == ECONNREFUSED) {
    // The answer to an earlier datagram; this one was not sent. The receiving
    // side is told the same way.
    engine->refusals_++;
    n = ::send(engine->udp_, packet, length, 0);
    if (n >= 0) return 0;
  }
  return errno;
}

void Engine::receive() {
  uint8_t b[65536];
  // Bounded, so that the library's timers come to their turn under load.
  for (int i = 0; i < 64; i++) {
    Address from;
    from.length = sizeof from.storage;
    ssize_t n = ::recvfrom(udp_, b, sizeof b, 0, from.get(), &from.length);
    if (n < 0) {
      if (errno == EINTR) continue;
      if (errno == ECONNREFUSED) {
        refusals_++;
        std::vector<std::shared_ptr<Waiter>> all;
        {
          std::lock_guard<std::mutex> lock(mutex_);
          for (auto& [socket, waiter] : waiters_) all.push_back(waiter);
        }
        for (auto& waiter : all) waiter->notify();
        continue;
      }
      return;
    }
    // A common header and one chunk's (RFC 9260, section 3).
    if (n < 16) continue;
    if (void* name = peer(from)) {
      note_chunk(reinterpret_cast<uintptr_t>(name), b, static_cast<size_t>(n));
      in_library(usrsctp_conninput, name, b, static_cast<size_t>(n), 0);
    }
  }
}

void Engine::note_chunk(uintptr_t peer, const void* packet, size_t length) {
  // Chunk types of RFC 9260, section 3.2, after a common header of 12 bytes.
  // None of these shares a packet with what comes before it, but ABORT, which
  // then is only noticed later.
  constexpr size_t kFirstChunk = 12;
  constexpr uint8_t kInit = 1, kAbort = 6, kCookieEcho = 10, kShutdownComplete = 14;
  if (length <= kFirstChunk) return;
  const uint8_t type = static_cast<const uint8_t*>(packet)[kFirstChunk];
  const bool ends = type == kAbort || type == kShutdownComplete;
  if (!ends && type != kInit && type != kCookieEcho) return;
  std::lock_guard<std::mutex> lock(mutex_);
  auto at = peers_.find(peer);
  if (at == peers_.end()) return;
  at->second.over = ends;
  at->second.heard = now();
}

void Engine::forget_silent_peers(Nanoseconds t) {
  if (connected_) return;
  std::vector<uintptr_t> silent;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    // The listener is always watched.
    const bool used = waiters_.size() > 1;
    for (auto at = peers_.begin(); at != peers_.end();) {
      const Nanoseconds most = used ? kSilence : at->second.over ? kSilenceOver : kSilenceUnused;
      if (t - at->second.heard < most) {
        ++at;
        continue;
      }
      silent.push_back(at->first);
      names_.erase(at->second.address.text());
      at = peers_.erase(at);
    }
  }
  for (uintptr_t name : silent) in_library(usrsctp_deregister_address, reinterpret_cast<void*>(name));
}

void Engine::run() {
  Nanoseconds last = now();
  while (!ending_) {
    bool idle;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      idle = peers_.empty();
    }
    pollfd fds[2] = {{udp_, POLLIN, 0}, {wake_, POLLIN, 0}};
    ::poll(fds, 2, idle ? -1 : kTickMS);
    if (fds[1].revents != 0) {
      uint64_t count;
      while (::read(wake_, &count, sizeof count) > 0) {
      }
    }
    if (fds[0].revents != 0) receive();
    Nanoseconds t = now();
    if (Nanoseconds ms = (t - last) / kMillisecond; ms >= kTickMS) {
      in_library(usrsctp_handle_timers, static_cast<uint32_t>(std::min<Nanoseconds>(ms, UINT32_MAX)));
      last += ms * kMillisecond;
      forget_silent_peers(t);
    }
  }
}

}  // namespace linktrial
