package protocoltest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"linktrial/internal/process"
	"linktrial/protocols/contract"
)

// way is a client and a server of the suite's own, with relay processes between
// them. The client connects to entry, and comes out at server.
type way struct {
	s      *suite
	relays []*proc // from the client to the server
	entry  string
	server *net.TCPListener
}

// chain is the options of the relay processes of a way, from client to server.
type chain struct {
	name    string
	options []map[string]any
}

// chains are those that a driver's options name: one process with TCP on both
// sides, and for everything else that both sides can speak two processes with it
// between them.
func (s *suite) chains() []chain {
	choices := func(name string) []string {
		i := slices.IndexFunc(s.target.Manifest.Options, func(o contract.Option) bool { return o.Name == name })
		if i < 0 {
			return nil
		}
		return s.target.Manifest.Options[i].Choices
	}
	const plain = "tcp"
	accept, connect := choices("accept"), choices("connect")
	if !slices.Contains(accept, plain) || !slices.Contains(connect, plain) {
		return []chain{{"TCP to TCP", []map[string]any{nil}}}
	}
	out := []chain{{"TCP to TCP", []map[string]any{{"accept": plain, "connect": plain}}}}
	for _, x := range accept {
		if x != plain && slices.Contains(connect, x) {
			out = append(out, chain{"TCP to " + x + " to TCP", []map[string]any{{"accept": plain, "connect": x}, {"accept": x, "connect": plain}}})
		}
	}
	return out
}

// wayOf says what is special about a way.
type wayOf struct {
	// at is the node of a single relay process; two are at either end's.
	at contract.Role
	// limits of the relay processes, where they are not the usual ones.
	limits *contract.Limits
	// remote is what the last process connects to, where it is not the suite's server.
	remote *contract.Endpoint
}

// eachWay runs a check over every chain of the driver's.
func (s *suite) eachWay(ctx context.Context, o wayOf, check func(*way) (string, error)) (string, error) {
	detail := ""
	for _, c := range s.chains() {
		d, err := s.oneWay(ctx, c, o, check)
		if err != nil {
			return "", fmt.Errorf("%s: %w", c.name, err)
		}
		if detail == "" {
			detail = d
		}
	}
	return detail, nil
}

func (s *suite) oneWay(ctx context.Context, c chain, o wayOf, check func(*way) (string, error)) (string, error) {
	w, err := s.newWay(ctx, c, o)
	if err != nil {
		return "", err
	}
	defer w.close()
	return check(w)
}

