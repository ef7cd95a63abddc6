package core

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"linktrial/protocols/lttcp/wire"
)

// Any packets of a block, as many as it has segments, restore it; packet i of the
// code is the same however many are made.
func TestCode(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var c codecs
	for range 300 {
		n, size := 1+r.IntN(mostSegments), 1+r.IntN(300)
		last := 1 + r.IntN(size)
		segments := make([][]byte, n)
		for i := range segments {
			segments[i] = make([]byte, size)
			if i == n-1 {
				segments[i] = segments[i][:last]
			}
			for j := range segments[i] {
				segments[i][j] = byte(r.Uint32())
			}
		}
		few, err := c.encode(segments, size, 1)
		if err != nil {
			t.Fatal(err)
		}
		want := 1 + r.IntN(wire.MaxPackets-n)
		many, err := c.encode(segments, size, want)
		if err != nil || len(many) < want || !bytes.Equal(few[0], many[0]) {
			t.Fatalf("%d segments: %d packets of the code (%v), expected %d, the first one as before", n, len(many), err, want)
		}
		got, code := make([][]byte, n), map[int][]byte{}
		for left, all := n, r.Perm(n+want); left > 0; left-- {
			if i := all[left-1]; i < n {
				got[i] = segments[i]
			} else {
				code[i-n] = many[i-n]
			}
		}
		if err := c.restore(got, code, size, last); err != nil {
			t.Fatal(err)
		}
		for i := range got {
			if !bytes.Equal(got[i], segments[i]) {
				t.Fatalf("segment %d of %d is not what it was", i, n)
			}
		}
	}
}

// The sizes follow from the paper's bounds: at least 10 packets, 200 to 1500 bytes.
func TestSegmentSize(t *testing.T) {
	c, err := Config{Random: random(1)}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	s := newSender(&c)
	for window, want := range map[int]int{1500: 200, 2000: 200, 5000: 500, 15000: 1500, 100_000: 1500} {
		if got := s.segmentSize(window); got != want {
			t.Errorf("a window of %d bytes has segments of %d, expected %d", window, got, want)
		}
	}
	c.FixedSegment = true
	if got := s.segmentSize(2000); got != 1500 {
		t.Errorf("fixed segments have %d bytes", got)
	}
}

// bulk sends for a time over a path of 10 Mbit/s and 20 ms, and returns both ends' values.
func bulk(t *testing.T, c Config, forward *path, long time.Duration) (sent, got Stats) {
	t.Helper()
	forward.rate, forward.delay = 1.25e6, 20*time.Millisecond
	if forward.queue == 0 {
		forward.queue = 500
	}
	c.Buffer = 1 << 20
	s := newSim(c, c, forward, &path{rate: 1.25e6, delay: 20 * time.Millisecond, queue: 500}, 7)
	data := make([]byte, 64<<10)
	s.work = func() {
		if c := s.conns[0]; c.Open() {
			if _, err := c.Write(data, 64<<10, true); err != nil {
				t.Fatal(err)
			}
		}
		if c := s.conns[1]; c != nil {
			for n, _ := c.Read(data); n > 0; n, _ = c.Read(data) {
			}
		}
	}
	for s.step(long) {
	}
	return s.conns[0].Stats(), s.conns[1].Stats()
}

// The window follows marks, not losses; unless it is to follow them, too.
func TestWindowFollowsMarksAlone(t *testing.T) {
	if s, _ := bulk(t, Config{}, &path{loss: 0.1}, 5*time.Second); s.Reductions != 0 || s.Restored+s.Losses+s.Proactive == 0 {
		t.Errorf("with losses alone: %+v", s)
	}
	if s, r := bulk(t, Config{}, &path{marks: 20}, 20*time.Second); s.Reductions < 5 || r.Marks < s.Reductions || s.Losses+s.Timeouts != 0 || s.Window > 300_000 {
		t.Errorf("with marks alone: %+v, received %+v", s, r)
	}
	if s, _ := bulk(t, Config{LossResponse: true}, &path{loss: 0.01}, 10*time.Second); s.Reductions < 5 {
		t.Errorf("with losses that count: %+v", s)
	}
}

