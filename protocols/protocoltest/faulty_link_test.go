package protocoltest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"linktrial/protocols/contract"
	"linktrial/protocols/harness"
)

// linkFaults are those of link, limits, addresses and end.
var linkFaults = []sabotage{
	{"server-binds-all", "local-address", "but a client also reached it at"},
	{"client-binds-none", "local-address", "of its packets came from"},
	{"refuses-unknown-fields", "unknown-fields", "a query with fields that the contract does not have"},
	{"refuses-unknown-fields-within", "unknown-fields", "a server with fields that the contract does not have"},
	{"asks-again-when-refused", "refused", "the network says so; limits.connect_ms is 60000: the client has not ended"},
	{"refused-is-timeout", "refused", "said connect-timeout"},
	{"asks-again-without-route", "no-route", "limits.connect_ms is 60000: the client has not ended"},
	{"listening-is-internal", "no-such-address", "said internal"},
	{"unreachable-is-internal", "no-such-address", "a client whose local.address is"},
	{"no-ipv6", "ipv6", "which is to be used or refused with unsupported"},
	{"opens-late", "ready-open", "opened its port"},
	{"ignores-early-sigterm", "stop-early", "while the server waits for its document: the server has not ended"},
	{"lingers", "prompt-exit", "had not exited"},
	{"closes-late", "prompt-exit", "after its result event"},
	{"no-first-byte-limit", "first-byte-limit", "a server that does not send R, limits.connect_ms is 1000: the client has not ended"},
	{"no-connect-limit-of-server", "header-limit", "was served; the server's limits.connect_ms is 1000"},
	{"no-transfer-limit-of-server", "silent-peer", "limits.transfer_ms of the server is 2500: the server gave no error event"},
	{"no-transfer-limit-of-client", "silent-peer", "limits.transfer_ms of the client is 2000: the client gave no error event"},
	{"hasty", "silent-peer", "transfer-timeout 1"},
	{"user-timeout", "silent-peer", "the client said reset"},
	{"no-transfer-limit-of-server", "server-limit", "the server's limits.transfer_ms is 1000: the server gave no error event"},
	{"never-aborts", "server-limit", "the server has given the transfer up and resets it"},
	{"user-timeout", "link-cut", "did not survive an outage of 1s"},
	{"idle-timer-of-client", "long-outage", "the client gave up 1"},
	{"idle-timer-of-server", "long-outage", "the server gave up 1"},
	{"forgets", "answer-kept", "so that the answer is sent again: the client ended with exit code 1"},
	{"closes-first", "answer-kept", "before the client had its answer"},
	{"never-closes", "answer-kept", "after its client has closed"},
	{"drains", "broken-off", "after its process had ended by SIGTERM"},
	{"drains-when-killed", "broken-off", "after its process had ended by SIGKILL"},
	{"no-retransmission", "lossy-link", "must arrive"},
	{"polls", "idle-server", "at most 5 % and 10 wake-ups are expected"},
}

// beforeDocument does what a driver does wrong before it reads its document.
func beforeDocument(fault string) {
	if fault == "ignores-early-sigterm" {
		signal.Ignore(syscall.SIGTERM)
	}
}

// refuses reports whether a driver that does not know all fields gives up.
func refuses(fault string, doc []byte) bool {
	var fields map[string]any
	if !strings.HasPrefix(fault, "refuses-unknown-fields") || json.Unmarshal(doc, &fields) != nil {
		return false
	}
	looked := []any{fields}
	if fault == "refuses-unknown-fields-within" {
		looked = []any{fields["local"], fields["limits"]}
	}
	if fields["role"] == "query" && len(looked) > 1 {
		return false
	}
	for _, in := range looked {
		if m, ok := in.(map[string]any); ok && m["x_future"] != nil {
			fmt.Println(`{"event":"error","code":"bad-parameters","message":"what is x_future?"}`)
			return true
		}
	}
	return false
}

// linkFault prepares the faults that are of the whole driver.
func linkFault(fault string, p *contract.Parameters, edit func(func(map[string]any)), drop func(func(*contract.Event) bool), code *func(int) int) {
	limit := func(name string, ms int) {
		edit(func(m map[string]any) { m["limits"].(map[string]any)[name] = ms })
	}
	server, client := p.Role == contract.RoleServer, p.Role == contract.RoleClient
	switch {
	case fault == "server-binds-all" && server:
		edit(func(m map[string]any) { m["local"].(map[string]any)["address"] = "0.0.0.0" })
	case fault == "client-binds-none" && client:
		edit(func(m map[string]any) { delete(m, "local") })
	case fault == "no-connect-limit-of-server" && server:
		limit("connect_ms", 0)
	case fault == "no-transfer-limit-of-server" && server, fault == "no-transfer-limit-of-client" && client:
		limit("transfer_ms", 0)
	case fault == "no-retransmission" && client:
		limit("transfer_ms", 8000) // it fails for certain; that need not take a minute
	case fault == "hasty":
		limit("transfer_ms", 1000)
	case fault == "listening-is-internal":
		drop(func(e *contract.Event) bool {
			if e.Code == contract.CodeListenFailed {
				e.Code = contract.CodeInternal
			}
			return false
		})
	case fault == "unreachable-is-internal":
		drop(func(e *contract.Event) bool {
			if e.Code == contract.CodeUnreachable {
				e.Code = contract.CodeInternal
			}
			return false
		})
	case fault == "no-ipv6" && strings.Contains(p.Local.Address, ":"):
		edit(func(m map[string]any) { m["local"].(map[string]any)["address"] = "0:0:0" })
	case fault == "refused-is-timeout":
		drop(func(e *contract.Event) bool {
			if e.Code == contract.CodeConnectRefused {
				e.Code = contract.CodeConnectTimeout
			}
			return false
		})
	case fault == "lingers" && client:
		*code = func(c int) int { time.Sleep(8 * time.Second); return c }
	case fault == "polls" && server:
		go func() {
			for {
				time.Sleep(10 * time.Millisecond)
			}
		}()
	}
}