// newWay starts the processes, the last one first, and waits until they are ready.
func (s *suite) newWay(ctx context.Context, c chain, o wayOf) (*way, error) {
	w := &way{s: s}
	address, _ := s.net.address(contract.RoleServer)
	err := s.inside(contract.RoleServer, func() (err error) {
		w.server, err = net.ListenTCP("tcp", &net.TCPAddr{IP: net.ParseIP(address)})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("the suite's own server: %w", err)
	}
	next := contract.Endpoint{Address: address, Port: w.server.Addr().(*net.TCPAddr).Port}
	if o.remote != nil {
		next = *o.remote
	}
	for i, options := range slices.Backward(c.options) {
		at := o.at
		if at == "" || i > 0 {
			at = contract.RoleServer
		}
		if len(c.options) > 1 && i == 0 {
			at = contract.RoleClient
		}
		p := s.relayParams(at, next)
		for name, v := range options {
			p.Options[name] = v
		}
		if o.limits != nil {
			p.Limits = *o.limits
		}
		r, err := s.relay(ctx, at, p)
		if err != nil {
			w.close()
			return nil, err
		}
		w.relays = append([]*proc{r}, w.relays...)
		next = p.Local
	}
	w.entry = net.JoinHostPort(next.Address, strconv.Itoa(next.Port))
	return w, nil
}

func (w *way) close() { _ = w.server.Close() }

// relayParams are those of a relay at a node.
func (s *suite) relayParams(at contract.Role, remote contract.Endpoint) *contract.Parameters {
	p := s.params(contract.RoleRelay)
	p.Local.Address, p.Device = s.net.address(at)
	p.Local.Port, p.Remote = s.port(), remote
	return p
}

// relay starts a relay at a node and waits until it is ready.
func (s *suite) relay(ctx context.Context, at contract.Role, p *contract.Parameters) (*proc, error) {
	r, err := s.beginAt(at, p)
	if err != nil {
		return nil, err
	}
	_, err = r.await(ctx, s.o.waits.ready, "ready event", kind(contract.KindReady))
	return r, err
}

// inside runs f in the network of a role. It has to be quick: f has a thread that
// all of the suite shares.
func (s *suite) inside(r contract.Role, f func() error) error {
	if ns := s.net.namespace(r); ns != "" {
		return process.InNamespace(ns, f)
	}
	return f()
}

// dial is the client's connection.
func (w *way) dial() (c *net.TCPConn, err error) {
	err = w.s.inside(contract.RoleClient, func() error {
		conn, err := net.DialTimeout("tcp", w.entry, w.s.o.Patience)
		if err == nil {
			c = conn.(*net.TCPConn)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("connect to the relay: %w", err)
	}
	return c, nil
}

// accept waits for what the relay connects.
func (w *way) accept(within time.Duration) (*net.TCPConn, error) {
	if err := w.server.SetDeadline(time.Now().Add(within)); err != nil {
		return nil, err
	}
	return w.server.AcceptTCP()
}

// pair is a connection from the client through the relays to the server. Nothing on it
// waits longer than its checks' patience.
type pair struct{ client, server *net.TCPConn }

func (w *way) connect() (*pair, error) {
	c, err := w.dial()
	if err != nil {
		return nil, err
	}
	srv, err := w.accept(w.s.o.Patience)
	if err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("the relay accepted a connection and has opened none to the server within %s: %w", w.s.o.Patience, err)
	}
	p := &pair{c, srv}
	return p, p.patient(w.s.o.Patience)
}

// carrying opens a connection and passes bytes to the server, so that every relay
// of the way has both of its sides.
func (w *way) carrying() (*pair, error) {
	p, err := w.connect()
	if err != nil {
		return nil, err
	}
	if err := pass(p.client, p.server, "here"); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// patient bounds everything that is waited for on the pair from now on.
func (p *pair) patient(d time.Duration) error {
	at := time.Now().Add(d)
	return errors.Join(p.client.SetDeadline(at), p.server.SetDeadline(at))
}

func (p *pair) close() {
	_ = p.client.Close()
	_ = p.server.Close()
}

// pass sends bytes from one end and expects them, and no others, at the other.
func pass(from, to *net.TCPConn, bytes string) error {
	if _, err := from.Write([]byte(bytes)); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	got := make([]byte, len(bytes))
	if n, err := io.ReadFull(to, got); err != nil {
		return fmt.Errorf("%d of %d bytes arrived: %w", n, len(bytes), err)
	}
	if string(got) != bytes {
		return fmt.Errorf("%q arrived, expected %q", got, bytes)
	}
	return nil
}

// fill writes until nothing more is taken for a while, and returns how much was:
// most where there is no end of it.
func fill(c *net.TCPConn, most int) (n int, err error) {
	block := make([]byte, 64*kib)
	for n < most {
		if err := c.SetWriteDeadline(time.Now().Add(fullAfter)); err != nil {
			return n, err
		}
		k, err := c.Write(block)
		n += k
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// fullAfter is how long a connection must take nothing to count as full.
const fullAfter = 1500 * time.Millisecond

// reset makes the kernel send a reset.
func reset(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}

// readsReset reads to the end of a connection, which must be a reset.
func readsReset(c *net.TCPConn) error {
	_, err := io.Copy(io.Discard, struct{ io.Reader }{c})
	switch {
	case errors.Is(err, syscall.ECONNRESET):
		return nil
	case err == nil:
		return errors.New("the connection ended in order, expected a reset")
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errors.New("the connection goes on, expected a reset")
	}
	return fmt.Errorf("expected a reset: %w", err)
}

// broken waits until the kernel has no connection any more, without a read or a write.
func (s *suite) broken(ctx context.Context, c *net.TCPConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	for begin := time.Now(); ; {
		over := false
		if err := raw.Control(func(fd uintptr) {
			t, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
			over = err == nil && t.State == unix.BPF_TCP_CLOSE
		}); err != nil || over {
			return err
		}
		if time.Since(begin) > s.o.Patience {
			return fmt.Errorf("the connection goes on for %s, expected a reset", s.o.Patience)
		}
		if err := wait(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
}
