package harness

import (
	"testing"
	"time"
)

// TestSchedule: the interval doubles as documented, and missed beats are left out.
func TestSchedule(t *testing.T) {
	s := schedule{next: 100 * time.Millisecond, interval: 100 * time.Millisecond}
	n := 0
	for s.next <= 10*time.Hour {
		if n == 499 && s.next != 50*time.Second || n == 500 && s.next != 50200*time.Millisecond || n == 750 && s.next != 100*time.Second+400*time.Millisecond {
			t.Errorf("sample %d is due at %s", n+1, s.next)
		}
		s.taken(s.next)
		n++
	}
	if n < 2500 || n > 3500 {
		t.Errorf("%d samples in ten hours", n)
	}
	s = schedule{next: time.Second, interval: time.Second}
	for at, want := range map[time.Duration]time.Duration{
		time.Second: 2 * time.Second, 7500 * time.Millisecond: 8 * time.Second, 9 * time.Second: 10 * time.Second,
	} {
		x := s
		if x.taken(at); x.next != want {
			t.Errorf("after a sample at %s the next is due at %s, expected %s", at, x.next, want)
		}
	}
}
