package core

import "time"

// Bounds of the retransmission timeout: the first and the longest are RFC 6298's
// (sections 2.1 and 2.5), the shortest is that of ns-2 and of Linux.
const (
	firstTimeout = time.Second
	leastTimeout = 200 * time.Millisecond
	mostTimeout  = 60 * time.Second
)

// clock estimates the round-trip time and makes the timeout of it (RFC 6298).
type clock struct {
	srtt, variation time.Duration
	backoff         uint
}

func (c *clock) sample(rtt time.Duration) {
	if rtt < 0 {
		return
	}
	if c.srtt == 0 {
		c.srtt, c.variation = max(rtt, 1), rtt/2
		return
	}
	c.variation += ((c.srtt - rtt).Abs() - c.variation) / 4
	c.srtt = max(c.srtt+(rtt-c.srtt)/8, 1)
}

func (c *clock) timeout() time.Duration {
	t := firstTimeout
	if c.srtt > 0 {
		t = max(c.srtt+4*c.variation, leastTimeout)
	}
	return min(t<<min(c.backoff, 10), mostTimeout)
}

// window is the congestion window in bytes of payload, FEC included.
type window struct {
	cwnd, ssthresh int
	limited        bool  // it has kept something from being sent
	reduced        int64 // the highest packet number when it was last reduced
}

// first is the initial window (RFC 3390).
func first(segment int) window {
	return window{cwnd: min(4*segment, max(2*segment, 4380)), ssthresh: 1 << 30}
}

// grow follows the delivery of bytes: slow start, then one segment a round trip.
func (w *window) grow(delivered, segment int) {
	if !w.limited || delivered <= 0 {
		return
	}
	if w.cwnd < w.ssthresh {
		w.cwnd = min(w.cwnd+delivered, max(w.ssthresh, w.cwnd))
		return
	}
	w.cwnd += max(segment*min(delivered, w.cwnd)/w.cwnd, 1)
}

// reduce halves the window, once for the packets of a window.
func (w *window) reduce(acked, sent int64, segment int) bool {
	if acked <= w.reduced {
		return false
	}
	w.cwnd = max(w.cwnd/2, 2*segment)
	w.ssthresh = w.cwnd
	w.reduced = sent
	return true
}

// collapse follows a timeout: one segment, and slow start up to half of what was
// under way; a timeout of what was sent again after a timeout leaves that as it
// is (RFC 5681, section 3.1).
func (w *window) collapse(flight int, sent int64, segment int, repeated bool) {
	if !repeated {
		w.ssthresh = max(flight/2, 2*segment)
	}
	w.cwnd = segment
	w.reduced = sent
}
