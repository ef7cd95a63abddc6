package protocoltest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"linktrial/protocols/contract"
	"linktrial/protocols/harness"
)

// relayFaults are those of the role relay.
var relayFaults = []sabotage{
	{"shares-port", "relay-listen", "a second relay on the same port: the relay has not ended"},
	{"relay-says-ready-early", "relay-listen", "as soon as it says ready"},
	{"relay-flips", "relay-bytes", "is another than was sent"},
	{"relay-greets", "relay-bytes", "before the server had written any"},
	{"relay-connects-late", "relay-bytes", "has opened none to the server"},
	{"relay-connects-early", "relay-bytes", "before it had accepted one"},
	{"relay-collects", "relay-prompt", "a single byte from the client"},
	{"relay-serial", "relay-concurrent", "connection 2, beside others that are open"},
	{"relay-closes-both", "relay-half-close", "the client ends its direction first"},
	{"relay-keeps-end", "relay-half-close", "the client ends its direction first"},
	{"relay-ends-instead", "relay-reset", "while nothing moves: the other end: the connection goes on for"},
	{"relay-unwatched", "relay-reset", "while the server takes nothing: the other end: the connection goes on"},
	{"relay-keeps-refused", "relay-refused", "no server listens: the client: TCP to TCP: the connection goes on"},
	{"relay-dials-for-ever", "relay-connect-limit", "limits.connect_ms over"},
	{"relay-dials-once", "relay-connect-limit", "a connection begun in an outage"},
	{"relay-unbounded", "relay-back-pressure", "bytes that nobody read"},
	{"relay-no-idle-limit", "relay-idle-limit", "the client: the connection goes on"},
	{"relay-early-idle-limit", "relay-idle-limit", "a byte moves every"},
	{"relay-idle-timer", "relay-outage", "arrived"},
	{"relay-leaks", "relay-leaves-nothing", "sockets after 20 connections"},
	{"busy", "relay-idle", "an idle relay takes"},
	{"ignores-sigterm", "relay-stop", "has not ended"},
	{"relay-ends-instead", "relay-stop", "the connection ended in order"},
	{"relay-ends-when-killed", "relay-killed", "the connection ended in order"},
	{"relay-tells", "output", "a connected event of transfer"},
}

// relayOf opens a relay of TCP with one fault.
func relayOf(fault string) func(context.Context, *contract.Parameters) (*harness.Relay, error) {
	return func(ctx context.Context, p *contract.Parameters) (*harness.Relay, error) {
		at := func(e contract.Endpoint) string { return net.JoinHostPort(e.Address, strconv.Itoa(e.Port)) }
		lc := net.ListenConfig{KeepAlive: -1}
		lc.SetMultipathTCP(false)
		if fault == "shares-port" {
			lc.Control = func(_, _ string, c syscall.RawConn) error {
				return c.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) })
			}
		}
		switch fault {
		case "relay-no-idle-limit":
			p.Limits.TransferMS = 0
		case "relay-early-idle-limit":
			p.Limits.TransferMS /= 8
		}
		free := make(chan struct{}, 1)
		stream := func(c net.Conn) harness.Stream {
			k := c.(*net.TCPConn)
			if fault != "relay-ends-when-killed" {
				_ = k.SetLinger(0)
			}
			return &relayStream{TCPConn: k, fault: fault, free: free, over: make(chan struct{})}
		}
		dialer := net.Dialer{KeepAlive: -1}
		dialer.SetMultipathTCP(false)
		if fault == "relay-connects-early" {
			if _, err := dialer.DialContext(ctx, "tcp", at(p.Remote)); err != nil {
				return nil, err
			}
		}
		l, err := lc.Listen(ctx, "tcp", at(p.Local))
		if err != nil {
			return nil, err
		}
		if fault == "relay-says-ready-early" {
			_ = l.Close()
		}
		return &harness.Relay{
			Buffer: 16 * kib,
			Accept: func() (harness.Stream, error) {
				if fault == "relay-says-ready-early" {
					<-ctx.Done()
				}
				if fault == "relay-serial" {
					free <- struct{}{}
				}
				c, err := l.Accept()
				if err != nil {
					return nil, err
				}
				if fault == "relay-greets" {
					_, _ = c.Write([]byte{contract.ByteReady})
				}
				s := stream(c)
				if fault == "relay-connects-late" {
					first := make([]byte, 1)
					if _, err := c.Read(first); err == nil {
						s.(*relayStream).before = first
					}
				}
				return s, nil
			},
			Close: l.Close,
			Dial: func(ctx context.Context) (harness.Stream, error) {
				if fault == "relay-dials-for-ever" {
					ctx = context.Background()
				}
				attempt := ctx
				if fault == "relay-dials-once" {
					var done context.CancelFunc
					attempt, done = context.WithTimeout(ctx, 200*time.Millisecond)
					defer done()
				}
				c, err := dialer.DialContext(attempt, "tcp", at(p.Remote))
				if err == nil {
					return stream(c), nil
				}
				if fault == "relay-dials-once" || fault == "relay-keeps-refused" && errors.Is(err, syscall.ECONNREFUSED) {
					<-ctx.Done()
				}
				return nil, err
			},
		}, nil
	}
}

