package ideal

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"linktrial/emulator/channel"
	"linktrial/emulator/link"
	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol"
)

func TestCodedByHand(t *testing.T) {
	with := func(n *radio.Network, change func(*radio.Network)) *radio.Network {
		change(n)
		return n
	}
	full := func() *radio.Network { return pair(radio.MediumFullDuplex) }
	forth := func(n *radio.Network, i int, c radio.Channel) {
		back := n.Links[i].Channel
		n.Links[i].Back, n.Links[i].Channel = &back, c
	}
	rates := func(step time.Duration, rate ...float64) radio.Channel {
		return radio.Channel{Model: radio.ChannelTrace, Trace: &radio.Trace{Step: step, Loss: make([]float64, len(rate)), RateBitsPerSecond: rate}}
	}
	frames := &radio.Framing{FrameBytes: 50, HeaderBytes: 10} // a packet of 128 bytes: 50, 50, 50, 18; the acknowledgement 39
	for _, tc := range []struct {
		name  string
		n     *radio.Network
		bytes int64
		want  time.Duration
	}{
		{"nothing: the acknowledgement alone", full(), 0, 79 * ms},
		{"one byte more than a packet", full(), 101, (128+29+50)*ms + 79*ms},
		// From 0, 128 (lost); again from 256.
		{"a lost packet costs its airtime", with(full(), func(n *radio.Network) { forth(n, 0, outages(130*ms, 140*ms)) }), 200, (3*128+50)*ms + 79*ms},
		// Lost: 5 packets from 128 on, up to the one from 640 that the end of the outage meets.
		{"goes on during an outage", with(full(), func(n *radio.Network) { forth(n, 0, outages(130*ms, 645*ms)) }), 200, (768+128+50)*ms + 79*ms},
		{"a short last packet costs little when it is lost", with(full(), func(n *radio.Network) { forth(n, 0, outages(130*ms, 140*ms)) }), 101, (128+2*29+50)*ms + 79*ms},
		{"does not wait for a better rate", with(full(), func(n *radio.Network) { forth(n, 0, rates(100*ms, 800, 16000)) }), 100, (1280+50)*ms + 79*ms},
		{"no rate at first", with(full(), func(n *radio.Network) { forth(n, 0, rates(100*ms, 0, 8000)) }), 100, (100+128+50)*ms + 79*ms},
		{"dead channel", with(full(), func(n *radio.Network) {
			n.Links[0].Channel = radio.Channel{Model: radio.ChannelUniform, Loss: 1}
		}), 100, 0},
		{"a lost frame costs its packet", with(full(), func(n *radio.Network) { n.Framing = frames; forth(n, 0, outages(110*ms, 120*ms)) }), 100, (2*168+50)*ms + 89*ms},
		{"with ARQ itself", with(full(), func(n *radio.Network) {
			n.Framing, n.ARQ = frames, &radio.ARQ{NACKTimerFrames: 5, Persistence: 3, InOrder: true}
			forth(n, 0, outages(110*ms, 120*ms))
		}), 100, (168+50+50)*ms + 89*ms},
		{"relay: each hop repeats by itself", with(chain(radio.MediumFullDuplex), func(n *radio.Network) { forth(n, 1, outages(0, 200*ms)) }), 200,
			// There at 178 and 306; lost from 178, then from 306 and 434.
			(306+128+128+50)*ms + 2*79*ms},
		{"relay, shared: a loss at the relay", with(chain(radio.MediumShared), func(n *radio.Network) { forth(n, 1, outages(0, 260*ms)) }), 200,
			// 2·128 client; lost from 256, then from 384 and 512.
			(512+128+50)*ms + 2*79*ms},
		{"relay, shared: the relay sends while the source cannot", with(chain(radio.MediumShared), func(n *radio.Network) {
			n.Links[0].Delay = 0
			forth(n, 0, outages(100*ms, 500*ms))
		}), 300,
			// Lost from 0, 128, 256, 384; then 3·128 from 512 and 3·128. Nothing to send meanwhile.
			(512+6*128+50)*ms + (79+29)*ms},
		{"relay, shared: the relay sends what it has", with(chain(radio.MediumShared), func(n *radio.Network) {
			n.Links[0].Delay = 0
			forth(n, 0, outages(256*ms, 500*ms))
		}), 300,
			// The client 0, 128; the relay 256, 384; the client 512; the relay 640.
			(640+128+50)*ms + (79+29)*ms},
	} {
		if got := times(t, tc.n, 1, tc.bytes); got.Coded != tc.want || got.Ideal > got.Coded {
			t.Errorf("%s: %s (Ideal %s), expected %s", tc.name, got.Coded, got.Ideal, tc.want)
		}
	}
}

