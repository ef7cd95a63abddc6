package core

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// BenchmarkMeasure prints how near to the coded bound transfers come
// (go test -run - -bench Measure -benchtime 1x).
func BenchmarkMeasure(b *testing.B) {
	for b.Loop() {
		measure()
	}
}

func measure() {
	type cell struct {
		name        string
		rate        float64
		rtt         time.Duration
		loss, burst float64
	}
	var cells []cell
	for _, l := range []float64{0, .01, .05, .1, .2, .4} {
		cells = append(cells, cell{"2M", 250e3, 60 * time.Millisecond, l, 1})
	}
	for _, l := range []float64{.01, .05, .1, .2, .4} {
		cells = append(cells, cell{"2M burst", 250e3, 60 * time.Millisecond, l, 4})
	}
	for _, l := range []float64{0, .1, .3} {
		cells = append(cells, cell{"256k", 32e3, time.Second, l, 1})
	}
	for _, l := range []float64{0, .1, .5} {
		cells = append(cells, cell{"16k", 2e3, time.Second, l, 1})
	}
	const seeds = 12
	for _, size := range []int{3 << 10, 100 << 10, 1 << 20} {
		for _, c := range cells {
			for _, known := range []bool{false, true} {
				var shares, extra, connects []float64
				var back, sent float64
				failed := 0
				for seed := uint64(1); seed <= seeds; seed++ {
					cfg := Config{}
					if known {
						cfg.Link = Link{Rate: c.rate, RTT: c.rtt, MTU: 1500, Loss: c.loss}
					}
					cfg.Secure.Plain = false
					f := &path{rate: c.rate, delay: c.rtt / 2, queue: 100}
					b := &path{rate: c.rate, delay: c.rtt / 2, queue: 100}
					f.lost, b.lost = burstLoss(seed*7+1, c.loss, c.burst, c.rate), burstLoss(seed*7+2, c.loss, c.burst, c.rate)
					s := newSim(cfg, cfg, f, b, seed)
					con, took, ok := s.transfer(size, time.Hour*3)
					if !ok {
						failed++
						continue
					}
					n := float64((size+1471)/1472) / (1 - c.loss)
					ideal := float64(size)/(1-c.loss)/c.rate*1e9 + n*28/c.rate*1e9 + float64(c.rtt)
					shares = append(shares, ideal/float64(took))
					extra = append(extra, (float64(took)-ideal)/float64(c.rtt))
					connects = append(connects, float64(con)/float64(c.rtt))
					back += float64(b.bytes) / float64(f.bytes)
					sent += float64(f.bytes) * (1 - c.loss) / float64(size)
				}
				slices.Sort(extra)
				slices.Sort(connects)
				n := len(shares)
				if n == 0 {
					fmt.Println("none", c, size)
					continue
				}
				sum := 0.0
				for _, v := range shares {
					sum += v
				}
				fmt.Printf("%7d %-9s loss %.2f known %-5v share %.3f extra RTT median %6.2f p95 %6.2f connect %5.2f back %.3f overhead %.3f failed %d\n",
					size, c.name, c.loss, known, sum/float64(n), extra[n/2], extra[n-1-n/20], connects[n/2], back/float64(n), sent/float64(n), failed)
			}
		}
	}
}
