package link

import (
	"testing"
	"time"

	"linktrial/internal/radio"
)

// hf is the link of dantas-2011, section VI and table VII-A: 4800 bit/s, 10 ms,
// bit errors by equation (6) at 1e-3, nothing wrong on the way back.
func hf(t *testing.T, frame, header, timer, persistence int) *radio.Network {
	t.Helper()
	h := &radio.HiddenMarkov{Transition: [][]float64{{0.99911, 0, 0.00089}, {0, 0.73644, 0.26356}, {0.36258, 0.58510, 0.05232}}, BitErrorRates: []float64{0, 0, 1}}
	h, err := h.WithBER(1e-3)
	if err != nil {
		t.Fatal(err)
	}
	n := pair(radio.MediumFullDuplex)
	n.MTUBytes = 1500
	k := &n.Links[0]
	k.RateBitsPerSecond, k.Delay = 4800, 10*ms
	lossy(n, radio.Channel{Model: radio.ChannelHiddenMarkov, Hidden: h})
	if frame > 0 {
		n.Framing = &radio.Framing{FrameBytes: frame, HeaderBytes: header}
		n.ARQ = &radio.ARQ{NACKTimerFrames: timer, Persistence: persistence, InOrder: true}
	}
	return n
}

type values struct {
	goodput  float64 // bit/s of delivered packets
	lost     float64 // share of the packets
	latency  time.Duration
	repeated float64 // share of the frames
	damaged  float64
}

// saturate keeps a few packets in the sender's radio for an hour.
func saturate(t *testing.T, n *radio.Network, packetBytes, inside int) values {
	t.Helper()
	const length = time.Hour
	l := build(t, n, 1)
	entered := map[uint32]time.Duration{}
	handle := uint32(0)
	var f values
	delivered := 0
	for now := time.Duration(0); now < length; {
		for l.Inside() < inside {
			entered[handle] = now
			l.Enter(now, 0, 1, packetBytes, handle, false)
			handle++
		}
		next, ok := l.NextEvent()
		if !ok {
			t.Fatal("nothing more happens")
		}
		now = next
		for _, e := range l.Advance(now) {
			if e.Outcome == Delivered {
				delivered++
				f.latency += e.At - entered[e.Handle]
			}
			delete(entered, e.Handle)
		}
	}
	h := l.Hops()[0]
	f.goodput = float64(h.DeliveredBytes) * 8 / length.Seconds()
	f.lost = float64(h.LostPackets) / float64(h.SentPackets)
	f.latency /= time.Duration(max(1, delivered))
	f.repeated = float64(h.FramesRetransmitted) / float64(max(1, h.FramesSent))
	f.damaged = float64(h.FramesLost) / float64(max(1, h.FramesSent))
	return f
}

// The shapes of dantas-2011, section VII.B, as far as the link shows them
// without TCP: two packets of 400 bytes in the radio, sent without end.
func TestShapesOfDantas(t *testing.T) {
	const packet = 400
	run := func(name string, frame, header, timer, persistence int) values {
		f := saturate(t, hf(t, frame, header, timer, persistence), packet, 2)
		t.Logf("%-26s %6.0f bit/s, %5.1f %% of packets lost, %6.2f s, %4.1f %% of frames damaged, %4.1f %% repeated", name, f.goodput, 100*f.lost, f.latency.Seconds(), 100*f.damaged, 100*f.repeated)
		return f
	}
	raw := run("without ARQ", 0, 0, 0, 0)
	base := run("frame 50, header 6", 50, 6, 10, 3)
	small := run("frame 25", 25, 6, 10, 3)
	large := run("frame 100", 100, 6, 10, 3)
	header := run("header 20", 50, 20, 10, 3)
	if base.goodput < 1.5*raw.goodput {
		t.Errorf("ARQ gives %.0f bit/s, without it %.0f", base.goodput, raw.goodput)
	}
	if large.lost <= small.lost || large.latency <= small.latency {
		t.Errorf("frames of 100 B lose %g of the packets in %s, of 25 B %g in %s", large.lost, large.latency, small.lost, small.latency)
	}
	if loss := 1 - header.goodput/base.goodput; loss < 0.2 || loss > 0.45 {
		t.Errorf("headers of 20 B cost %g, the paper says 0.31", loss)
	}
	var byTimer []values
	for _, timer := range []int{1, 2, 3, 5, 10, 20} {
		byTimer = append(byTimer, run("NACK timer "+string(rune('0'+timer/10))+string(rune('0'+timer%10)), 50, 6, timer, 3))
	}
	if byTimer[0].repeated <= 1.5*byTimer[3].repeated {
		t.Errorf("a timer of one frame repeats %g of the frames, of five %g", byTimer[0].repeated, byTimer[3].repeated)
	}
	if byTimer[5].goodput >= byTimer[3].goodput || byTimer[5].latency <= byTimer[3].latency {
		t.Errorf("a timer of 20 frames is no worse than one of five: %+v, %+v", byTimer[5], byTimer[3])
	}
	var byPersistence []values
	for _, p := range []int{0, 1, 2, 3, 5, 8} {
		byPersistence = append(byPersistence, run("persistence "+string(rune('0'+p)), 50, 6, 10, p))
	}
	if byPersistence[0].lost <= 2*byPersistence[3].lost {
		t.Errorf("no retransmission loses %g of the packets, three %g", byPersistence[0].lost, byPersistence[3].lost)
	}
	if gain := byPersistence[5].goodput/byPersistence[3].goodput - 1; gain > 0.05 {
		t.Errorf("a persistence of 8 gains %g over 3", gain)
	}
}
