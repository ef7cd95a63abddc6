package link

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"linktrial/internal/radio"
)

// anyNetwork draws a network with any of the models and layers.
func anyNetwork(seed uint64) *radio.Network {
	r := rand.New(rand.NewPCG(seed, 77))
	n := chain([]radio.Medium{radio.MediumFullDuplex, radio.MediumHalfDuplex, radio.MediumShared}[r.IntN(3)])
	n.MTUBytes = 1000
	n.Turnaround = time.Duration(r.IntN(3)) * ms
	n.Queue = radio.Queue{Packets: r.IntN(8), Bytes: []int{0, 1000, 5000}[r.IntN(3)]}
	if r.IntN(2) == 0 {
		n.Framing = &radio.Framing{FrameBytes: 20 + r.IntN(200), HeaderBytes: r.IntN(20)}
		if r.IntN(2) == 0 {
			n.ARQ = &radio.ARQ{NACKTimerFrames: 1 + r.IntN(12), Persistence: r.IntN(5), InOrder: r.IntN(2) == 0}
		}
	}
	switch r.IntN(3) {
	case 0:
		n.FEC = &radio.FEC{Code: radio.FECConvolutional, CodeRate: 0.5, ResidualBER: 1e-5}
	case 1:
		n.FEC = &radio.FEC{Code: radio.FECReedSolomon, CodeRate: 223. / 255, BlockSymbols: 255, DataSymbols: 223, InterleavingDepth: r.IntN(5)}
	}
	if r.IntN(2) == 0 {
		n.Queue.Bytes = 8000
		n.Queue.RED = &radio.RED{MinBytes: 1000, MaxBytes: 4000, Weight: 0.1, MaxProbability: 0.2, Gentle: r.IntN(2) == 0, ECN: r.IntN(2) == 0}
	}
	if n.Medium == radio.MediumShared {
		switch r.IntN(3) {
		case 0:
			slot := 10 * time.Second
			if n.Framing != nil {
				slot = time.Second
			}
			n.Access = &radio.Access{TDMA: &radio.TDMA{Slot: slot, Guard: 5 * ms, Owners: []radio.Role{radio.RoleClient, radio.RoleRelay, radio.RoleServer, radio.RoleRelay}}}
		case 1:
			n.Access = &radio.Access{CSMA: &radio.CSMA{DIFS: time.Duration(r.IntN(4)) * ms, Slot: ms, WindowMin: r.IntN(16), WindowMax: 63, Retries: r.IntN(6)}}
		}
	}
	trace := &radio.Trace{Step: 3 * time.Second, Repeat: true, Loss: []float64{0, 0.2, 0.1}, RateBitsPerSecond: []float64{16000, 0, 4000}}
	if r.IntN(2) == 0 {
		trace.Delay = []time.Duration{10 * ms, 0, 200 * ms}
	}
	hidden := &radio.HiddenMarkov{Transition: [][]float64{{0.999, 0.001}, {0.1, 0.9}}, BitErrorRates: []float64{1e-5, 0.02}}
	channels := []radio.Channel{
		{Model: radio.ChannelPerfect},
		{Model: radio.ChannelUniform, Loss: 0.2},
		{Model: radio.ChannelMarkov, Alpha: 0.1, Beta: 0.3},
		{Model: radio.ChannelMarkov, Alpha: 0.1, Beta: 0.3, Slot: 100 * ms},
		{Model: radio.ChannelOnOff, Loss: 0.2, OnOff: &radio.OnOff{PeriodMin: 90 * ms, PeriodMax: 110 * ms, OnFactor: 1.5, OffFactor: 0.5}},
		{Model: radio.ChannelHiddenMarkov, Hidden: hidden},
		{Model: radio.ChannelOutages, Outages: &radio.Outages{Period: 6 * time.Second, Length: time.Second, Loss: 1}},
		{Model: radio.ChannelTrace, Trace: trace},
	}
	channels = append(channels, radio.Channel{Model: radio.ChannelCombined, Parts: []radio.Channel{channels[5], channels[6], channels[7]}})
	for i := range n.Links {
		k := &n.Links[i]
		k.RateBitsPerSecond = []float64{8000, 16000, 64000}[r.IntN(3)]
		k.Delay = time.Duration(r.IntN(100)) * ms
		k.Channel = channels[r.IntN(len(channels))]
		if r.IntN(2) == 0 {
			k.Back = &channels[r.IntN(len(channels))]
		}
	}
	return n
}

