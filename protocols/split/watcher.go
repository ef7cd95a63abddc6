package main

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// watcher learns of connections that break while nobody reads or writes them: of
// a reset that comes in while the relay waits for the other side, Go's own
// poller tells nobody. It has an epoll instance of its own, in which Go's poller
// waits, and so costs no thread and no wake-ups while nothing happens.
type watcher struct {
	file *os.File
	done chan struct{}

	mu      sync.Mutex
	last    int32
	streams map[int32]*tcpStream // by the number that their events bear
}

func newWatcher() (*watcher, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err == nil {
		err = unix.SetNonblock(fd, true) // os.NewFile then leaves waiting to Go's poller
	}
	if err != nil {
		return nil, fmt.Errorf("watch connections: %w", err)
	}
	w := &watcher{file: os.NewFile(uintptr(fd), "epoll"), done: make(chan struct{}), streams: map[int32]*tcpStream{}}
	raw, err := w.file.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("watch connections: %w", err)
	}
	go func() {
		defer close(w.done)
		events := make([]unix.EpollEvent, 64)
		for {
			n := 0
			err := raw.Read(func(fd uintptr) bool {
				var err error
				n, err = unix.EpollWait(int(fd), events, 0)
				return n > 0 || err != nil && !errors.Is(err, unix.EINTR)
			})
			if err != nil || n < 0 {
				return // closed
			}
			for _, e := range events[:n] {
				w.mu.Lock()
				s := w.streams[e.Fd]
				w.mu.Unlock()
				if s != nil {
					s.happened(e.Events)
				}
			}
		}
	}()
	return w, nil
}

// close ends the watch.
func (w *watcher) close() {
	_ = w.file.Close()
	<-w.done
}

// add begins to watch a stream.
func (w *watcher) add(s *tcpStream) error {
	w.mu.Lock()
	w.last++
	for w.streams[w.last] != nil {
		w.last++
	}
	s.watched = w.last
	w.streams[s.watched] = s
	w.mu.Unlock()
	raw, err := w.file.SyscallConn()
	if err != nil {
		return err
	}
	var added error
	err = raw.Control(func(epoll uintptr) {
		err := s.raw.Control(func(fd uintptr) {
			// EPOLLERR and EPOLLHUP are always reported. Closing the socket takes it out.
			added = unix.EpollCtl(int(epoll), unix.EPOLL_CTL_ADD, int(fd), &unix.EpollEvent{Events: unix.EPOLLET, Fd: s.watched})
		})
		added = errors.Join(err, added)
	})
	return errors.Join(err, added)
}

// remove ends the watch of a stream.
func (w *watcher) remove(s *tcpStream) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.streams, s.watched)
}
