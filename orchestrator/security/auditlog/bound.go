package auditlog

import (
	"fmt"
	"time"

	"linktrial/internal/auditchain"
	"linktrial/orchestrator/security/admission"
)

// What anonymous callers may add to the log. Whoever can reach the orchestrator can make
// such calls, as many as the line takes; a person who mistypes a password makes a few.
const (
	AnonymousAnHour    = 120
	AnonymousOfAddress = 30 // of these, so that one address does not hide another's calls
	window             = time.Hour
	maxAddresses       = 1000 // that a sum tells apart
)

// bounds counts anonymous calls. Its memory does not grow with their number.
type bounds struct {
	began   time.Time // zero: no call in this window
	written int
	of      map[string]int // entries of an address in this window
	rest    sum
}

// sum is of the calls without an entry of their own.
type sum struct {
	calls       int64
	addresses   map[string]struct{}
	more        bool // there were more addresses than maxAddresses
	address     string
	action      string
	first, last time.Time
}

// over returns the sum of a window that has ended, and begins the next one.
func (b *bounds) over(now time.Time) (sum, bool) {
	if b.began.IsZero() || now.Sub(b.began) < window {
		return sum{}, false
	}
	return b.take()
}

// take ends the window; it reports whether there is a sum.
func (b *bounds) take() (sum, bool) {
	s := b.rest
	*b = bounds{}
	return s, s.calls > 0
}

// allow reports whether an anonymous call may have an entry of its own.
func (b *bounds) allow(now time.Time, address string) bool {
	b.begin(now)
	n := admission.Network(address)
	if b.written >= AnonymousAnHour || b.of[n] >= AnonymousOfAddress {
		return false
	}
	if b.of == nil {
		b.of = map[string]int{}
	}
	b.written++
	b.of[n]++
	return true
}

// count adds a call to the sum.
func (b *bounds) count(now time.Time, action, address string) {
	b.begin(now)
	s := &b.rest
	if s.calls == 0 {
		s.first, s.action, s.addresses = now, action, map[string]struct{}{}
	}
	s.calls++
	s.last, s.address = now, address
	n := admission.Network(address)
	if _, known := s.addresses[n]; known {
		return
	}
	if s.more = s.more || len(s.addresses) >= maxAddresses; !s.more {
		s.addresses[n] = struct{}{}
	}
}

func (b *bounds) begin(now time.Time) {
	if b.began.IsZero() {
		b.began = now
	}
}

// entry is the sum as an entry of the log.
func (s *sum) entry(now time.Time) auditchain.Entry {
	calls, from := fmt.Sprintf("%d further calls", s.calls), fmt.Sprintf("%d addresses", len(s.addresses))
	if s.calls == 1 {
		calls = "1 further call"
	}
	e := auditchain.Entry{At: now, Action: s.action, Outcome: "refused"}
	switch {
	case s.more:
		from = "more than " + from
	case len(s.addresses) == 1:
		from, e.Address = "1 address", s.address
	}
	const clock = "2006-01-02 15:04:05"
	when, last := s.first.UTC().Format(clock), s.last.UTC().Format(clock)
	if last != when {
		when += " to " + last
	}
	e.Message = fmt.Sprintf("%s without a login from %s, %s UTC", calls, from, when)
	return e
}