func describe(n *radio.Network) string {
	s := fmt.Sprintf("%s framing %+v ARQ %+v access %+v", n.Medium, n.Framing, n.ARQ, n.Access)
	for _, k := range n.Links {
		s += fmt.Sprintf(", %s/%s", k.Channel.Model, k.Toward(k.A).Model)
	}
	return s
}

// anyTraffic enters packets at random moments; it tells what it did.
func anyTraffic(seed uint64, packets int) []entry {
	r := rand.New(rand.NewPCG(seed, 5))
	var in []entry
	at := time.Duration(0)
	for range packets {
		at += time.Duration(r.ExpFloat64() * float64(500*ms))
		from := r.IntN(3)
		in = append(in, entry{at, from, (from + 1 + r.IntN(2)) % 3, 20 + r.IntN(980)})
	}
	return in
}

// Every packet is delivered, lost, dropped or inside; once each. With ARQ in
// order, packets of a hop come out in the order they went in.
func TestConservationWithAllLayers(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(60) {
		n := anyNetwork(seed)
		l := build(t, n, seed)
		perHop := map[Outcome]int64{}
		l.Observe(func(e Event) { perHop[e.Outcome]++ })
		state := map[uint32]string{}
		entered, last := 0, time.Duration(-1)
		check := func(now time.Duration) {
			t.Helper()
			for _, e := range l.Advance(now) {
				if state[e.Handle] != "inside" {
					t.Fatalf("seed %d: packet %d leaves, but is %q; %s", seed, e.Handle, state[e.Handle], describe(n))
				}
				if e.At < last || e.At > now {
					t.Fatalf("seed %d: exit at %s after one at %s, now %s", seed, e.At, last, now)
				}
				last, state[e.Handle] = e.At, "left"
				entered--
			}
			if entered != l.Inside() {
				t.Fatalf("seed %d: %d packets inside, expected %d; %s", seed, l.Inside(), entered, describe(n))
			}
		}
		in := anyTraffic(seed, 300)
		for i, e := range in {
			state[uint32(i)] = "refused"
			if l.Enter(e.at, e.from, e.to, e.bytes, uint32(i), i%2 == 0) {
				state[uint32(i)] = "inside"
				entered++
			}
			if i%3 == 0 {
				check(e.at)
			}
		}
		end := in[len(in)-1].at + 30*time.Hour
		check(end)
		if entered != 0 {
			t.Fatalf("seed %d: %d packets never leave; %s", seed, entered, describe(n))
		}
		var sent, lost, delivered, dropped int64
		var air time.Duration
		for i, h := range l.Hops() {
			if h.SentPackets != h.LostPackets+h.DeliveredPackets {
				t.Errorf("seed %d: counters do not add up: %+v; %s", seed, h, describe(n))
			}
			if n.Framing != nil && h.FramesSent < h.SentPackets || n.Framing == nil && h.FramesSent+h.FramesLost > 0 || h.FramesRetransmitted > 0 && n.ARQ == nil {
				t.Errorf("seed %d: frames %+v; %s", seed, h, describe(n))
			}
			sent, lost, delivered, dropped = sent+h.SentPackets, lost+h.LostPackets, delivered+h.DeliveredPackets, dropped+h.DroppedPackets
			air += h.Airtime
			seen["collisions"] += int(h.Collisions)
			seen["marks"] += int(h.MarkedPackets)
			seen["early"] += int(h.EarlyDroppedPackets)
			seen["repeats"] += int(h.FramesRetransmitted)
			if d := &l.directions[i]; d.arq != nil && (d.arq.frames.n > 0 || d.arq.packets.n > 0) {
				t.Errorf("seed %d: %d frames and %d packets are never forgotten; %s", seed, d.arq.frames.n, d.arq.packets.n, describe(n))
			}
		}
		if perHop[Delivered] != delivered || perHop[Lost] != lost || perHop[Dropped] != dropped {
			t.Errorf("seed %d: observed %v, counted %d delivered, %d lost, %d dropped; %s", seed, perHop, delivered, lost, dropped, describe(n))
		}
		if collisions := n.Access != nil && n.Access.CSMA != nil; n.Medium == radio.MediumShared && !collisions && air > end {
			t.Errorf("seed %d: %s on the air in %s", seed, air, end)
		}
	}
	for _, k := range []string{"collisions", "marks", "early", "repeats"} {
		if seen[k] == 0 {
			t.Errorf("no %s in all the networks", k)
		}
	}
}

