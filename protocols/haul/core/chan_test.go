package core

import (
	"math/rand/v2"
	"testing"
	"time"
)

// slots loses what a two-state chain of slots says, in time.
func slots(seed uint64, slot time.Duration, alpha, beta float64) func(time.Duration) bool {
	r := rand.New(rand.NewPCG(seed, 9))
	var states []bool
	bad := r.Float64() < alpha/(alpha+beta)
	return func(at time.Duration) bool {
		n := int(at / slot)
		for len(states) <= n {
			if bad {
				bad = r.Float64() >= beta
			} else {
				bad = r.Float64() < alpha
			}
			states = append(states, bad)
		}
		return states[n]
	}
}

// BenchmarkSlots prints how near to the coded bound transfers over two-state
// channels come (go test -run - -bench Slots -benchtime 1x).
func BenchmarkSlots(b *testing.B) {
	for b.Loop() {
		measureSlots(b)
	}
}

func measureSlots(t *testing.B) {
	for _, ab := range [][2]float64{{0.00428, 0.01}, {0.0428, 0.1}, {0.001, 0.01}, {.1, .1}} {
		for _, size := range []int{3 << 10, 100 << 10, 1 << 20} {
			sum, n, con := 0.0, 0.0, 0.0
			for seed := uint64(1); seed < 20; seed++ {
				rate := 7000.0
				slot := 32 * time.Millisecond
				f := &path{rate: rate, delay: time.Second, queue: 700, lost: slots(seed, slot*7, ab[0], ab[1])}
				b := &path{rate: rate, delay: time.Second, queue: 700, lost: slots(seed+100, slot*7, ab[0], ab[1])}
				s := newSim(Config{}, Config{}, f, b, seed)
				c, took, ok := s.transfer(size, 3*time.Hour)
				if !ok {
					t.Log("failed", ab, size, seed)
					continue
				}
				// the coded bound, from the start of the transfer
				ch := slots(seed, slot*7, ab[0], ab[1])
				at := c
				left := float64(size)
				for left > 0 {
					at += time.Duration(1500 / rate * 1e9)
					if !ch(at) {
						left -= 1472
					}
				}
				bound := at - c + 2*time.Second
				sum += float64(bound) / float64(took)
				con += c.Seconds()
				n++
			}
			t.Logf("%v %d share %.3f connect %.2f", ab, size, sum/n, con/n)
		}
	}
}
