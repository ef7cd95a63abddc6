package executor

import (
	"math"
	"testing"
	"time"

	"linktrial/internal/radio"
)

// TestCompleteKnowledge holds what a treatment is told against figures made by hand.
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
		rate     float64 // bit/s
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
		if math.Abs(l.RateBitsPerSecond/c.rate-1) > 1e-8 || math.Abs(l.LossShare-c.loss) > 1e-9 {
			t.Errorf("%s: %.4f bit/s, loss %g, expected %.4f and %g", c.name, l.RateBitsPerSecond, l.LossShare, c.rate, c.loss)
		}
		if c.rtt > 0 && math.Abs(l.RoundTripMS-c.rtt) > 1e-3 {
			t.Errorf("%s: round trip %g ms, expected %g", c.name, l.RoundTripMS, c.rtt)
		}
	}
	if l := linkKnowledge(&radio.Network{MTUBytes: 1500, Links: two[:1]}, client, server); l != nil {
		t.Errorf("there is no way, and %+v is known of it", l)
	}
}