// A caller that wakes late and in other steps gets the same moments.
func TestLateCallerWithAllLayers(t *testing.T) {
	for seed := range uint64(30) {
		n, in := anyNetwork(seed), anyTraffic(seed, 200)
		end := in[len(in)-1].at + 30*time.Hour
		want, wantRefused := play(t, build(t, n, 9), in)
		l := build(t, n, 9)
		var got []exit
		var refused []uint32
		for i, e := range in {
			if !l.Enter(e.at, e.from, e.to, e.bytes, uint32(i), false) {
				refused = append(refused, uint32(i))
			}
			if i%37 == 0 {
				for _, x := range l.Advance(e.at) {
					got = append(got, exit{x.At, x.Handle, x.Outcome})
				}
			}
		}
		for _, x := range l.Advance(end) {
			got = append(got, exit{x.At, x.Handle, x.Outcome})
		}
		if !slices.Equal(got, want) || !slices.Equal(refused, wantRefused) {
			t.Errorf("seed %d: a late caller gets other exits (%d, %d refused) than a punctual one (%d, %d refused); %s", seed, len(got), len(refused), len(want), len(wantRefused), describe(n))
		}
	}
}

func TestNoAllocationWithAllLayers(t *testing.T) {
	for seed := range uint64(25) {
		n := anyNetwork(seed)
		l := build(t, n, 1)
		now := time.Duration(0)
		step := func() {
			now += 700 * ms
			l.Enter(now, 0, 2, 300, 0, true)
			l.Enter(now, 2, 0, 40, 0, true)
			l.NextEvent()
			l.Advance(now)
		}
		for range 500 { // queues that fill up do so now
			step()
		}
		if n.Queue.Packets == 0 && n.Queue.Bytes == 0 {
			continue // may grow for ever
		}
		if a := testing.AllocsPerRun(200, step); a != 0 {
			t.Errorf("seed %d: %g allocations a packet; %s", seed, a, describe(n))
		}
	}
}