// newSearch is a computation with full-sized packets.
func newSearch(n *radio.Network, seed uint64, coded bool) *search {
	return &search{n: n, seed: seed, route: n.Route(radio.RoleClient, radio.RoleServer), size: n.MTUBytes,
		horizon: radiocontrol.IdealHorizon, cancelled: func() bool { return false }, coded: coded}
}

// Ideal's own schedule is never slower, but where it is not exact: on a shared
// medium with a relay, and for frames without ARQ. There Compute takes the other.
func TestIdealIsNeverSlowerThanCoded(t *testing.T) {
	mended := 0
	for seed := range uint64(900) {
		n := layered(seed)
		bytes := int64(seed%31) * 93
		got := times(t, n, seed, bytes)
		if got.Coded == 0 || got.Ideal > got.Coded {
			t.Errorf("seed %d, %d bytes: Ideal %s, coded %s", seed, bytes, got.Ideal, got.Coded)
		}
		own, err := search{n: n, seed: seed, route: n.Route(radio.RoleClient, radio.RoleServer), horizon: radiocontrol.IdealHorizon, cancelled: func() bool { return false }}.best(bytes)
		if err != nil {
			t.Fatal(err)
		}
		if own > got.Coded {
			mended++
			if (n.Medium != radio.MediumShared || len(n.Links) == 1) && (n.Framing == nil || n.ARQ != nil) {
				t.Errorf("seed %d, %d bytes over %d hops, %s: Ideal's schedule takes %s, coded %s", seed, bytes, len(n.Links), n.Medium, own, got.Coded)
			}
		}
	}
	t.Logf("%d of 900 with Ideal's schedule slower", mended)
}

// Where nothing is lost and nothing changes, there is no future to know.
func TestCodedIsIdealOnAPerfectChannel(t *testing.T) {
	for seed := range uint64(300) {
		n := layered(seed)
		for i := range n.Links {
			n.Links[i].Channel, n.Links[i].Back = radio.Channel{Model: radio.ChannelPerfect}, nil
		}
		if n.Access != nil && n.Access.TDMA != nil && len(n.Links) > 1 {
			continue // which hop's slot a packet waits for is a choice
		}
		if got := times(t, n, seed, int64(seed)*17); got.Ideal != got.Coded {
			t.Errorf("seed %d: Ideal %s, coded %s on %s", seed, got.Ideal, got.Coded, n.Medium)
		}
	}
}

// A saturated radio of the emulator carries packets back to back, so the
// moment at which it has delivered enough of them is the coded bound's.
func TestCodedIsASaturatedRadio(t *testing.T) {
	const packets = 25
	for seed := range uint64(400) {
		n := layered(seed)
		medium := n.Medium
		*n = radio.Network{MTUBytes: n.MTUBytes, Medium: medium, Turnaround: n.Turnaround, Framing: n.Framing, FEC: n.FEC, Access: n.Access,
			Nodes: pair(medium).Nodes, Links: []radio.Link{n.Links[0]}}
		n.Links[0].B = radio.RoleServer
		if a := n.Access; a != nil && a.CSMA != nil {
			a.CSMA.WindowMin = 0 // the emulator draws the count, the bound has none
		} else if a != nil {
			a.TDMA.Owners = []radio.Role{radio.RoleClient, radio.RoleServer}
		}
		s := newSearch(n, seed, true)
		got, err := s.time(packets * 100)
		if err != nil {
			t.Fatal(err)
		}
		want, err := s.acknowledge(saturated(t, n, seed, packets))
		if err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("seed %d: %s, the emulator's radio %s: %s framing %+v access %+v FEC %v %+v", seed, got, want, n.Medium, n.Framing, n.Access, n.FEC, n.Links[0].Channel)
		}
	}
}

// saturated is when enough packets have arrived, and when the last of them had
// left the air.
func saturated(t *testing.T, n *radio.Network, seed uint64, packets int) (time.Duration, []time.Duration) {
	l, err := link.New(n, seed)
	if err != nil {
		t.Fatal(err)
	}
	inside, delivered, now := 0, 0, time.Duration(0)
	var airtimes []time.Duration // at which a transmission of a packet that gets through began
	l.Observe(func(e link.Event) {
		if e.Outcome == link.Delivered {
			airtimes = append(airtimes, e.At)
		}
	})
	for {
		for ; inside < 40; inside++ { // more than are on their way at once
			l.Enter(now, 0, 1, n.MTUBytes, 0, false)
		}
		next, ok := l.NextEvent()
		if !ok {
			t.Fatal("nothing more happens")
		}
		now = next
		for _, e := range l.Advance(now) {
			inside--
			if e.Outcome != link.Delivered {
				continue
			}
			if delivered++; delivered == packets {
				line, err := link.NewLine(n, &n.Links[0], radio.RoleClient, radio.RoleServer, seed)
				if err != nil {
					t.Fatal(err)
				}
				return e.At, []time.Duration{endOnAir(n, line, airtimes[packets-1])}
			}
		}
	}
}

