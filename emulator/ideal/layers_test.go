package ideal

import (
	"math/rand/v2"
	"testing"
	"time"

	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol"
)

func outages(start, end time.Duration) radio.Channel {
	return radio.Channel{Model: radio.ChannelOutages, Outages: &radio.Outages{Times: []radio.Outage{{Start: start, End: end}}, Loss: 1}}
}

func TestLayersByHand(t *testing.T) {
	with := func(change func(*radio.Network)) *radio.Network {
		n := pair(radio.MediumFullDuplex)
		change(n)
		return n
	}
	frames := &radio.Framing{FrameBytes: 50, HeaderBytes: 10} // a packet of 128 bytes: 50, 50, 50, 18; the acknowledgement 39
	forth := func(n *radio.Network, c radio.Channel) {
		back := n.Links[0].Channel
		n.Links[0].Back, n.Links[0].Channel = &back, c
	}
	rates := func(step time.Duration, rate ...float64) radio.Channel {
		return radio.Channel{Model: radio.ChannelTrace, Trace: &radio.Trace{Step: step, Loss: make([]float64, len(rate)), RateBitsPerSecond: rate}}
	}
	access := func(n *radio.Network, a radio.Access) {
		n.Medium, n.Access = radio.MediumShared, &a
	}
	for _, tc := range []struct {
		name  string
		n     *radio.Network
		bytes int64
		want  time.Duration
	}{
		{"frames", with(func(n *radio.Network) { n.Framing = frames }), 100, 168*ms + 50*ms + 39*ms + 50*ms},
		{"half the rate for the code", with(func(n *radio.Network) { n.FEC = &radio.FEC{Code: radio.FECConvolutional, CodeRate: 0.5} }), 100, 256*ms + 50*ms + 58*ms + 50*ms},
		{"frames without ARQ: all must get through together", with(func(n *radio.Network) { n.Framing = frames; forth(n, outages(110*ms, 120*ms)) }), 100, (120 + 168 + 50 + 89) * ms},
		// Frames from 0, 50; then from 120 on.
		{"ARQ: each by itself", with(func(n *radio.Network) {
			n.Framing, n.ARQ = frames, &radio.ARQ{NACKTimerFrames: 5, Persistence: 3, InOrder: true}
			forth(n, outages(110*ms, 120*ms))
		}), 100, (120 + 68 + 50 + 89) * ms},
		{"waits for a better rate", with(func(n *radio.Network) { forth(n, rates(100*ms, 800, 16000)) }), 100, (100 + 64 + 50 + 79) * ms},
		{"but not longer than it must", with(func(n *radio.Network) { forth(n, rates(100*ms, 6400, 8000)) }), 100, (160 + 50 + 79) * ms},
		{"no rate at first", with(func(n *radio.Network) { forth(n, rates(100*ms, 0, 8000)) }), 100, (100 + 128 + 50 + 79) * ms},
		{"never a rate", with(func(n *radio.Network) { forth(n, rates(100*ms, 0)) }), 100, 0},
		// Client 0–150, server 150–300: 0–128; 300–428 is there at 478, the next slot at 450–600.
		{"TDMA", with(func(n *radio.Network) {
			access(n, radio.Access{TDMA: &radio.TDMA{Slot: 150 * ms, Owners: []radio.Role{radio.RoleClient, radio.RoleServer}}})
		}), 200, (478 + 29 + 50) * ms},
		{"CSMA: the interframe space before each", with(func(n *radio.Network) {
			access(n, radio.Access{CSMA: &radio.CSMA{DIFS: 10 * ms, Slot: ms, WindowMin: 15, WindowMax: 63}})
		}), 200, (10 + 128 + 10 + 128 + 50 + 79) * ms},
	} {
		if got := compute(t, tc.n, 1, tc.bytes); got != tc.want {
			t.Errorf("%s: %s, expected %s", tc.name, got, tc.want)
		}
	}
}

