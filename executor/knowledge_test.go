package executor

import (
	"math"
	"testing"
	"time"

	"linktrial/internal/radio"
)

// TestCompleteKnowledge holds what a treatment is told against values worked out by hand.
func TestCompleteKnowledge(t *testing.T) {
	const (
		client, relay, server = radio.RoleClient, radio.RoleRelay, radio.RoleServer
		rs                    = 223.0 / 255
	)
	uniform := func(loss float64) radio.Channel { return radio.Channel{Model: radio.ChannelUniform, Loss: loss} }
	perfect := radio.Channel{Model: radio.ChannelPerfect}
	worse := uniform(0.5)
	one := func(c radio.Channel) []radio.Link {
		return []radio.Link{{A: client, B: server, RateBitsPerSecond: 1e6, Delay: time.Second, Channel: c}}
	}
	two := []radio.Link{
		{A: relay, B: client, RateBitsPerSecond: 1e6, Channel: uniform(0.1), Back: &worse}, // towards the client, towards the relay
		{A: relay, B: server, RateBitsPerSecond: 3e6, Channel: uniform(0.2)},
	}
	fec := &radio.FEC{Code: radio.FECReedSolomon, CodeRate: rs, BlockSymbols: 255, DataSymbols: 223}
	for _, c := range []struct {
		name     string
		n        radio.Network
		from, to radio.Role
		channel  float64 // bit/s
		loss     float64
		rtt      float64 // ms; 0: not held
	}{
		// 2 s of delay; 1540 bytes of 8 bits at 223/255 Mbit/s: 14.0878 ms.
		{"code", radio.Network{MTUBytes: 1500, Medium: radio.MediumFullDuplex, FEC: fec, Links: one(radio.Channel{Model: radio.ChannelMarkov, Alpha: 0.001, Beta: 0.01})},
			client, server, 874509.804, 1.0 / 11, 2014.08789},
		{"narrowest hop", radio.Network{MTUBytes: 1500, Medium: radio.MediumFullDuplex, Links: two}, client, server, 1e6, 1 - 0.5*0.8, 0},
		{"the way back", radio.Network{MTUBytes: 1500, Medium: radio.MediumHalfDuplex, Links: two}, server, client, 1e6, 1 - 0.8*0.9, 0},
		{"shared", radio.Network{MTUBytes: 1500, Medium: radio.MediumShared, Links: two}, client, server, 750e3, 0.6, 0}, // 1/(1/1+1/3) = 3/4
		{"shared, code", radio.Network{MTUBytes: 1500, Medium: radio.MediumShared, FEC: fec, Links: two}, client, server, 750e3 * rs, 0.6, 0},
		{"shared, one hop of it", radio.Network{MTUBytes: 1500, Medium: radio.MediumShared, Links: two}, relay, server, 3e6, 0.2, 0},
		// 50-byte frames with 44 of a packet: 440 bytes take 10 frames, each given up with 0.1^3.
		{"repeat", radio.Network{MTUBytes: 440, Medium: radio.MediumFullDuplex, Framing: &radio.Framing{FrameBytes: 50, HeaderBytes: 6}, ARQ: &radio.ARQ{Persistence: 2}, Links: one(uniform(0.1))},
			client, server, 1e6, 1 - math.Pow(0.999, 10), 0},
		{"bit errors", radio.Network{MTUBytes: 440, Medium: radio.MediumFullDuplex, Links: one(radio.Channel{Model: radio.ChannelHiddenMarkov,
			Hidden: &radio.HiddenMarkov{Transition: [][]float64{{1}}, BitErrorRates: []float64{1e-4}}})},
			client, server, 1e6, 1 - math.Pow(1-1e-4, 440*8), 0},
		{"perfect", radio.Network{MTUBytes: 1500, Medium: radio.MediumShared, Links: one(perfect)}, client, server, 1e6, 0, 0},
	} {
		l := linkKnowledge(&c.n, c.from, c.to)
		if l == nil {
			t.Errorf("%s: nothing is known", c.name)
			continue
		}
		if math.Abs(l.ChannelRateBitsPerSecond/c.channel-1) > 1e-8 || math.Abs(l.LossShare-c.loss) > 1e-9 {
			t.Errorf("%s: %.4f bit/s, loss %g, expected %.4f and %g", c.name, l.ChannelRateBitsPerSecond, l.LossShare, c.channel, c.loss)
		}
		if c.n.FrameOverheadBytes == 0 && c.n.Framing == nil && math.Abs(l.RateBitsPerSecond/c.channel-1) > 1e-8 {
			t.Errorf("%s: carries %.4f bit/s of packets, expected all of %.4f", c.name, l.RateBitsPerSecond, c.channel)
		}
		if c.rtt > 0 && math.Abs(l.RoundTripMS-c.rtt) > 1e-3 {
			t.Errorf("%s: round trip %g ms, expected %g", c.name, l.RoundTripMS, c.rtt)
		}
	}
	if l := linkKnowledge(&radio.Network{MTUBytes: 1500, Links: two[:1]}, client, server); l != nil {
		t.Errorf("there is no way, and %+v is known of it", l)
	}
}