// endOnAir is when a packet that began at a moment has left the air.
func endOnAir(n *radio.Network, line *link.Line, start time.Duration) time.Duration {
	units, each, last := line.Units(n.MTUBytes)
	slots := link.NewSlots(n, radio.RoleClient)
	at := start
	for i := range units {
		size := each
		if i == units-1 {
			size = last
		}
		c, until := line.Conditions(at)
		for c.Rate == 0 {
			at = until
			c, until = line.Conditions(at)
		}
		air := line.Air(size, c.Rate)
		at = slots.Fit(at, air) + air
	}
	return at
}

// bruteCoded walks over a chain of full-duplex or shared hops, millisecond by
// millisecond, and asks the channels themselves.
func bruteCoded(t *testing.T, n *radio.Network, seed uint64, sizes []int) time.Duration {
	t.Helper()
	hops := len(n.Links)
	lines := make([]channel.Process, hops)
	for i := range lines {
		line, err := link.NewLine(n, &n.Links[i], n.Nodes[i].Role, n.Nodes[i+1].Role, seed)
		if err != nil {
			t.Fatal(err)
		}
		lines[i] = line.Process
	}
	holds := make([][]time.Duration, hops+1) // arrivals of whole packets at each node
	holds[0] = make([]time.Duration, len(sizes))
	until := make([]time.Duration, hops)
	lost := make([]bool, hops)
	busy := make([]bool, hops)
	last := -1
	for now := time.Duration(0); ; now += ms {
		for i := range hops {
			if busy[i] && until[i] == now {
				if busy[i] = false; !lost[i] {
					holds[i+1] = append(holds[i+1], now+n.Links[i].Delay)
				}
			}
		}
		if len(holds[hops]) == len(sizes) {
			return holds[hops][len(sizes)-1]
		}
		for i := range hops {
			next := len(holds[i+1])
			if busy[i] || next >= len(sizes) || next >= len(holds[i]) || holds[i][next] > now {
				continue
			}
			if n.Medium == radio.MediumShared {
				blocked := false
				for j := range hops {
					blocked = blocked || busy[j] || last == j && j != i && now < until[j]+n.Turnaround
				}
				if blocked {
					continue
				}
				last = i
			}
			busy[i], until[i] = true, now+time.Duration(sizes[next])*ms
			lost[i] = lines[i].Lost(now, until[i])
		}
	}
}

func TestCodedAgainstBruteForce(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 5))
		n := chain([]radio.Medium{radio.MediumFullDuplex, radio.MediumShared}[seed%2])
		if seed%3 == 0 {
			n = pair(radio.MediumFullDuplex)
		}
		n.Turnaround = time.Duration(r.IntN(2)*7) * ms
		for i := range n.Links {
			k := &n.Links[i]
			k.Delay = time.Duration(r.IntN(300)) * ms
			// A state never loses more than half, so no hop gives way to another.
			k.Channel = radio.Channel{Model: radio.ChannelGilbertElliott, GoodToBad: 0.1 * r.Float64(), BadToGood: 0.1 + 0.5*r.Float64(),
				LossGood: 0.3 * r.Float64(), LossBad: 0.5 * r.Float64(), Slot: time.Duration(r.IntN(3)) * 100 * ms}
			if n.Medium == radio.MediumFullDuplex && r.IntN(2) == 0 {
				k.Channel.LossGood, k.Channel.LossBad = 0, 1
			}
			k.Back = &radio.Channel{Model: radio.ChannelPerfect}
		}
		sizes := []int{}
		bytes := 1 + r.IntN(1500)
		for left := bytes; left > 0; left -= 100 {
			sizes = append(sizes, min(100, left)+headerBytes)
		}
		want := bruteCoded(t, n, seed, sizes)
		for i := len(n.Links) - 1; i >= 0; i-- {
			at := 29*ms + n.Links[i].Delay
			if n.Medium == radio.MediumShared && i == len(n.Links)-1 {
				at += max(0, n.Turnaround-n.Links[i].Delay)
			} else if n.Medium == radio.MediumShared {
				at += max(0, n.Turnaround-n.Links[i+1].Delay)
			}
			want += at
		}
		if got := times(t, n, seed, int64(bytes)).Coded; got != want {
			t.Errorf("seed %d, %d hops, %s, %d bytes: %s, expected %s", seed, len(n.Links), n.Medium, bytes, got, want)
		}
	}
}