// dialControl sets what the client's socket needs from its beginning: whatever
// ends the process, a linger of 0 resets the connection.
func dialControl(fault string, dscp int) func(network, address string, c syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) {
			if fault != "unmarked-client" {
				_ = harness.MarkSocket(int(fd), dscp)
			}
			switch fault {
			case "drains-when-killed":
				return
			case "idle-timer-of-client":
				_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 10_000)
			case "user-timeout":
				_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 300)
			}
			_ = unix.SetsockoptLinger(int(fd), unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
		})
	}
}

// asksAgain waits before another try of a client that cannot take no for an answer.
func asksAgain(ctx context.Context, fault string, err error) bool {
	if fault == "asks-again-when-refused" && errors.Is(err, syscall.ECONNREFUSED) ||
		fault == "asks-again-without-route" && errors.Is(err, syscall.ENETUNREACH) {
		time.Sleep(50 * time.Millisecond)
		return ctx.Err() == nil
	}
	return false
}

// lateListener opens its port 200 ms after it has said that it did.
type lateListener struct {
	opened chan struct{}
	l      harness.Listener
	err    error
}

func openLate(lc net.ListenConfig, address string) (harness.Listener, error) {
	late := &lateListener{opened: make(chan struct{})}
	go func() {
		defer close(late.opened)
		time.Sleep(200 * time.Millisecond)
		l, err := lc.Listen(context.Background(), "tcp", address)
		late.l, late.err = &faultyListener{Listener: l}, err
	}()
	return late, nil
}

func (l *lateListener) Accept() (harness.Conn, error) {
	if <-l.opened; l.err != nil {
		return nil, l.err
	}
	return l.l.Accept()
}

func (l *lateListener) Close() error {
	if <-l.opened; l.err != nil {
		return l.err
	}
	return l.l.Close()
}

// udpConn sends a stream in datagrams and hopes.
type udpConn struct {
	net.PacketConn
	to   net.Addr
	in   chan []byte
	rest []byte

	mu       sync.Mutex
	deadline time.Time
	changed  chan struct{}
}

func newUDPConn(s net.PacketConn, to net.Addr) *udpConn {
	return &udpConn{PacketConn: s, to: to, in: make(chan []byte, 10_000), changed: make(chan struct{})}
}

// receive hands every datagram to the connection that it is of.
func receive(s net.PacketConn, of func(net.Addr) *udpConn) {
	b := make([]byte, 2048)
	for {
		n, from, err := s.ReadFrom(b)
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			continue
		}
		select {
		case of(from).in <- slices.Clone(b[:n]):
		default:
		}
	}
}

func (c *udpConn) Read(b []byte) (int, error) {
	for len(c.rest) == 0 {
		c.mu.Lock()
		deadline, changed := c.deadline, c.changed
		c.mu.Unlock()
		var late <-chan time.Time
		if !deadline.IsZero() {
			late = time.After(time.Until(deadline))
		}
		select {
		case c.rest = <-c.in:
		case <-changed:
		case <-late:
			return 0, os.ErrDeadlineExceeded
		}
	}
	n := copy(b, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

func (c *udpConn) Write(b []byte) (int, error) {
	for part := range slices.Chunk(b, 1024) {
		if _, err := c.WriteTo(part, c.to); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}

func (c *udpConn) SetDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = t
	close(c.changed)
	c.changed = make(chan struct{})
	return nil
}

func (c *udpConn) Sample(*contract.Sample, bool) {}
func (c *udpConn) Info() *contract.Info          { return nil }
func (c *udpConn) Close() error                  { return nil }
func (c *udpConn) Abort()                        {}

type udpListener struct {
	net.PacketConn
	fresh chan *udpConn
}

func udpListen(_ context.Context, p *contract.Parameters) (harness.Listener, error) {
	s, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(p.Local.Address), Port: p.Local.Port})
	if err != nil {
		return nil, err
	}
	l := &udpListener{s, make(chan *udpConn)}
	go func() {
		defer close(l.fresh)
		known := map[string]*udpConn{}
		receive(s, func(from net.Addr) *udpConn {
			c := known[from.String()]
			if c == nil {
				c = newUDPConn(s, from)
				known[from.String()] = c
				l.fresh <- c
				return newUDPConn(s, from) // its first datagram is a greeting
			}
			return c
		})
	}()
	return l, nil
}

func (l *udpListener) Accept() (harness.Conn, error) {
	if c := <-l.fresh; c != nil {
		return c, nil
	}
	return nil, net.ErrClosed
}

func udpDial(_ context.Context, p *contract.Parameters) (harness.Conn, error) {
	s, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(p.Local.Address)})
	if err != nil {
		return nil, err
	}
	c := newUDPConn(s, &net.UDPAddr{IP: net.ParseIP(p.Remote.Address), Port: p.Remote.Port})
	go receive(s, func(net.Addr) *udpConn { return c })
	_, err = c.Write([]byte("hello"))
	return c, err
}