// relayStream is one side of a faulty relay's connection.
type relayStream struct {
	*net.TCPConn
	fault  string
	free   chan struct{}
	before []byte // to be read first
	got    int

	mu     sync.Mutex
	kept   bytes.Buffer // written and not sent
	filled chan struct{}
	idle   *time.Timer
	half   atomic.Bool
	over   chan struct{}
	ending sync.Once
}

func (s *relayStream) Read(b []byte) (int, error) {
	if len(s.before) > 0 {
		n := copy(b, s.before)
		s.before = s.before[n:]
		return n, nil
	}
	if s.fault == "relay-idle-timer" {
		if s.idle == nil {
			s.idle = time.AfterFunc(time.Second, s.Abort)
		}
		s.idle.Reset(time.Second)
	}
	n, err := s.TCPConn.Read(b)
	if s.fault == "relay-flips" && s.got < 10_000 && s.got+n >= 10_000 {
		b[n-1] ^= 1
	}
	s.got += n
	if errors.Is(err, io.EOF) {
		switch {
		case !s.half.Load() && s.closed():
			return n, syscall.ECONNRESET
		case s.fault == "relay-closes-both":
			return n, syscall.ECONNRESET
		}
	}
	return n, err
}

func (s *relayStream) Write(b []byte) (int, error) {
	switch s.fault {
	case "relay-collects":
		s.mu.Lock()
		defer s.mu.Unlock()
		s.kept.Write(b)
		if s.kept.Len() < kib {
			return len(b), nil
		}
		_, err := s.kept.WriteTo(s.TCPConn)
		return len(b), err
	case "relay-unbounded":
		s.mu.Lock()
		defer s.mu.Unlock()
		s.kept.Write(b)
		if s.filled == nil {
			s.filled = make(chan struct{}, 1)
			go s.send()
		}
		select {
		case s.filled <- struct{}{}:
		default:
		}
		return len(b), nil
	}
	return s.TCPConn.Write(b)
}

// send writes what is kept, however much it is.
func (s *relayStream) send() {
	for range s.filled {
		s.mu.Lock()
		out := bytes.Clone(s.kept.Bytes())
		s.kept.Reset()
		s.mu.Unlock()
		if _, err := s.TCPConn.Write(out); err != nil {
			return
		}
	}
}

func (s *relayStream) CloseWrite() error {
	if s.fault == "relay-keeps-end" {
		return nil
	}
	s.mu.Lock()
	_, _ = s.kept.WriteTo(s.TCPConn)
	s.mu.Unlock()
	s.half.Store(true)
	return s.TCPConn.CloseWrite()
}

func (s *relayStream) closed() bool {
	i := (&faultyConn{Conn: s.TCPConn}).tcpInfo()
	return i.State == unix.BPF_TCP_CLOSE || i.State == 0
}

// Close waits for the other end's acknowledgement.
func (s *relayStream) Close() error {
	for !s.closed() {
		select {
		case <-s.over:
			return nil
		case <-time.After(10 * time.Millisecond):
		}
	}
	s.end()
	return s.TCPConn.Close()
}

// kept are files that nobody closes.
var kept sync.Map

func (s *relayStream) end() {
	s.ending.Do(func() {
		close(s.over)
		if s.fault == "relay-serial" {
			select {
			case <-s.free:
			default:
			}
		}
		if s.fault == "relay-leaks" {
			if f, err := s.File(); err == nil {
				kept.Store(f, true)
			}
		}
	})
}

func (s *relayStream) Abort() {
	if s.fault == "relay-ends-instead" {
		_ = s.SetLinger(-1)
	}
	s.end()
	_ = s.TCPConn.Close()
}

// Watch looks now and then.
func (s *relayStream) Watch(failed func(error)) {
	if s.fault == "relay-unwatched" {
		return
	}
	go func() {
		for !s.closed() {
			select {
			case <-s.over:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
		if !s.half.Load() {
			failed(syscall.ECONNRESET)
		}
	}()
}
