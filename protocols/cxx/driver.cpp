// The way of a driver process from standard input to exit code.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <list>
#include <thread>

#include "input.hpp"
#include "interrupts.hpp"
#include "transfer.hpp"

namespace linktrial {
namespace {

constexpr int kExitOK = 0;
constexpr int kExitFailed = 1;
constexpr int kExitUnsupported = 127;

// How long an orderly end may take after SIGTERM before the process ends anyway.
constexpr Nanoseconds kPatience = 2 * kSecond;

int exit_code(const Failure& f) { return f.code == std::string(code::kUnsupported) ? kExitUnsupported : kExitFailed; }

// Waits for SIGTERM or SIGINT in a thread of its own; every other thread has
// them blocked.
class Signals {
 public:
  // After the interrupts, the main thread has kPatience to come to its end;
  // then late() is called, which must end the process.
  Signals(Interrupts& interrupts, std::function<void()> late) : interrupts_(interrupts), late_(std::move(late)) {
    thread_ = std::thread([this] { run(); });
  }
  ~Signals() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      ended_ = true;
    }
    wake_.notify_all();
    pthread_kill(thread_.native_handle(), SIGUSR1);
    thread_.join();
  }

  static sigset_t handled() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGUSR1);  // ends the thread
    return set;
  }

 private:
  void run() {
    sigset_t set = handled();
    for (int signal = 0; signal != SIGTERM && signal != SIGINT;) {
      if (sigwait(&set, &signal) != 0) return;
      std::lock_guard<std::mutex> lock(mutex_);
      if (ended_) return;
    }
    interrupts_.stop();
    std::unique_lock<std::mutex> lock(mutex_);
    if (!wake_.wait_until(lock, time_point(now() + kPatience), [&] { return ended_; })) late_();
  }

  Interrupts& interrupts_;
  std::function<void()> late_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool ended_ = false;
  std::thread thread_;
};

int query(Backend& backend, const Parameters& p, Events& events) {
  events.ready(backend.query(p));
  return kExitOK;
}

int server(Backend& backend, const Parameters& p, Events& events) {
  struct Connection {
    std::unique_ptr<Stream> stream;
    std::atomic<bool> done{false};
    std::thread thread;
  };
  Info info = backend.query(p);
  std::unique_ptr<Listener> listener = backend.listen(p);
  Interrupts interrupts;
  Interrupts::Guard guard(interrupts, [&] { listener->interrupt(); });
  // A connection that will not let go: its events are lost, the stop is not.
  Signals signals(interrupts, [] { _exit(kExitOK); });
  events.ready(info);

  std::list<Connection> connections;
  auto join_done = [&](bool all) {
    connections.remove_if([&](Connection& c) {
      if (!all && !c.done) return false;
      c.thread.join();
      return true;
    });
  };
  while (std::unique_ptr<Stream> stream = listener->accept()) {
    join_done(false);
    Connection& c = connections.emplace_back();
    c.stream = std::move(stream);
    c.thread = std::thread([&] {
      {
        Interrupts::Guard interruptible(interrupts, [&] { c.stream->interrupt(); });
        serve(*c.stream, p, events, interrupts.stopped());
      }
      c.stream.reset();
      c.done = true;
    });
  }
  join_done(true);
  if (!interrupts.stopped()) throw Failure(code::kInternal, "the listener ended by itself");
  return kExitOK;
}

int client(Backend& backend, const Parameters& p, Input& input, Events& events) {
  const std::string id = hex(p.transfer_id);
  Interrupts interrupts;
  std::mutex ending;
  bool failed = false;
  auto fail = [&](const Failure& f) {
    std::lock_guard<std::mutex> lock(ending);
    if (!failed) events.error(id, f.code, f.what());
    failed = true;
  };
  const Failure aborted(code::kAborted, "SIGTERM while the transfer ran");
  std::atomic<bool> delivered{false};
  Signals signals(interrupts, [&] {
    if (delivered) _exit(kExitOK);
    fail(aborted);
    _exit(kExitFailed);
  });
  try {
    Info info = backend.query(p);
    events.ready(info);
    run_client(backend, p, input, events, interrupts, delivered);
    return kExitOK;
  } catch (const Failure& f) {
    const Failure& said = interrupts.stopped() ? aborted : f;
    fail(said);
    return exit_code(said);
  }
}

// Descriptors 0 to 2 must be open, or a socket would take their place and
// event lines would go out on it.
void open_standard_descriptors() {
  while (true) {
    int fd = ::open("/dev/null", O_RDWR);
    if (fd < 0) return;
    if (fd > STDERR_FILENO) {
      ::close(fd);
      return;
    }
  }
}

}  // namespace

int run_driver(Backend& backend) {
  open_standard_descriptors();
  ::signal(SIGPIPE, SIG_IGN);
  Events events(STDOUT_FILENO);
  Input input(STDIN_FILENO);
  Parameters p;
  try {
    p = parse_parameters(input.document(), backend.options());
    // From here on SIGTERM is answered with an event; before, it just ends the process.
    sigset_t set = Signals::handled();
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    switch (p.role) {
      case Parameters::Role::kQuery:
        return query(backend, p, events);
      case Parameters::Role::kServer:
        return server(backend, p, events);
      case Parameters::Role::kClient:
        return client(backend, p, input, events);
    }
    return kExitFailed;
  } catch (const Failure& f) {
    events.error("", f.code, f.what());
    return exit_code(f);
  } catch (const std::exception& e) {
    events.error("", code::kInternal, e.what());
    return kExitFailed;
  }
}

}  // namespace linktrial
