package tun

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// shortWait is up to when a loop with a thread of its own sleeps without telling
// Go's scheduler. Telling costs a few microseconds; not telling keeps a
// processor from other goroutines meanwhile.
const shortWait = 2 * time.Millisecond

// quietWait is up to when a loop that shares its thread sleeps without telling
// Go's scheduler, and for how long it does not tell it at all, while nobody
// asks for anything.
const quietWait = time.Second

// sharing is how a loop waits whose thread is not its own, see [Config.Shared].
//
// A wait that Go's scheduler knows of, a system call or parking, takes up to ten
// system calls and four switches between threads: the scheduler looks for other
// work, and every ordinary system call wakes the runtime's monitor thread,
// which then looks after it every 20 µs and more. So the loop waits in a raw
// system call, for which it has to know what other goroutines wait for: the
// clients of the control socket are among its own events, and while one of
// their requests is under way it parks. Whatever else there is waits for
// [quietWait] at most.
type sharing struct {
	file *os.File // the epoll's, with the runtime's poller
	conn syscall.RawConn
	// busy counts requests under way.
	busy   atomic.Int32
	park   bool          // at the next wait, whatever its length
	parked time.Duration // when it last did, counted from the loop's start
}

func (l *loop) share() error {
	// A descriptor of its own, for the file closes it.
	fd, err := unix.FcntlInt(uintptr(l.ep), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		err = unix.SetNonblock(fd, true) // or the runtime does not poll it
	}
	if err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	s := &sharing{file: os.NewFile(uintptr(fd), "epoll")}
	if s.conn, err = s.file.SyscallConn(); err != nil {
		return errors.Join(fmt.Errorf("epoll: %w", err), s.file.Close())
	}
	l.shared = s
	return nil
}

// watch has a loop that shares its thread wake when c has something to read, so
// that the goroutine that reads from it gets its turn.
func (l *loop) watch(c syscall.Conn) error {
	if l.shared == nil {
		return nil
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	if cerr := raw.Control(func(fd uintptr) {
		err = unix.EpollCtl(l.ep, unix.EPOLL_CTL_ADD, int(fd), &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET, Fd: tokenClient})
	}); cerr != nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	return nil
}

// request marks a request as under way until done is called.
func (l *loop) request() (done func()) {
	s := l.shared
	if s == nil {
		return func() {}
	}
	s.busy.Add(1)
	return func() {
		// The loop parks once more: the answer is still to be written.
		l.post(func(l *loop) {
			if l != nil {
				l.shared.park = true
			}
		})
		s.busy.Add(-1)
	}
}

// wait sleeps until a device has a packet, the next event is due, or a command has come.
func (l *loop) wait(events []unix.EpollEvent) (int, unix.Errno) {
	next, ok := l.nextExit()
	next, ok = l.pulse.until(l, next, ok)
	if !ok {
		return l.waitLong(events)
	}
	left := next - l.now()
	if left <= 0 {
		return rawEpollWait(l.ep, events, 0)
	}
	if !l.isArmed || l.armed != next {
		if errno := rawSetTimer(l.timer, l.startMonotonic+int64(l.origin+next)); errno != 0 {
			return 0, errno
		}
		l.armed, l.isArmed = next, true
	}
	if s := l.shared; s != nil {
		if s.park || left > quietWait || s.busy.Load() > 0 || time.Since(l.start)-s.parked > quietWait {
			return l.waitLong(events)
		}
		n, errno := rawEpollWait(l.ep, events, -1)
		// The runtime interrupts who keeps it waiting.
		s.park = errno == unix.EINTR
		return n, errno
	}
	if left <= shortWait {
		return rawEpollWait(l.ep, events, -1)
	}
	return blockingEpollWait(l.ep, events)
}

// waitLong lets Go's scheduler go on with other work meanwhile.
func (l *loop) waitLong(events []unix.EpollEvent) (int, unix.Errno) {
	if l.shared == nil {
		return blockingEpollWait(l.ep, events)
	}
	return l.waitParked(events)
}

func (l *loop) waitParked(events []unix.EpollEvent) (n int, errno unix.Errno) {
	s := l.shared
	s.park, s.parked = false, time.Since(l.start)
	if err := s.conn.Read(func(uintptr) bool {
		n, errno = rawEpollWait(l.ep, events, 0)
		return n > 0 || errno != 0
	}); err != nil {
		return 0, unix.EBADF // closed under the loop
	}
	return n, errno
}