// TestPacketRate holds what a path carries of full packets against values worked out by hand.
func TestPacketRate(t *testing.T) {
	const client, relay, server = radio.RoleClient, radio.RoleRelay, radio.RoleServer
	link := func(a, b radio.Role, loss float64) radio.Link {
		return radio.Link{A: a, B: b, RateBitsPerSecond: 1e6, Channel: radio.Channel{Model: radio.ChannelUniform, Loss: loss}}
	}
	one, two := []radio.Link{link(client, server, 0)}, []radio.Link{link(client, relay, 0), link(relay, server, 0)}
	frames := &radio.Framing{FrameBytes: 50, HeaderBytes: 6}
	for name, c := range map[string]struct {
		n    radio.Network
		want float64 // bit/s
	}{
		// 1000 bytes and 250 of overhead: 10 ms on the air for 8000 bits.
		"overhead":       {radio.Network{MTUBytes: 1000, FrameOverheadBytes: 250, Medium: radio.MediumFullDuplex, Links: one, Turnaround: time.Second}, 800e3},
		"two hops apart": {radio.Network{MTUBytes: 1000, FrameOverheadBytes: 250, Medium: radio.MediumHalfDuplex, Links: two}, 800e3},
		"two hops":       {radio.Network{MTUBytes: 1000, FrameOverheadBytes: 250, Medium: radio.MediumShared, Links: two}, 400e3},
		// The medium turns twice a packet: 2 (10 + 2.5) ms.
		"turnaround":         {radio.Network{MTUBytes: 1000, FrameOverheadBytes: 250, Medium: radio.MediumShared, Links: two, Turnaround: 2500 * time.Microsecond}, 320e3},
		"nobody to turn for": {radio.Network{MTUBytes: 1000, FrameOverheadBytes: 250, Medium: radio.MediumShared, Links: one, Turnaround: 2500 * time.Microsecond}, 800e3},
		// 440 bytes take 10 frames, 500 bytes: 4 ms for 3520 bits.
		"frames": {radio.Network{MTUBytes: 440, Medium: radio.MediumFullDuplex, Framing: frames, Links: one}, 880e3},
		// Each frame is sent 1 + 0.5 + 0.25 times in the mean.
		"repeats": {radio.Network{MTUBytes: 440, Medium: radio.MediumFullDuplex, Framing: frames, ARQ: &radio.ARQ{Persistence: 2}, Links: []radio.Link{link(client, server, 0.5)}}, 880e3 / 1.75},
		"code":    {radio.Network{MTUBytes: 1000, FrameOverheadBytes: 250, Medium: radio.MediumFullDuplex, FEC: &radio.FEC{CodeRate: 0.5}, Links: one}, 400e3},
		// Two of three slots of 25 ms less 4 ms, two packets in each: 4 in 75 ms.
		"time slots": {radio.Network{MTUBytes: 1000, FrameOverheadBytes: 250, Medium: radio.MediumShared, Links: one,
			Access: &radio.Access{TDMA: &radio.TDMA{Slot: 25 * time.Millisecond, Guard: 4 * time.Millisecond, Owners: []radio.Role{client, client, server}}}}, 32e3 / 0.075},
		// The relay has one slot of four, the narrowest hop: 2 packets in 100 ms.
		"time slots, two hops": {radio.Network{MTUBytes: 1000, FrameOverheadBytes: 250, Medium: radio.MediumShared, Links: two,
			Access: &radio.Access{TDMA: &radio.TDMA{Slot: 25 * time.Millisecond, Guard: 4 * time.Millisecond, Owners: []radio.Role{client, client, relay, server}}}}, 160e3},
		// 10 ms on the air, 1 ms of idle medium, 8 slots of 0.5 ms in the mean.
		"carrier sense": {radio.Network{MTUBytes: 1000, FrameOverheadBytes: 250, Medium: radio.MediumShared, Links: one,
			Access: &radio.Access{CSMA: &radio.CSMA{DIFS: time.Millisecond, Slot: 500 * time.Microsecond, WindowMin: 16}}}, 8000 / 0.015},
	} {
		l := linkKnowledge(&c.n, client, server)
		if l == nil || math.Abs(l.RateBitsPerSecond/c.want-1) > 1e-8 {
			t.Errorf("%s: %+v, expected %.4f bit/s", name, l, c.want)
		}
	}
}
