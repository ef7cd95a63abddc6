package core

import (
	"testing"
	"time"
)

// TestSlowLink: a link that needs seconds for a packet is not filled with packets that
// repair what is only late, and both ends are silent soon after the last word: what
// follows on the same radio meets an empty queue.
func TestSlowLink(t *testing.T) {
	for _, rate := range []float64{528, 2000} { // bytes/s: 4.2 and 16 kbit/s
		f, b := &path{rate: rate, delay: 10 * time.Millisecond, mtu: 1472}, &path{rate: rate, delay: 10 * time.Millisecond, mtu: 1472}
		s := newSim(Config{}, Config{}, f, b, 3)
		const size = 3 << 10
		_, took, ok := s.transfer(size, 10*time.Minute)
		if !ok {
			t.Fatalf("%v bytes/s: not complete", rate)
		}
		if f.bytes > 2*size || b.bytes > size {
			t.Errorf("%v bytes/s: %d bytes sent and %d back for %d, expected at most %d and %d", rate, f.bytes, b.bytes, size, 2*size, size)
		}
		if least := time.Duration(size / rate * 1e9); took > least*3/2+time.Second {
			t.Errorf("%v bytes/s: took %s, the payload alone needs %s", rate, took, least)
		}
		s.conns[0].Close()
		s.conns[1].Close()
		for end := s.now + 10*time.Second; s.step(end); {
		}
		sent := f.sent + b.sent
		for end := s.now + time.Minute; s.step(end); {
		}
		if later := f.sent + b.sent - sent; later > 0 {
			t.Errorf("%v bytes/s: %d packets more than 10 s after the end, expected silence", rate, later)
		}
	}
}

// TestSlowHandshake: while the client's answers to the hello are on their way over a slow
// link, the server does not fill the way back with repetitions of its first message: what
// it says next would have to wait behind them.
func TestSlowHandshake(t *testing.T) {
	// A hello of 148 bytes leaves after 0.28 s and arrives 0.3 s later; of four that the
	// client says before the first answer, the last does 1.4 s after it was said.
	f, b := &path{rate: 528, delay: 300 * time.Millisecond, mtu: 1472}, &path{rate: 600, delay: 10 * time.Millisecond, mtu: 1472}
	s := newSim(Config{}, Config{}, f, b, 3)
	connected, took, ok := s.transfer(3<<10, 10*time.Minute)
	if !ok {
		t.Fatal("not complete")
	}
	t.Logf("connected after %s, took %s; %d packets, %d back", connected, took, f.sent, b.sent)
	if f.sent > 20 || b.sent > 20 {
		t.Errorf("%d packets sent and %d back, expected at most 20 each", f.sent, b.sent)
	}
}
