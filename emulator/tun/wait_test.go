package tun

import (
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol"
)

// slowly is a network in which a packet of 500 bytes is on the air for 250 ms.
func slowly() *radio.Network {
	n := pair()
	n.Links[0].RateBitsPerSecond = 16e3
	return n
}

// TestSharedLoopNoticesRequests: a loop that shares its thread sleeps without
// Go's scheduler, but not past a request, and lets the scheduler work until it
// is answered.
func TestSharedLoopNoticesRequests(t *testing.T) {
	l, ends := sockets(t, slowly())
	if err := l.share(); err != nil {
		t.Fatal(err)
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var conns [2]*net.UnixConn
	for i, fd := range pair {
		f := os.NewFile(uintptr(fd), "pair")
		c, err := net.FileConn(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		conns[i] = c.(*net.UnixConn)
	}
	if err := l.watch(conns[0]); err != nil {
		t.Fatal(err)
	}
	events := make([]unix.EpollEvent, 8)
	next := func() (token int32) {
		t.Helper()
		n, errno := l.wait(events)
		for errno == unix.EINTR { // Go's scheduler interrupts whom it waits for
			n, errno = l.wait(events)
		}
		if errno != 0 || n != 1 {
			t.Fatalf("%d events, %v", n, errno)
		}
		return events[0].Fd
	}
	rawWrite(ends[radio.RoleClient], packetTo("10.77.0.3", 500))
	if next() != 0 {
		t.Fatalf("%+v, expected the client's packet", events[0])
	}
	l.read(0)
	before := l.shared.parked // for want of any packet
	// The packet is due in 250 ms, and quietWait is longer.
	if _, err := conns[1].Write([]byte("{}\n")); err != nil {
		t.Fatal(err)
	}
	if token := next(); token != tokenClient || l.shared.parked != before {
		t.Errorf("event %d, parked at %s: expected %d and not since %s", token, l.shared.parked, tokenClient, before)
	}
	done := l.request()
	if token := next(); token != tokenTimer || l.shared.parked == before {
		t.Errorf("with a request under way: event %d, parked at %s, expected %d and later", token, l.shared.parked, tokenTimer)
	}
	// Once more after the last request: its answer is still to be written.
	done()
	if token := next(); token != tokenWake {
		t.Errorf("event %d, expected %d", token, tokenWake)
	}
	l.runPending()
	if !l.shared.park || l.shared.busy.Load() != 0 {
		t.Errorf("after the request: %+v", l.shared)
	}
}

// TestSharedLoopCarries: trials work as ever while the loop and everybody else
// take turns on one thread.
func TestSharedLoopCarries(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	n := slowly()
	n.Links[0].RateBitsPerSecond = 2e6
	r := start(t, n, true)
	c, ctx := r.dial(t), timeout(t)
	for trial := range 3 {
		const packets = 50
		if err := c.Begin(ctx, radiocontrol.Begin{Trial: "x", Seed: 1, Flows: []radiocontrol.Flow{{From: radio.RoleClient, To: radio.RoleServer, SizeBytes: 1000}}}); err != nil {
			t.Fatal(err)
		}
		from, to := r.udp(t, radio.RoleClient, 0), r.udp(t, radio.RoleServer, 7001)
		r.blast(t, from, packets, 1000)
		if s, err := c.Status(ctx); err != nil || s.Trial != "x" {
			t.Errorf("status: %+v, %v", s, err)
		}
		if got := received(t, to, packets); len(got) != packets {
			t.Errorf("trial %d: %d packets came out, expected %d", trial, len(got), packets)
		}
		rep, err := c.End(ctx, "x")
		if err != nil {
			t.Fatal(err)
		}
		if h := rep.Hops[0]; h.DeliveredPackets != packets || len(rep.Ideal) != 1 || rep.Duration > time.Hour {
			t.Errorf("trial %d: %+v", trial, rep)
		}
		from.Close()
		to.Close()
	}
}
