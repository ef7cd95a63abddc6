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
