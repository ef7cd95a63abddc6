package secure

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The window agrees with a map of all numbers, whatever their order.
func TestReplay(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var r Replay
		seen := map[uint64]bool{}
		highest, any := uint64(0), false
		for range 20000 {
			var number uint64
			switch rng.IntN(8) {
			case 0:
				number = highest + uint64(rng.IntN(3*replayWindow))
			case 1:
				number = highest + uint64(rng.IntN(70))
			case 2: // the edge of the window
				number = highest - min(highest, uint64(replayWindow-3+rng.IntN(6)))
			default:
				number = highest - min(highest, uint64(rng.IntN(replayWindow+100)))
			}
			want := !seen[number] && (!any || number > highest || highest-number < replayWindow)
			if got := r.Check(number); got != want {
				t.Fatalf("seed %d: check of %d, highest %d: %v, expected %v", seed, number, highest, got, want)
			}
			if rng.IntN(4) == 0 {
				continue // was not authentic
			}
			r.Accept(number)
			if want {
				seen[number], any = true, true
				highest = max(highest, number)
			}
			if r.Check(number) {
				t.Fatalf("seed %d: %d would be accepted twice", seed, number)
			}
		}
	}
}

func TestReplayAtTheEnd(t *testing.T) {
	var r Replay
	for _, n := range []uint64{0, 1 << 63, math.MaxUint64 - 1, math.MaxUint64 - replayWindow} {
		if !r.Check(n) {
			t.Errorf("%d is refused", n)
		}
		r.Accept(n)
	}
	for _, n := range []uint64{0, 1 << 63, math.MaxUint64 - 1, math.MaxUint64, math.MaxUint64 - replayWindow - 1} {
		if r.Check(n) {
			t.Errorf("%d is accepted", n)
		}
	}
}