// RED holds the queue between its thresholds against a sender that heeds
// marks, and marks with the probability of its formula.
func TestREDProbability(t *testing.T) {
	r := &radio.RED{MinBytes: 1000, MaxBytes: 3000, Weight: 1, MaxProbability: 0.1, ECN: true}
	for _, tc := range []struct {
		waiting         int
		gentle, capable bool
		want            float64 // share that is marked or dropped
		is              verdict
	}{
		{500, false, true, 0, mark}, {1000, false, true, 0, mark}, {2000, false, true, 0.05, mark}, {2000, false, false, 0.05, discard},
		{2999, false, true, 0.1, mark}, {3000, false, true, 1, discard}, {4500, true, true, 0.55, mark}, {6000, true, true, 1, discard},
	} {
		r.Gentle = tc.gentle
		var s redState
		const n = 40_000
		hit := 0.0
		for range n {
			switch v := s.arrival(r, 3, 0, 0, tc.waiting, time.Second, tc.capable); v {
			case accept:
			case tc.is:
				hit++
			default:
				t.Fatalf("%+v: verdict %d", tc, v)
			}
		}
		// Gaps are uniform on 1 … 1/p − 1, 1/(2p) in the mean.
		want := math.Min(1, 2*tc.want)
		if math.Abs(hit/n-want) > 0.03*want {
			t.Errorf("%+v: %g, expected about %g", tc, hit/n, want)
		}
	}
	// The average sinks while the queue is empty.
	r.Weight, r.Gentle = 0.002, false
	s := redState{average: 2500}
	s.arrival(r, 3, 0, 1000*time.Second, 0, time.Second, true)
	if want := 2500 * math.Pow(0.998, 1000); math.Abs(s.average-want) > 1 {
		t.Errorf("average %g after a thousand packet times of silence, expected %g", s.average, want)
	}
}

func TestREDMarksOnlyTheCapable(t *testing.T) {
	n := pair(radio.MediumFullDuplex)
	n.Queue = radio.Queue{Bytes: 100_000, RED: &radio.RED{MinBytes: 500, MaxBytes: 50_000, Weight: 0.5, MaxProbability: 0.5, ECN: true}}
	l := build(t, n, 1)
	marked, refused := [2]int{}, [2]int{}
	for i := range 2000 {
		now := time.Duration(i) * 95 * ms
		if !l.Enter(now, 0, 1, 100, uint32(i), i%2 == 0) {
			refused[i%2]++
		}
		for _, e := range l.Advance(now) {
			if e.Marked {
				marked[e.Handle%2]++
			}
		}
	}
	h := l.Hops()[0]
	if marked[0] < 20 || marked[1] != 0 || refused[0] != 0 || refused[1] < 20 || h.MarkedPackets < int64(marked[0]) || h.EarlyDroppedPackets != int64(refused[1]) {
		t.Errorf("capable: %d marked, %d refused; others: %d, %d; counted %+v", marked[0], refused[0], marked[1], refused[1], h)
	}
}

// Saturated radios on CSMA share the medium evenly, and what collides agrees
// with Bianchi's fixed point (IEEE JSAC 18(3), 2000) for two stations.
func TestCSMACollisions(t *testing.T) {
	n := pair(radio.MediumShared)
	n.Links[0].Delay = 0
	const w, m = 16, 2 // windows of 16, 32 and 64 values
	n.Access = &radio.Access{CSMA: &radio.CSMA{DIFS: ms, Slot: ms, WindowMin: w - 1, WindowMax: 4*w - 1, Retries: 1000}}
	n.Queue = radio.Queue{Packets: 4}
	l := build(t, n, 3)
	for now := time.Duration(0); now < 4000*time.Second; now += 50 * ms {
		l.Enter(now, 0, 1, 100, 0, false)
		l.Enter(now, 1, 0, 100, 0, false)
		l.Advance(now)
	}
	a, b := l.Hops()[0], l.Hops()[1]
	if share := float64(a.DeliveredPackets) / float64(a.DeliveredPackets+b.DeliveredPackets); math.Abs(share-0.5) > 0.02 {
		t.Errorf("one of two radios gets %g of the medium", share)
	}
	p := 0.1
	for range 200 { // p = τ for two stations
		tau := 2 * (1 - 2*p) / ((1-2*p)*(w+1) + p*w*(1-math.Pow(2*p, m)))
		p = (p + tau) / 2
	}
	got := float64(a.Collisions) / float64(a.Collisions+a.SentPackets)
	// In the model, unlike here, a radio counts one slot during the other's transmission.
	if math.Abs(got-p) > 0.25*p {
		t.Errorf("%g of the transmissions collide, Bianchi's model says %g", got, p)
	}
	if l.BusyShare() >= 1 || l.BusyShare() < 0.85 {
		t.Errorf("busy share %g", l.BusyShare())
	}
}
