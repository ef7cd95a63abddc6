package measure

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"linktrial/protocols/contract"
)

const ms = 1_000_000

// arrive feeds packets with their delays, in the order of arrival.
func arrive(p *Probe, packets ...[2]int64) {
	for _, x := range packets {
		sent := x[0] * 20 * ms
		p.Arrive(uint32(x[0]), sent, sent+x[1]*ms, 100)
	}
}

func TestMetrics(t *testing.T) {
	p := New()
	// 3 and 4 lost, 7 lost, 2 late, 5 twice, of 9.
	arrive(p, [2]int64{0, 10}, [2]int64{1, 10}, [2]int64{5, 30}, [2]int64{2, 90}, [2]int64{5, 31}, [2]int64{6, 20}, [2]int64{8, 40})
	got := p.Metrics(9, 900)
	if got.Received != 6 || got.Lost != 3 || got.LossBursts != 2 || got.LongestLossBurst != 2 || got.Duplicated != 1 || got.Reordered != 1 || got.ReceivedBytes != 600 {
		t.Errorf("%+v", got)
	}
	want := contract.Delays{MinNS: 10 * ms, MeanNS: 33333333, P50NS: 20 * ms, P95NS: 90 * ms, P99NS: 90 * ms, MaxNS: 90 * ms}
	for _, step := range []struct{ to, ms int64 }{{33, 10}, {50, 20}, {66, 30}, {83, 40}, {100, 90}} {
		for int64(len(want.PercentilesNS)) <= step.to {
			want.PercentilesNS = append(want.PercentilesNS, step.ms*ms)
		}
	}
	if !reflect.DeepEqual(*got.Delay, want) {
		t.Errorf("delays %+v, expected %+v", *got.Delay, want)
	}
}

// TestJitter follows RFC 3550, section 6.4.1 by hand: D is 0, 16, 32 ms.
func TestJitter(t *testing.T) {
	p := New()
	arrive(p, [2]int64{0, 10}, [2]int64{1, 10}, [2]int64{2, 26}, [2]int64{3, 58})
	second, third := 1.0*ms, 1.0*ms+(32*ms-1.0*ms)/16
	got := p.Metrics(4, 400)
	if want := int64((0 + second + third) / 3); got.JitterMeanNS != want && got.JitterMeanNS != want+1 || got.JitterMaxNS != int64(third+0.5) {
		t.Errorf("jitter %d, at most %d; expected %d, at most %.0f", got.JitterMeanNS, got.JitterMaxNS, want, third)
	}
}

func TestNothingArrived(t *testing.T) {
	got := New().Metrics(5, 500)
	if got.Delay != nil || got.Lost != 5 || got.LossBursts != 1 || got.LongestLossBurst != 5 {
		t.Errorf("%+v", got)
	}
	if got := New().Metrics(0, 0); got.Lost != 0 || got.LossBursts != 0 {
		t.Errorf("nothing sent: %+v", got)
	}
}

// TestAgainstList compares with values made of the whole list of packets.
func TestAgainstList(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		p, sent := New(), int64(r.IntN(300))
		var delays []int64
		seen := map[int64]bool{}
		highest, reordered, duplicated := int64(-1), int64(0), int64(0)
		for range r.IntN(600) {
			if sent == 0 {
				break
			}
			n := int64(r.IntN(int(sent)))
			delay := r.Int64N(1000)
			if p.Arrive(uint32(n), 5, 5+delay, 1) == seen[n] {
				t.Fatalf("seed %d: packet %d", seed, n)
			}
			if seen[n] {
				duplicated++
				continue
			}
			seen[n] = true
			if n < highest {
				reordered++
			}
			highest = max(highest, n)
			delays = append(delays, delay)
		}
		bursts, longest, run := int64(0), int64(0), int64(0)
		for n := range sent {
			if seen[n] {
				run = 0
				continue
			}
			if run++; run == 1 {
				bursts++
			}
			longest = max(longest, run)
		}
		got := p.Metrics(sent, sent)
		if got.Received != int64(len(delays)) || got.Reordered != reordered || got.Duplicated != duplicated || got.LossBursts != bursts || got.LongestLossBurst != longest {
			t.Fatalf("seed %d: %+v", seed, got)
		}
		if len(delays) == 0 {
			continue
		}
		slices.Sort(delays)
		// The smallest delay that at least 95 % do not exceed.
		p95 := delays[slices.IndexFunc(delays, func(d int64) bool {
			n := 0
			for _, x := range delays {
				if x <= d {
					n++
				}
			}
			return 100*n >= 95*len(delays)
		})]
		if got.Delay.P95NS != p95 || got.Delay.MinNS != delays[0] || got.Delay.MaxNS != delays[len(delays)-1] {
			t.Fatalf("seed %d: %+v, expected a 95th percentile of %d", seed, *got.Delay, p95)
		}
	}
}
