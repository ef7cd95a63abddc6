package core

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// TestBitErrors holds that transfers end over links that lose bits and not
// packets, where next to no packet of the usual size arrives.
func TestBitErrors(t *testing.T) {
	for _, ber := range []float64{1e-5, 1e-4, 1e-3} {
		for seed := uint64(1); seed < 6; seed++ {
			f := &path{rate: 600, delay: 10 * time.Millisecond, queue: 100}
			b := &path{rate: 600, delay: 10 * time.Millisecond, queue: 100}
			r := rand.New(rand.NewPCG(seed, 3))
			f.lostSize = func(n int) bool { return r.Float64() > math.Pow(1-ber, float64(8*n)) }
			s := newSim(Config{}, Config{}, f, b, seed)
			con, took, ok := s.transfer(10<<10, 3*time.Hour)
			best := 0.0
			for n := 60; n < 1473; n++ {
				best = max(best, float64(n)/float64(n+28)*math.Pow(1-ber, float64(8*(n+28))))
			}
			t.Log(ber, con, took, ok, "bound with the best size", time.Duration(10240/600./best*1e9), "packets", f.sent, "shrunk", s.conns[0].stats.Shrunk, s.conns[0].packet)
			if !ok {
				t.Errorf("bit error rate %g, seed %d: not complete", ber, seed)
			}
		}
	}
}
