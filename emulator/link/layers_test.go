package link

import (
	"slices"
	"testing"
	"time"

	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol"
)

// outages is a channel that loses what overlaps the given moments.
func outages(at ...time.Duration) radio.Channel {
	o := &radio.Outages{Loss: 1}
	for _, t := range at {
		o.Times = append(o.Times, radio.Outage{Start: t, End: t + 1})
	}
	return radio.Channel{Model: radio.ChannelOutages, Outages: o}
}

func framed(n *radio.Network) *radio.Network {
	n.Framing = &radio.Framing{FrameBytes: 50, HeaderBytes: 10}
	return n
}

func withARQ(n *radio.Network, timer, persistence int, inOrder bool) *radio.Network {
	framed(n).ARQ = &radio.ARQ{NACKTimerFrames: timer, Persistence: persistence, InOrder: inOrder}
	return n
}

// lossy puts a channel on the way from A to B of the first link; back is clean.
func lossy(n *radio.Network, c radio.Channel) *radio.Network {
	back := n.Links[0].Channel
	n.Links[0].Back, n.Links[0].Channel = &back, c
	return n
}

func TestLayersByHand(t *testing.T) {
	full := radio.MediumFullDuplex
	rates := func(step time.Duration, rate ...float64) radio.Channel {
		return radio.Channel{Model: radio.ChannelTrace, Trace: &radio.Trace{Step: step, Loss: make([]float64, len(rate)), RateBitsPerSecond: rate}}
	}
	shared := func(n *radio.Network, a radio.Access) *radio.Network {
		n.Access, n.MTUBytes = &a, 100
		return n
	}
	tdma := func(owners ...radio.Role) radio.Access {
		return radio.Access{TDMA: &radio.TDMA{Slot: 150 * ms, Guard: 20 * ms, Owners: owners}}
	}
	const C, R, S = radio.RoleClient, radio.RoleRelay, radio.RoleServer
	for _, tc := range []struct {
		name string
		n    *radio.Network
		in   []entry
		want []exit
		hop  radiocontrol.Hop // what is not 0 here must be in hop 0
	}{
		{"frames: headers cost airtime, the last frame is short", framed(pair(full)),
			[]entry{{0, 0, 1, 90}}, // 40 + 40 + 10 bytes in frames of 50, 50, 20
			[]exit{{170 * ms, 0, Delivered}}, radiocontrol.Hop{FramesSent: 3, Airtime: 120 * ms}},
		{"a packet is lost with one of its frames", lossy(framed(pair(full)), outages(60*ms)),
			[]entry{{0, 0, 1, 90}, {0, 0, 1, 30}},
			[]exit{{120 * ms, 0, Lost}, {210 * ms, 1, Delivered}}, radiocontrol.Hop{FramesSent: 4, FramesLost: 1, LostPackets: 1, DeliveredPackets: 1}},
		{"the code takes its share of the rate", func() *radio.Network {
			n := pair(full)
			n.FEC = &radio.FEC{Code: radio.FECConvolutional, CodeRate: 0.5}
			return n
		}(), []entry{{0, 0, 1, 100}}, []exit{{250 * ms, 0, Delivered}}, radiocontrol.Hop{Airtime: 200 * ms}},

		{"ARQ: nothing to repair", withARQ(pair(full), 2, 3, true),
			[]entry{{0, 0, 1, 80}}, []exit{{150 * ms, 0, Delivered}}, radiocontrol.Hop{FramesSent: 2}},
		// Missed at 150; NACK 350–360, there at 410; again 410–460.
		{"ARQ: a frame is repeated", lossy(withARQ(pair(full), 4, 3, true), outages(60*ms)),
			[]entry{{0, 0, 1, 80}}, []exit{{510 * ms, 0, Delivered}}, radiocontrol.Hop{FramesSent: 3, FramesLost: 1, FramesRetransmitted: 1}},
		{"ARQ: what follows waits for it", lossy(withARQ(pair(full), 4, 3, true), outages(60*ms)),
			[]entry{{0, 0, 1, 80}, {0, 0, 1, 40}, {600 * ms, 0, 1, 40}}, []exit{{510 * ms, 0, Delivered}, {510 * ms, 1, Delivered}, {700 * ms, 2, Delivered}}, radiocontrol.Hop{FramesSent: 5}},
		{"ARQ: or does not", lossy(withARQ(pair(full), 4, 3, false), outages(60*ms)),
			[]entry{{0, 0, 1, 80}, {0, 0, 1, 40}}, []exit{{200 * ms, 1, Delivered}, {510 * ms, 0, Delivered}}, radiocontrol.Hop{FramesSent: 4}},
		// A new frame is on the air when the NACK comes; the repeated one goes before the rest.
		{"ARQ: before any new frame", lossy(withARQ(pair(full), 4, 3, true), outages(60*ms)),
			[]entry{{0, 0, 1, 80}, {390 * ms, 0, 1, 80}}, []exit{{540 * ms, 0, Delivered}, {590 * ms, 1, Delivered}}, radiocontrol.Hop{FramesSent: 5}},
		// Missed at 150; NACKs at 250 and 360; again 310–360, wrong; the second
		// NACK is there at 420, when it may not be repeated; told by the next frame.
		{"ARQ: given up, and what follows goes on", lossy(withARQ(pair(full), 2, 1, true), outages(60*ms, 320*ms)),
			[]entry{{0, 0, 1, 80}, {0, 0, 1, 40}}, []exit{{520 * ms, 0, Lost}, {520 * ms, 1, Delivered}}, radiocontrol.Hop{FramesLost: 2, LostPackets: 1, DeliveredPackets: 1}},
		{"ARQ: the NACK is lost, the next is not", func() *radio.Network {
			n := lossy(withARQ(pair(full), 4, 3, true), outages(60*ms))
			back := outages(355 * ms)
			n.Links[0].Back = &back
			return n
		}(), []entry{{0, 0, 1, 80}}, []exit{{720 * ms, 0, Delivered}}, radiocontrol.Hop{FramesRetransmitted: 1}},
		// NACKs at 150, 210, 270 are there at 210, 270, 330; the copies 210–260,
		// 270–320, 330–380, of which the first would have done.
		{"ARQ: a timer below the round trip repeats in vain", lossy(withARQ(pair(full), 0, 9, true), outages(60*ms)),
			[]entry{{0, 0, 1, 80}}, []exit{{310 * ms, 0, Delivered}}, radiocontrol.Hop{FramesRetransmitted: 3}},
		// The return direction is busy until 380 when the NACK wants to go at 350.
		{"ARQ: a NACK waits for the frame on the air, and goes before the next", lossy(withARQ(pair(full), 4, 3, true), outages(60*ms)),
			[]entry{{0, 0, 1, 80}, {330 * ms, 1, 0, 80}}, []exit{{490 * ms, 1, Delivered}, {540 * ms, 0, Delivered}}, radiocontrol.Hop{FramesRetransmitted: 1}},
		{"ARQ: over a relay", lossy(withARQ(chain(full), 4, 3, true), outages(60*ms)),
			[]entry{{0, 0, 2, 80}}, []exit{{660 * ms, 0, Delivered}}, radiocontrol.Hop{FramesRetransmitted: 1}},
		{"ARQ: half duplex", lossy(withARQ(pair(radio.MediumHalfDuplex), 4, 3, true), outages(60*ms)),
			[]entry{{0, 0, 1, 80}}, []exit{{510 * ms, 0, Delivered}}, radiocontrol.Hop{FramesRetransmitted: 1}},

		{"trace: a transmission keeps its rate, the next has the new one", lossy(pair(full), rates(50*ms, 8000, 16000)),
			[]entry{{0, 0, 1, 100}, {0, 0, 1, 100}}, []exit{{150 * ms, 0, Delivered}, {200 * ms, 1, Delivered}}, radiocontrol.Hop{Airtime: 150 * ms}},
		{"trace: without a rate everything waits", lossy(pair(full), rates(70*ms, 0, 0, 8000)),
			[]entry{{0, 0, 1, 100}}, []exit{{290 * ms, 0, Delivered}}, radiocontrol.Hop{QueueDelayMax: 140 * ms}},
		{"trace: delay falls, nothing overtakes", lossy(pair(full), radio.Channel{Model: radio.ChannelTrace, Trace: &radio.Trace{Step: 50 * ms, Loss: []float64{0, 0}, Delay: []time.Duration{500 * ms, 10 * ms}}}),
			[]entry{{0, 0, 1, 50}, {0, 0, 1, 50}}, []exit{{550 * ms, 0, Delivered}, {550 * ms, 1, Delivered}}, radiocontrol.Hop{}},
		{"trace: on a shared medium others go on", lossy(chain(radio.MediumShared), rates(200*ms, 0, 8000)),
			[]entry{{0, 0, 1, 50}, {0, 2, 1, 50}, {10 * ms, 2, 1, 50}}, []exit{{100 * ms, 1, Delivered}, {150 * ms, 2, Delivered}, {300 * ms, 0, Delivered}}, radiocontrol.Hop{}},

		// Rounds of client 0–150, relay 150–300, server 300–450.
		{"TDMA: each in its own slots", shared(chain(radio.MediumShared), tdma(C, R, S)),
			[]entry{{0, 2, 1, 100}, {0, 0, 2, 100}}, []exit{{300 * ms, 1, Delivered}, {450 * ms, 0, Delivered}}, radiocontrol.Hop{}},
		{"TDMA: what does not fit before the guard waits for the next slot", shared(pair(radio.MediumShared), tdma(C, S)),
			[]entry{{0, 0, 1, 100}, {0, 0, 1, 100}, {0, 0, 1, 30}}, []exit{{150 * ms, 0, Delivered}, {450 * ms, 1, Delivered}, {480 * ms, 2, Delivered}}, radiocontrol.Hop{}},
		{"TDMA: frames of a packet over several slots", shared(framed(pair(radio.MediumShared)), tdma(C, S)),
			[]entry{{0, 0, 1, 160}}, []exit{{450 * ms, 0, Delivered}}, radiocontrol.Hop{FramesSent: 4}},

		// DIFS 10, no slots to count: 10–110, 120–220.
		{"CSMA: the interframe space", shared(pair(radio.MediumShared), radio.Access{CSMA: &radio.CSMA{DIFS: 10 * ms, Slot: ms}}),
			[]entry{{0, 0, 1, 100}, {0, 0, 1, 100}, {300 * ms, 1, 0, 50}}, []exit{{160 * ms, 0, Delivered}, {270 * ms, 1, Delivered}, {400 * ms, 2, Delivered}}, radiocontrol.Hop{}},
		// Both count down from 0: they collide until each has none left to try.
		{"CSMA: collisions without a window", shared(pair(radio.MediumShared), radio.Access{CSMA: &radio.CSMA{DIFS: 10 * ms, Slot: ms, Retries: 2}}),
			[]entry{{0, 0, 1, 100}, {0, 1, 0, 50}}, []exit{{330 * ms, 0, Lost}, {330 * ms, 1, Lost}}, radiocontrol.Hop{Collisions: 3, LostPackets: 1, SentPackets: 1, Airtime: 300 * ms}},
	} {
		l := build(t, tc.n, 1)
		out, refused := play(t, l, tc.in)
		if !slices.Equal(out, tc.want) || len(refused) > 0 {
			t.Errorf("%s:\n got %v, refused %v\nwant %v", tc.name, out, refused, tc.want)
		}
		h := l.Hops()[0]
		for _, f := range []struct {
			name      string
			got, want int64
		}{
			{"frames sent", h.FramesSent, tc.hop.FramesSent}, {"frames lost", h.FramesLost, tc.hop.FramesLost}, {"frames retransmitted", h.FramesRetransmitted, tc.hop.FramesRetransmitted},
			{"airtime", int64(h.Airtime), int64(tc.hop.Airtime)}, {"lost packets", h.LostPackets, tc.hop.LostPackets}, {"delivered packets", h.DeliveredPackets, tc.hop.DeliveredPackets},
			{"queue delay", int64(h.QueueDelayMax), int64(tc.hop.QueueDelayMax)}, {"collisions", h.Collisions, tc.hop.Collisions}, {"sent packets", h.SentPackets, tc.hop.SentPackets},
		} {
			if f.want != 0 && f.got != f.want {
				t.Errorf("%s: %s %d, expected %d", tc.name, f.name, f.got, f.want)
			}
		}
	}
}