// One mark halves the window once, however often it is echoed in a round trip.
func TestReducesOnceARoundTrip(t *testing.T) {
	w := first(1000)
	w.cwnd = 40_000
	if !w.reduce(10, 50, 1000) || w.cwnd != 20_000 {
		t.Errorf("window %d after a mark", w.cwnd)
	}
	if w.reduce(50, 60, 1000) || w.cwnd != 20_000 {
		t.Errorf("window %d after the mark's echo of the same window", w.cwnd)
	}
	if !w.reduce(51, 60, 1000) || w.cwnd != 10_000 || w.ssthresh != 10_000 {
		t.Errorf("window %d after the next mark", w.cwnd)
	}
}

// The estimate is near the share that is lost, and that share of what is sent
// ahead is FEC; without losses there is none.
func TestProactiveFollowsTheEstimate(t *testing.T) {
	for _, loss := range []float64{0, 0.1, 0.3, 0.5} {
		s, r := bulk(t, Config{NoReactive: true}, &path{loss: loss, marks: 50}, 20*time.Second)
		segments := float64(s.Acked) / 1500 // roughly: windows are large enough
		share := float64(s.Proactive) / (float64(s.Proactive) + segments)
		if share < loss*0.6 || share > loss*1.5+0.001 {
			t.Errorf("loss %g: %g of what is sent ahead is FEC (%+v)", loss, share, s)
		}
		if loss > 0 && r.Restored == 0 {
			t.Errorf("loss %g: nothing was restored", loss)
		}
	}
}

// Each component sends what it is named after, and nothing else does.
func TestComponents(t *testing.T) {
	for _, c := range []struct {
		Config
		proactive, reactive bool
	}{
		{Config{FixedSegment: true, NoProactive: true, NoReactive: true}, false, false},
		{Config{NoProactive: true, NoReactive: true}, false, false},
		{Config{NoProactive: true}, false, true},
		{Config{NoReactive: true}, true, false},
		{Config{}, true, true},
	} {
		s, _ := bulk(t, c.Config, &path{loss: 0.3, marks: 50}, 10*time.Second)
		if (s.Proactive > 0) != c.proactive || (s.Reactive > 0) != c.reactive || s.Acked == 0 {
			t.Errorf("%+v: %+v", c.Config, s)
		}
		if (s.Again > 0) != (s.Retransmits > 0) || s.Again > s.Retransmits*LongestSegment || !c.reactive && s.Again == 0 {
			t.Errorf("%+v: %d segments sent again with %d bytes", c.Config, s.Retransmits, s.Again)
		}
	}
}

// After a timeout the first packets are FEC of the oldest block.
func TestTimeoutSendsFECFirst(t *testing.T) {
	c, err := Config{Random: random(1), Segment: 500}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	s := newSender(&c)
	s.limit = 1 << 20
	s.more = true
	s.write(make([]byte, 50_000), 50_000)
	var buf [2000]byte
	key := wire.Key{}
	next := func(now time.Duration) *wire.Packet {
		b := s.next(now, buf[:0], &key)
		if b == nil {
			return nil
		}
		var p wire.Packet
		if err := wire.Parse(b, &key, &p); err != nil {
			t.Fatal(err)
		}
		return &p
	}
	n := 0
	for p := next(time.Second); p != nil; p = next(time.Second) {
		if p.Kind != wire.Data {
			t.Fatalf("packet %d is of kind %d", n, p.Kind)
		}
		n++
	}
	s.tick(s.timeoutAt)
	if p := next(3 * time.Second); p == nil || p.Kind != wire.FEC || p.Seq != 0 || int(p.Index) != n || s.window.cwnd != 500 {
		t.Errorf("after the timeout of %d segments: %+v, window %d", n, p, s.window.cwnd)
	}
	if p := next(3 * time.Second); p == nil || p.Kind != wire.FEC || p.Size != 200 {
		t.Errorf("a window of 500 bytes takes two packets of 200, the second is %+v", p)
	}
	if p := next(3 * time.Second); p != nil {
		t.Errorf("a window of 500 bytes sends %+v as well", p)
	}
}
