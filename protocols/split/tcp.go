package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"linktrial/protocols/contract"
	"linktrial/protocols/harness"
	"linktrial/protocols/tcp/socket"
)

// listenTCP accepts connections of TCP.
func listenTCP(ctx context.Context, p *contract.Parameters, w *watcher) (*side, error) {
	l, err := settings(p, "accept").Listen().Listen(ctx, "tcp", address(p.Local))
	if err != nil {
		return nil, err
	}
	t := l.(*net.TCPListener)
	return &side{
		accept: func() (harness.Stream, error) {
			for {
				c, err := t.AcceptTCP()
				if err != nil {
					return nil, err
				}
				s, err := newTCP(c, p, w)
				if err == nil {
					return s, nil
				}
				// One connection that is gone already is not the end of the relay.
				slog.Warn("connection dropped", "remote", c.RemoteAddr().String(), "error", err)
			}
		},
		close: t.Close,
	}, nil
}

// dialTCP connects to the next address.
func dialTCP(ctx context.Context, p *contract.Parameters, w *watcher) (harness.Stream, error) {
	d := settings(p, "connect").Dialer()
	c, err := socket.Redial(ctx, func() (net.Conn, error) { return d.DialContext(ctx, "tcp", address(p.Remote)) })
	if err != nil {
		return nil, err
	}
	return newTCP(c.(*net.TCPConn), p, w)
}

// tcpStream is one side of a connection over TCP.
//
// Until it ends in order, the process's end in whatever way (SIGKILL too) resets
// it: the kernel would otherwise end in order what was cut off, and go on sending
// what is in its buffer.
type tcpStream struct {
	*net.TCPConn
	raw     syscall.RawConn
	watcher *watcher
	watched int32
	failed  func(error)
	ended   atomic.Bool   // CloseWrite was called
	gone    chan struct{} // closed when the kernel has no connection any more
	aborted chan struct{}
	once    sync.Once // to close aborted
}

func newTCP(c *net.TCPConn, p *contract.Parameters, w *watcher) (*tcpStream, error) {
	s := &tcpStream{TCPConn: c, watcher: w, gone: make(chan struct{}), aborted: make(chan struct{})}
	var err error
	if s.raw, err = c.SyscallConn(); err == nil {
		err = c.SetLinger(0)
	}
	// Go turns Nagle's algorithm off on every connection by itself.
	if on, ok := p.Options["nodelay"].(bool); ok && err == nil {
		err = c.SetNoDelay(on)
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return s, nil
}

// closed reports whether the kernel has no connection any more: both ends have
// closed it in order, or it was reset.
func (s *tcpStream) closed() bool {
	t, _, err := socket.Info(s.raw)
	return err != nil || t.State == unix.BPF_TCP_CLOSE
}

// Read tells a reset from an end. The kernel reports a reset once, to the first
// call that meets it, be it a write; later reads get an end of the stream.
func (s *tcpStream) Read(b []byte) (int, error) {
	n, err := s.TCPConn.Read(b)
	if errors.Is(err, io.EOF) && !s.ended.Load() && s.closed() {
		return n, fmt.Errorf("read from %s: %w", s.RemoteAddr(), syscall.ECONNRESET)
	}
	return n, err
}

// CloseWrite ends this direction with a FIN.
func (s *tcpStream) CloseWrite() error {
	s.ended.Store(true)
	return s.TCPConn.CloseWrite()
}

// Close waits until the other end has acknowledged everything: a socket without
// an owner would be given up by the kernel long before an outage is over.
func (s *tcpStream) Close() error {
	if !s.closed() {
		select {
		case <-s.gone:
		case <-s.aborted:
		}
	}
	s.watcher.remove(s)
	return s.TCPConn.Close()
}

// Abort resets the connection.
func (s *tcpStream) Abort() {
	s.once.Do(func() {
		close(s.aborted)
		s.watcher.remove(s)
		_ = s.TCPConn.Close()
	})
}

// Watch has the kernel report when the connection breaks.
func (s *tcpStream) Watch(failed func(error)) {
	s.failed = failed
	if err := s.watcher.add(s); err != nil {
		failed(err)
	}
}

// happened is called with what the kernel reports of the connection.
func (s *tcpStream) happened(events uint32) {
	if events&unix.EPOLLERR != 0 {
		s.failed(fmt.Errorf("connection with %s: %w", s.RemoteAddr(), syscall.ECONNRESET))
	}
	if s.closed() {
		select {
		case <-s.gone:
		default:
			close(s.gone) // only the watcher's goroutine comes here
		}
	}
}