// layered draws a network with any of the models and layers; queues do not overflow.
func layered(seed uint64) *radio.Network {
	r := rand.New(rand.NewPCG(seed, 21))
	medium := []radio.Medium{radio.MediumFullDuplex, radio.MediumHalfDuplex, radio.MediumShared}[r.IntN(3)]
	n := chain(medium)
	if r.IntN(2) == 0 { // the middle node is the destination's radio
		n = pair(medium)
	}
	n.Turnaround = time.Duration(r.IntN(2)*7) * ms
	if r.IntN(2) == 0 {
		n.Framing = &radio.Framing{FrameBytes: 30 + r.IntN(60), HeaderBytes: r.IntN(10)}
		if r.IntN(2) == 0 {
			n.ARQ = &radio.ARQ{NACKTimerFrames: 3 + r.IntN(6), Persistence: r.IntN(5), InOrder: r.IntN(2) == 0}
		}
	}
	switch r.IntN(3) {
	case 0:
		n.FEC = &radio.FEC{Code: radio.FECConvolutional, CodeRate: 0.5}
	case 1:
		n.FEC = &radio.FEC{Code: radio.FECReedSolomon, CodeRate: 223. / 255, BlockSymbols: 255, DataSymbols: 223, InterleavingDepth: 1}
	}
	if medium == radio.MediumShared {
		switch r.IntN(3) {
		case 0:
			n.Access = &radio.Access{TDMA: &radio.TDMA{Slot: time.Second, Guard: 5 * ms}}
			for _, v := range n.Nodes {
				n.Access.TDMA.Owners = append(n.Access.TDMA.Owners, v.Role)
			}
		case 1:
			n.Access = &radio.Access{CSMA: &radio.CSMA{DIFS: time.Duration(r.IntN(4)) * ms, Slot: ms, WindowMin: r.IntN(16), WindowMax: 63, Retries: 6}}
		}
	}
	trace := &radio.Trace{Step: 3 * time.Second, Repeat: true, Loss: []float64{0, 0.2, 0.1}, RateBitsPerSecond: []float64{16000, 0, 4000}}
	if r.IntN(2) == 0 {
		trace.Delay = []time.Duration{10 * ms, 0, 200 * ms}
	}
	hidden := &radio.HiddenMarkov{Transition: [][]float64{{0.999, 0.001}, {0.1, 0.9}}, BitErrorRates: []float64{1e-5, 0.02}}
	channels := []radio.Channel{
		{Model: radio.ChannelPerfect}, {Model: radio.ChannelUniform, Loss: 0.2},
		{Model: radio.ChannelMarkov, Alpha: 0.1, Beta: 0.3}, {Model: radio.ChannelMarkov, Alpha: 0.02, Beta: 0.3, Slot: 100 * ms},
		{Model: radio.ChannelOnOff, Loss: 0.2, OnOff: &radio.OnOff{PeriodMin: 90 * ms, PeriodMax: 110 * ms, OnFactor: 1.5, OffFactor: 0.5}},
		{Model: radio.ChannelHiddenMarkov, Hidden: hidden},
		{Model: radio.ChannelOutages, Outages: &radio.Outages{Period: 6 * time.Second, Length: time.Second, Loss: 1}},
		{Model: radio.ChannelTrace, Trace: trace},
	}
	channels = append(channels, radio.Channel{Model: radio.ChannelCombined, Parts: []radio.Channel{channels[5], channels[6], channels[4]}})
	for i := range n.Links {
		n.Links[i].Channel = channels[r.IntN(len(channels))]
		if r.IntN(2) == 0 {
			n.Links[i].Back = &channels[r.IntN(len(channels))]
		}
	}
	return n
}

// The package's comment allows a transfer to be faster on a shared medium with
// a relay; on these networks none is.
func TestNoTransferBeatsIdealOnAnyNetwork(t *testing.T) {
	for seed := range uint64(300) {
		n := layered(seed)
		const packets = 20
		best, took := compute(t, n, seed, packets*100), eager(t, n, seed, packets)
		if best <= 0 || best > took {
			t.Errorf("seed %d: ideal %s, a sender took %s: %s framing %+v ARQ %+v access %+v FEC %v links %+v", seed, best, took, n.Medium, n.Framing, n.ARQ, n.Access, n.FEC, n.Links)
		}
	}
}

