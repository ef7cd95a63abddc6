package link

import (
	"encoding/json"
	"math"
	"slices"
	"testing"
	"time"

	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol"
)

func history(t *testing.T, n *radio.Network, length time.Duration) []radiocontrol.ChannelHistory {
	t.Helper()
	h, err := History(n, 4, length)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestHistory(t *testing.T) {
	n := pair(radio.MediumFullDuplex)
	if h := history(t, n, time.Hour); len(h) != 0 {
		t.Errorf("a channel that never changes has a history: %+v", h)
	}
	lossy(n, radio.Channel{Model: radio.ChannelOutages, Outages: &radio.Outages{Period: 6 * time.Second, Length: time.Second, Offset: 5 * time.Second, Loss: 1}})
	h := history(t, n, 12*time.Second)
	if len(h) != 1 || h[0].From != radio.RoleClient || !slices.Equal(h[0].AtUS, []int64{0, 5e6, 6e6, 11e6}) || !slices.Equal(h[0].Loss, []float64{0, 1, 0, 1}) || h[0].BitErrorRate != nil || h[0].RateBitsPerSecond != nil || h[0].Step != 0 {
		t.Errorf("outages: %+v", h)
	}
	n = lossy(pair(radio.MediumFullDuplex), radio.Channel{Model: radio.ChannelTrace, Trace: &radio.Trace{Step: time.Second, Loss: []float64{0, 0, 0}, RateBitsPerSecond: []float64{1000, 1000, 2000}, Delay: []time.Duration{0, time.Second, time.Second}}})
	h = history(t, n, time.Minute)
	if len(h) != 1 || !slices.Equal(h[0].AtUS, []int64{0, 1e6, 2e6}) || !slices.Equal(h[0].RateBitsPerSecond, []float64{1000, 1000, 2000}) || !slices.Equal(h[0].DelayUS, []int64{0, 1e6, 1e6}) || h[0].Loss != nil {
		t.Errorf("trace: %+v", h)
	}
	// The states of every kind of channel: few moments, the right means, a few kB.
	for seed := range uint64(40) {
		n := anyNetwork(seed)
		for _, h := range history(t, n, 10*time.Minute) {
			if len(h.AtUS) > radiocontrol.MaxHistory || !slices.IsSorted(h.AtUS) || h.AtUS[0] != 0 || len(h.Loss)+len(h.BitErrorRate)+len(h.RateBitsPerSecond)+len(h.DelayUS) == 0 {
				t.Fatalf("seed %d: %+v", seed, h)
			}
			if b, err := json.Marshal(h); err != nil || len(b) > 40_000 {
				t.Errorf("seed %d: %d bytes, %v", seed, len(b), err)
			}
		}
	}
	one := hf(t, 50, 6, 5, 3)
	h = history(t, one, 20*time.Minute)
	sum := 0.0
	for _, x := range h[0].BitErrorRate {
		sum += x
	}
	if ber := sum / float64(len(h[0].BitErrorRate)); h[0].Step == 0 || math.Abs(ber-1e-3) > 1e-4 {
		t.Errorf("mean bit error rate %g in %d steps of %s", ber, len(h[0].BitErrorRate), h[0].Step)
	}
}

func TestRadioStatus(t *testing.T) {
	n := lossy(pair(radio.MediumFullDuplex), radio.Channel{Model: radio.ChannelUniform, Loss: 0.1})
	l := build(t, n, 1)
	for range 4 {
		l.Enter(0, 0, 1, 100, 0, false)
	}
	l.Advance(150 * ms)
	r := l.Radios()
	if len(r) != 2 || r[0].From != radio.RoleClient || r[0].QueuePackets != 2 || r[0].QueueBytes != 200 || r[0].RateBitsPerSecond != 8000 || math.Abs(r[0].Loss-0.1) > 1e-9 || r[1].Loss != 0 || r[1].SNR != 30 {
		t.Errorf("%+v", r)
	}
	// Back from the ratio to the loss.
	ber := 0.5 * math.Erfc(math.Sqrt(math.Pow(10, r[0].SNR/10)))
	if loss := 1 - math.Pow(1-ber, 8000); math.Abs(loss-0.1) > 1e-6 {
		t.Errorf("%g dB would lose %g", r[0].SNR, loss)
	}
	if snr(1, 8000) != -10 || snr(0, 8000) != 30 || snr(0.5, 1) != -10 {
		t.Errorf("ends of the scale: %g, %g, %g", snr(1, 8000), snr(0, 8000), snr(0.5, 1))
	}
	// Asking changes nothing.
	plain, asked := build(t, n, 7), build(t, n, 7)
	for i := range 300 {
		now := time.Duration(i) * 130 * ms
		plain.Enter(now, 0, 1, 100, 0, false)
		asked.Enter(now, 0, 1, 100, 0, false)
		asked.Radios()
		plain.Advance(now)
		asked.Advance(now)
	}
	if a, b := plain.Hops()[0], asked.Hops()[0]; a != b {
		t.Errorf("asked: %+v, not asked: %+v", b, a)
	}
}
