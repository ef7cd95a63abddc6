package edge_test

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"

	"linktrial/protocols/datagram"
	"linktrial/protocols/datagram/edge"
)

// counter is a core that answers each packet with the next number, up to a last one,
// and begins at its first deadline.
type counter struct {
	*edge.Edge
	to      netip.AddrPort // where the first packet goes; the zero value: it only answers
	last    byte
	begin   time.Duration // 0: it has begun
	out     []datagram.Packet
	got     []byte
	refused int
	signal  edge.Signal
}

func (c *counter) Receive(_ time.Duration, p datagram.Packet) {
	n := p.Data[0]
	c.got = append(c.got, n)
	if n < c.last {
		c.out = append(c.out, datagram.Packet{Data: []byte{n + 1}, Addr: p.Addr})
	}
	c.signal.Tell()
}

func (c *counter) Refused(time.Duration, netip.AddrPort) { c.refused++; c.signal.Tell() }
func (c *counter) Unreachable(error)                     {}
func (c *counter) TooLarge(datagram.Packet) {
}

func (c *counter) Tick(time.Duration) {
	c.begin = 0
	c.out = append(c.out, datagram.Packet{Data: []byte{1}, Addr: c.to})
}

func (c *counter) Flush(time.Duration) time.Duration {
	for _, p := range c.out {
		n := copy(c.Room(), p.Data)
		p.Data = c.Room()[:n]
		c.Queue(p)
	}
	c.out = nil
	return c.begin
}

func open(t *testing.T, last byte) *counter {
	t.Helper()
	s, err := datagram.Open(datagram.Config{Local: netip.MustParseAddrPort("127.0.0.1:0")})
	if err != nil {
		t.Fatal(err)
	}
	c := &counter{last: last}
	c.Edge = edge.New(s, c)
	t.Cleanup(func() {
		c.Lock()
		c.Stop()
		c.Unlock()
		c.Wait()
	})
	return c
}

func never() time.Time { return time.Time{} }

// Two ends count to a hundred in turns; the first packet goes out at a deadline. More
// packets than a batch has are queued at once then.
func TestPacketsAndDeadlines(t *testing.T) {
	t.Parallel()
	answering, asking := open(t, 100), open(t, 100)
	answering.Start()
	asking.to, asking.begin = answering.Local(), asking.Now()+10*time.Millisecond
	asking.Start()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := asking.Await(ctx, &asking.signal, never, func() (bool, error) {
		return len(asking.got) > 0 && asking.got[len(asking.got)-1] == 100, nil
	}); err != nil {
		t.Fatalf("%v; got %v", err, asking.got)
	}
	answering.Lock()
	answering.got = nil
	answering.Unlock()
	asking.Lock()
	for range 200 {
		asking.out = append(asking.out, datagram.Packet{Data: []byte{100}, Addr: answering.Local()})
	}
	asking.Settle(asking.Now())
	asking.Unlock()
	if err := answering.Await(ctx, &answering.signal, never, func() (bool, error) { return len(answering.got) == 200, nil }); err != nil {
		t.Errorf("%v; %d packets of 200", err, len(answering.got))
	}
}

// The core goes on over another socket, and the old one's address takes nothing more.
func TestReplace(t *testing.T) {
	t.Parallel()
	c, other := open(t, 0), open(t, 0)
	c.Start()
	other.Start()
	s, err := datagram.Open(datagram.Config{Local: netip.MustParseAddrPort("127.0.0.1:0")})
	if err != nil {
		t.Fatal(err)
	}
	c.Lock()
	if !c.Replace(s) {
		t.Error("not replaced")
	}
	to := c.Local()
	c.Unlock()
	other.Lock()
	other.out = append(other.out, datagram.Packet{Data: []byte{7}, Addr: to})
	other.Settle(other.Now())
	other.Unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := c.Await(ctx, &c.signal, never, func() (bool, error) { return len(c.got) == 1, nil }); err != nil {
		t.Error(err)
	}
	c.Lock()
	defer c.Unlock()
	c.Stop()
	if s, err = datagram.Open(datagram.Config{Local: netip.MustParseAddrPort("127.0.0.1:0")}); err != nil {
		t.Fatal(err)
	}
	if c.Replace(s) {
		t.Error("replaced after Stop")
	}
}

func TestAwait(t *testing.T) {
	t.Parallel()
	c := open(t, 0)
	wrong := errors.New("wrong")
	waits := func() (bool, error) { return false, nil }
	if err := c.Await(t.Context(), &c.signal, never, func() (bool, error) { return false, wrong }); !errors.Is(err, wrong) {
		t.Errorf("%v, expected %v", err, wrong)
	}
	if err := c.Await(t.Context(), &c.signal, func() time.Time { return time.Unix(1, 0) }, waits); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%v, expected the deadline's error", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Await(ctx, &c.signal, never, waits); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, expected the context's error", err)
	}
}

func TestPort(t *testing.T) {
	t.Parallel()
	var p edge.Port
	if err := p.Refused(0, false, 0); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("while connecting: %v", err)
	}
	p.Heard(time.Second)
	for i, at := range []time.Duration{1100, 1200, 1300, 1400} { // an open connection, heard at 1000
		if err := p.Refused(at*time.Millisecond, true, 10*time.Millisecond); err != nil {
			t.Errorf("report %d, while alive: %v", i, err)
		}
	}
	if err := p.Refused(2100*time.Millisecond, true, 300*time.Millisecond); err != nil {
		t.Errorf("after silence that is not long for its path: %v", err)
	}
	if err := p.Refused(2100*time.Millisecond, true, 10*time.Millisecond); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("after silence: %v", err)
	}
	p.Heard(3 * time.Second)
	if err := p.Refused(5*time.Second, true, 0); err != nil {
		t.Errorf("one report: %v", err)
	}
}