// On a channel with bit errors smaller packets can be better, and Ideal knows.
func TestSmallerPacketsWhereBitsAreWrong(t *testing.T) {
	n := pair(radio.MediumFullDuplex)
	n.MTUBytes = 1500
	n.Links[0].Channel = radio.Channel{Model: radio.ChannelHiddenMarkov, Hidden: &radio.HiddenMarkov{Transition: [][]float64{{1}}, BitErrorRates: []float64{1e-3}}}
	n.Links[0].Back = &radio.Channel{Model: radio.ChannelPerfect}
	best := compute(t, n, 3, 10_000)
	// 1 − 1e-3 a bit: some 350 bytes at a time cost least, about twice the bare time.
	if best < 10*time.Second || best > 30*time.Second {
		t.Errorf("10 kB at 8 kbit/s take %s", best)
	}
	for _, mtu := range []int{1000, 500, 375, 250} {
		n.MTUBytes = mtu
		if took := eager(t, n, 3, 10_000/(mtu-headerBytes)); best > took {
			t.Errorf("ideal %s, a sender of packets of %d bytes took %s", best, mtu, took)
		}
	}
}

// Packets whose frames do not fit into one slot keep no other radio from its slots.
func TestFramesOverSlotsOfARelay(t *testing.T) {
	for _, slot := range []time.Duration{60 * ms, 110 * ms, 210 * ms, 250 * ms} {
		n := chain(radio.MediumShared)
		n.Framing = &radio.Framing{FrameBytes: 50, HeaderBytes: 10}
		n.Access = &radio.Access{TDMA: &radio.TDMA{Slot: slot, Guard: 5 * ms}}
		for _, v := range n.Nodes {
			n.Access.TDMA.Owners = append(n.Access.TDMA.Owners, v.Role)
		}
		const packets = 30
		best, took := compute(t, n, 1, packets*100), eager(t, n, 1, packets)
		if best <= 0 || best > took || float64(took) > 1.2*float64(best) {
			t.Errorf("slots of %s: ideal %s, a sender took %s", slot, best, took)
		}
	}
}

// A relay that puts the bytes into packets of its own can send large ones where
// the channel is clean and small ones where it is not: no such pair beats the bound.
func TestRecutOnTheWay(t *testing.T) {
	n := chain(radio.MediumFullDuplex)
	n.MTUBytes = 1500
	n.Links[0].Channel = radio.Channel{Model: radio.ChannelHiddenMarkov, Hidden: &radio.HiddenMarkov{Transition: [][]float64{{1}}, BitErrorRates: []float64{1e-3}}}
	n.Links[0].Back = &radio.Channel{Model: radio.ChannelPerfect}
	n.Links[1].RateBitsPerSecond = 12_000
	f := flow(10_000)
	whole, err := Compute(n, 3, f, radiocontrol.IdealHorizon, nil)
	if err != nil {
		t.Fatal(err)
	}
	f.Recut = true
	recut, err := Compute(n, 3, f, radiocontrol.IdealHorizon, nil)
	if err != nil {
		t.Fatal(err)
	}
	lossy, err := Compute(n, 3, radiocontrol.Flow{From: radio.RoleClient, To: radio.RoleRelay, SizeBytes: 10_000}, radiocontrol.IdealHorizon, nil)
	if err != nil {
		t.Fatal(err)
	}
	if recut.Ideal != lossy.Ideal || recut.Ideal >= whole.Ideal || recut.Coded < recut.Ideal {
		t.Errorf("recut %+v, in packets that keep their sizes %+v, over the lossy hop alone %+v", recut, whole, lossy)
	}
	// Where only full-sized packets are tried, cutting anew changes nothing.
	n.Links[0].Channel = radio.Channel{Model: radio.ChannelPerfect}
	same, err := Compute(n, 3, f, radiocontrol.IdealHorizon, nil)
	f.Recut = false
	plain, err2 := Compute(n, 3, f, radiocontrol.IdealHorizon, nil)
	if err != nil || err2 != nil || same != plain {
		t.Errorf("recut %+v, else %+v (%v, %v)", same, plain, err, err2)
	}
}