// Losses that are independent of each other cost 1/(1 − p) in the mean.
func TestCodedPaysForIndependentLosses(t *testing.T) {
	const packets, seeds = 200, 200
	for _, p := range []float64{0.01, 0.1, 0.3, 0.5} {
		for _, n := range []*radio.Network{pair(radio.MediumFullDuplex), chain(radio.MediumShared)} {
			var coded float64
			for i := range n.Links {
				n.Links[i].Channel, n.Links[i].Back = radio.Channel{Model: radio.ChannelUniform, Loss: p}, &radio.Channel{Model: radio.ChannelPerfect}
			}
			for seed := range uint64(seeds) {
				got, err := newSearch(n, seed, true).time(packets * 100)
				if err != nil {
					t.Fatal(err)
				}
				once := time.Duration(len(n.Links)) * packets * 128 * ms
				rest := 50*ms + time.Duration(len(n.Links))*79*ms
				coded += float64(got-rest) / float64(once)
			}
			coded /= seeds
			// The number of tries of one packet has the variance p/(1 − p)².
			deviation := math.Sqrt(p/float64(seeds*packets*len(n.Links))) / (1 - p)
			if want := 1 / (1 - p); math.Abs(coded-want) > 4*deviation {
				t.Errorf("loss %g over %d hops: %.4f of the time without loss, expected %.4f ± %.4f", p, len(n.Links), coded, want, 4*deviation)
			}
		}
	}
}

// Whole slots that are lost are lost to both.
func TestCodedIsNearIdealOnChannelsWithMemory(t *testing.T) {
	var ideal, coded time.Duration
	for seed := range uint64(50) {
		n := pair(radio.MediumFullDuplex)
		n.MTUBytes = 1500
		n.Links[0].RateBitsPerSecond = 2e6
		n.Links[0].Channel = radio.Channel{Model: radio.ChannelGilbertElliott, GoodToBad: 0.01, BadToGood: 0.1, LossBad: 1, Slot: 100 * ms}
		got := times(t, n, seed, 1<<20)
		ideal, coded = ideal+got.Ideal, coded+got.Coded
	}
	if share := float64(ideal) / float64(coded); share < 0.99 || share > 1 {
		t.Errorf("Ideal takes %.4f of the coded bound's time", share)
	}
}

// Who waits out an opportunity in which a full-sized packet would be lost has
// spent as much time as who sends it.
func TestCodedIsIdealWherePacketsAreLostWhole(t *testing.T) {
	for seed := range uint64(50) {
		n := pair(radio.MediumFullDuplex)
		n.Links[0].Channel = radio.Channel{Model: radio.ChannelUniform, Loss: 0.01 * float64(seed)}
		if got := times(t, n, seed, 5000); got.Ideal != got.Coded {
			t.Errorf("loss %g: Ideal %s, coded %s", n.Links[0].Channel.Loss, got.Ideal, got.Coded)
		}
	}
}

// Attempts that are certain to be lost are counted in one step, and the
// result is the same.
func TestCodedSkips(t *testing.T) {
	dead := radio.Channel{Model: radio.ChannelCombined, Parts: []radio.Channel{
		{Model: radio.ChannelGilbertElliott, GoodToBad: 0.05, BadToGood: 0.002, LossGood: 0.2, LossBad: 1, Slot: 70 * ms},
		{Model: radio.ChannelTrace, Trace: &radio.Trace{Step: 40 * time.Second, Repeat: true, Loss: make([]float64, 3), RateBitsPerSecond: []float64{8000, 64000, 0}}},
	}}
	for seed := range uint64(60) {
		n := pair(radio.MediumFullDuplex)
		if seed%2 == 0 {
			n.Framing = &radio.Framing{FrameBytes: 50, HeaderBytes: 3}
		}
		n.Links[0].Channel = dead
		s := newSearch(n, seed, true)
		got, err := s.time(1705)
		if err != nil {
			t.Fatal(err)
		}
		h, err := s.hop(0, false)
		if err != nil {
			t.Fatal(err)
		}
		at, tries := placement{}, 0
		for p := range s.packets {
			for through := false; !through; tries++ {
				if at, through, err = h.attempt(s.bytes(p), at.end, s.horizon, false); err != nil {
					t.Fatal(err)
				}
			}
		}
		want, err := s.acknowledge(at.arrives, []time.Duration{at.end})
		if err != nil || got != want {
			t.Errorf("seed %d: %s, one by one %s (%d tries, %v)", seed, got, want, tries, err)
		}
	}
	n := pair(radio.MediumFullDuplex)
	n.MTUBytes, n.Links[0].RateBitsPerSecond = 1500, 1e9
	n.Links[0].Channel = outages(0, 20*time.Hour)
	n.Links[0].Back = &radio.Channel{Model: radio.ChannelPerfect}
	if got := times(t, n, 1, 1); got.Coded < 20*time.Hour || got.Coded > 20*time.Hour+time.Second {
		t.Errorf("20 hours of outage, packets of 232 ns: %s", got.Coded)
	}
}
