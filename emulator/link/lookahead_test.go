package link

import (
	"slices"
	"testing"
	"time"
)

// sleep lets packets in like play, but wakes only when next says so. Every
// packet must come out at a moment at which the caller is awake.
func sleep(t *testing.T, l *Network, in []entry, next func() (time.Duration, bool)) (out []exit, refused []uint32, wakes int) {
	t.Helper()
	last := time.Duration(-1)
	for i := 0; ; {
		at, ok := next()
		enters := i < len(in) && (!ok || in[i].at < at)
		switch {
		case enters:
			at = in[i].at
		case !ok:
			for _, x := range l.Advance(last + 1000*time.Hour) {
				if x.Outcome == Delivered {
					t.Errorf("a packet comes out at %s when none was to come", x.At)
				}
				out = append(out, exit{x.At, x.Handle, x.Outcome})
			}
			return out, refused, wakes
		default:
			if wakes++; at <= last {
				t.Fatalf("at %s the caller is to wake at %s", last, at)
			}
			last = at
		}
		for _, x := range l.Advance(at) {
			if x.Outcome == Delivered && x.At != at {
				t.Fatalf("a packet came out at %s, and the caller slept until %s", x.At, at)
			}
			out = append(out, exit{x.At, x.Handle, x.Outcome})
		}
		if enters {
			if e := in[i]; !l.Enter(e.at, e.from, e.to, e.bytes, uint32(i), false) {
				refused = append(refused, uint32(i))
			}
			i++
		}
	}
}

// TestNextExit: on any network, who sleeps until NextExit gets the same packets
// at the same moments as who wakes for every event, and wakes less often.
func TestNextExit(t *testing.T) {
	exits, events := 0, 0
	for seed := range uint64(100) {
		n, in := anyNetwork(seed), anyTraffic(seed, 150)
		l := build(t, n, 9)
		want, wantRefused, wakes := sleep(t, l, in, l.NextEvent)
		events += wakes
		l = build(t, n, 9)
		got, refused, wakes := sleep(t, l, in, l.NextExit)
		exits += wakes
		if !slices.Equal(got, want) || !slices.Equal(refused, wantRefused) {
			t.Errorf("seed %d: %d exits and %d refusals, expected %d and %d", seed, len(got), len(refused), len(want), len(wantRefused))
		}
		if t.Failed() {
			t.Fatalf("seed %d: %s", seed, describe(n))
		}
	}
	t.Logf("%d wakes for exits, %d for events", exits, events)
	if exits >= events {
		t.Error("it spares nothing")
	}
}
