package haul_test

import (
	"bytes"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"linktrial/protocols/haul"
)

// router passes datagrams on between a client and a server, and shows the server
// an address that it can change, as a router does that has forgotten a mapping.
type router struct {
	t      *testing.T
	server netip.AddrPort
	front  *net.UDPConn // the client sends here
	client atomic.Pointer[netip.AddrPort]
	group  sync.WaitGroup

	mu   sync.Mutex
	back *net.UDPConn // the server hears from here

	evil      *net.UDPConn // of an attacker
	every     int          // which copies one packet in so many; 0: none
	sent, got int          // bytes that the attacker has sent and got
}

func socket(t *testing.T) *net.UDPConn {
	t.Helper()
	s, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(loopback))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func addressOf(s *net.UDPConn) netip.AddrPort { return s.LocalAddr().(*net.UDPAddr).AddrPort() }

func newRouter(t *testing.T, server netip.AddrPort) *router {
	t.Helper()
	r := &router{t: t, server: server, front: socket(t), evil: socket(t)}
	r.rebind()
	r.group.Go(func() { r.harvest() })
	r.group.Go(func() { r.forward() })
	t.Cleanup(func() {
		for _, s := range []*net.UDPConn{r.front, r.back, r.evil} {
			_ = s.Close()
		}
		r.group.Wait()
	})
	return r
}

// rebind gives the client another address, as the server sees it.
func (r *router) rebind() {
	s := socket(r.t)
	r.mu.Lock()
	old := r.back
	r.back = s
	r.mu.Unlock()
	if old != nil {
		_ = old.Close()
	}
	r.group.Go(func() {
		b := make([]byte, 65536)
		for {
			n, _, err := s.ReadFromUDPAddrPort(b)
			if err != nil {
				return
			}
			if to := r.client.Load(); to != nil {
				_, _ = r.front.WriteToUDPAddrPort(b[:n], *to)
			}
		}
	})
}

// forward passes on what the client sends; what the attacker copies goes out first.
func (r *router) forward() {
	b := make([]byte, 65536)
	for i := 1; ; i++ {
		n, from, err := r.front.ReadFromUDPAddrPort(b)
		if err != nil {
			return
		}
		r.client.Store(&from)
		r.mu.Lock()
		if r.every > 0 && i%r.every == 0 {
			r.sent += n
			_, _ = r.evil.WriteToUDPAddrPort(b[:n], r.server)
		}
		_, _ = r.back.WriteToUDPAddrPort(b[:n], r.server)
		r.mu.Unlock()
	}
}

// harvest counts what the attacker gets.
func (r *router) harvest() {
	b := make([]byte, 65536)
	for {
		n, _, err := r.evil.ReadFromUDPAddrPort(b)
		if err != nil {
			return
		}
		r.mu.Lock()
		r.got += n
		r.mu.Unlock()
	}
}

// exchange sends messages in both directions at once; between calls between
// while they are on their way.
func exchange(t *testing.T, client, server *haul.Conn, between func(i int)) {
	t.Helper()
	const messages, size, moves = 200, 20_000, 5
	ctx := soon(t)
	var group sync.WaitGroup
	for _, way := range [][2]*haul.Conn{{client, server}, {server, client}} {
		group.Go(func() {
			for i := range messages {
				if err := way[0].Send(ctx, haul.Message{Data: bytes.Repeat([]byte{byte(i)}, size)}); err != nil {
					t.Error(err)
					return
				}
			}
		})
		group.Go(func() {
			for i := range messages {
				if way[0] == client && i%(messages/moves) == messages/moves/2 {
					between(i / (messages / moves))
				}
				m, err := way[1].Receive(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				if !bytes.Equal(m.Data, bytes.Repeat([]byte{byte(i)}, size)) {
					t.Errorf("message %d is not what was sent", i)
					return
				}
			}
		})
	}
	group.Wait()
	// This arrives when the server knows where the client is.
	if err := server.Send(ctx, haul.Message{Data: []byte("last")}); err != nil {
		t.Error(err)
	}
	if m, err := client.Receive(ctx); err != nil || string(m.Data) != "last" {
		t.Errorf("%q, %v", m.Data, err)
	}
}

// throughRouter makes a connection of a client behind a router.
func throughRouter(t *testing.T) (client, server *haul.Conn, r *router) {
	t.Helper()
	l := listen(t, haul.Options{})
	r = newRouter(t, l.Addr())
	// A client that only receives says nothing on its own, and whoever sends to the
	// address that the router has forgotten is told that nobody is there.
	client, err := haul.Dial(soon(t), netip.AddrPort{}, addressOf(r.front), haul.Options{KeepAlive: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Abort("the test is over") })
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	return client, server, r
}

// TestTransferGoesOnElsewhere holds that transfers in both directions go on
// when the client binds its socket to other addresses.
func TestTransferGoesOnElsewhere(t *testing.T) {
	client, server, _ := connect(t, haul.Options{})
	exchange(t, client, server, func(i int) {
		if err := client.Rebind(netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, byte(2 + i)}), 0)); err != nil {
			t.Error(err)
		}
	})
	if at := server.RemoteAddr().Addr(); at != netip.MustParseAddr("127.0.0.6") {
		t.Errorf("the server sends to %v", at)
	}
}

// TestTransferGoesOnBehindRouter holds the same where the client does not know.
func TestTransferGoesOnBehindRouter(t *testing.T) {
	client, server, r := throughRouter(t)
	exchange(t, client, server, func(int) { r.rebind() })
	if at := server.RemoteAddr(); at != addressOf(r.back) {
		t.Errorf("the server sends to %v, expected %v", at, addressOf(r.back))
	}
}

// TestCopiesFromElsewhere holds that whoever copies the client's packets and is
// faster does not get what the server sends.
func TestCopiesFromElsewhere(t *testing.T) {
	client, server, r := throughRouter(t)
	r.mu.Lock()
	r.every = 20
	r.mu.Unlock()
	exchange(t, client, server, func(int) {
		if at := server.RemoteAddr(); at == addressOf(r.evil) {
			t.Error("the server sends to the attacker")
		}
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.got == 0 || r.got > 3*r.sent || r.got > 1_000_000 {
		t.Errorf("the attacker got %d bytes for %d", r.got, r.sent)
	}
	t.Logf("the attacker got %d bytes for %d", r.got, r.sent)
}
