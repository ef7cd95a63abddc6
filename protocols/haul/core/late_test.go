package core

import (
	"math/rand/v2"
	"testing"
	"time"
)

// A node whose processors are busy wakes its programs late. What a sender could not send
// meanwhile its next packets make up for, as far as the radio's queue had not run empty:
// the share is by how much longer a transfer may take. The sender without that took 22 to
// 440 % longer.
func TestLateWakeUps(t *testing.T) {
	for _, x := range []struct {
		name  string
		share float64
		late  func(r *rand.Rand) time.Duration
	}{
		{"a few milliseconds often", 0.01, func(r *rand.Rand) time.Duration { return time.Duration(r.Int64N(int64(6 * time.Millisecond))) }},
		{"a slice of another program", 0.05, func(r *rand.Rand) time.Duration {
			if r.Float64() < 0.3 {
				return time.Duration(r.Int64N(int64(30 * time.Millisecond)))
			}
			return 0
		}},
		{"longer than the queue lasts", 0.35, func(r *rand.Rand) time.Duration {
			if r.Float64() < 0.02 {
				return 80 * time.Millisecond
			}
			return 0
		}},
	} {
		for rate, of := range map[float64]string{250e3: "2 Mbit/s", 1250e3: "10 Mbit/s"} {
			t.Run(x.name+" over "+of, func(t *testing.T) {
				idle := transferLate(t, rate, func(*rand.Rand) time.Duration { return 0 })
				busy := transferLate(t, rate, x.late)
				longer := busy.Seconds()/idle.Seconds() - 1
				t.Logf("%s without, %s with late wake-ups: %+.1f %%", idle, busy, 100*longer)
				if longer > x.share {
					t.Errorf("%.1f %% longer, at most %.0f %% expected", 100*longer, 100*x.share)
				}
			})
		}
	}
}

// transferLate is how long 1 MiB takes between two nodes that wake their programs late.
func transferLate(t *testing.T, rate float64, late func(r *rand.Rand) time.Duration) time.Duration {
	t.Helper()
	link := func() *path { return &path{rate: rate, delay: 20 * time.Millisecond, queue: 64} }
	s := newSim(Config{}, Config{}, link(), link(), 7)
	r := rand.New(rand.NewPCG(7, 3))
	s.late = func(int) time.Duration { return late(r) }
	_, took, ok := s.transfer(1<<20, time.Minute)
	if !ok {
		t.Fatal("the transfer did not complete")
	}
	return took
}
