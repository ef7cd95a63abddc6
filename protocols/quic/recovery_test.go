package main

import (
	"math/rand/v2"
	"testing"

	"github.com/quic-go/quic-go/qlog"
)

// TestRanges holds the set against a list of numbers.
func TestRanges(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var set ranges
		var want [64]bool
		for range 30 {
			from := r.Int64N(60)
			s := span{from, from + 1 + r.Int64N(min(4, 64-from))}
			var fresh [64]bool
			set.add(s, func(f span) {
				for n := f.from; n < f.to; n++ {
					if fresh[n] || want[n] || n < s.from || n >= s.to {
						t.Fatalf("%d is said to be new, adding %v", n, s)
					}
					fresh[n] = true
				}
			})
			for n := s.from; n < s.to; n++ {
				if !want[n] && !fresh[n] {
					t.Fatalf("%d is not said to be new, adding %v", n, s)
				}
				want[n] = true
			}
			check(t, set, want[:])
		}
	}
}

// check holds the spans against the numbers: in order, with gaps between them.
func check(t *testing.T, set ranges, want []bool) {
	t.Helper()
	last := int64(-1)
	got := make([]bool, len(want))
	for _, s := range set.spans {
		if s.from <= last || s.to <= s.from {
			t.Fatalf("spans %v", set.spans)
		}
		last = s.to
		for n := s.from; n < s.to; n++ {
			got[n] = true
		}
	}
	for n := range want {
		if got[n] != want[n] {
			t.Fatalf("%d is in the set: %v, expected %v: %v", n, got[n], want[n], set.spans)
		}
	}
}

func TestForget(t *testing.T) {
	var set ranges
	for n := range int64(101) {
		set.add(span{3 * n, 3*n + 1}, func(span) {})
	}
	set.forget(100)
	if len(set.spans) != 52 || set.spans[0] != (span{0, 148}) || set.spans[51] != (span{300, 301}) {
		t.Errorf("%d spans, %v … %v", len(set.spans), set.spans[0], set.spans[len(set.spans)-1])
	}
}

func sentEvent(number int64, frames ...qlog.Frame) qlog.PacketSent {
	return qlog.PacketSent{Header: qlog.PacketHeader{PacketType: qlog.PacketType1RTT, PacketNumber: qlog.PacketNumber(number)}, Frames: frames}
}

func streamFrame(offset, length int64) qlog.Frame {
	return qlog.Frame{Frame: &qlog.StreamFrame{Offset: offset, Length: length}}
}

func ackEvent(spans ...span) qlog.PacketReceived {
	a := &qlog.AckFrame{}
	for _, s := range spans {
		a.AckRanges = append(a.AckRanges, qlog.AckRange{Smallest: qlog.PacketNumber(s.from), Largest: qlog.PacketNumber(s.to - 1)})
	}
	return qlog.PacketReceived{Header: qlog.PacketHeader{PacketType: qlog.PacketType1RTT}, Frames: []qlog.Frame{{Frame: a}}}
}

// TestRecovery: what is acknowledged is counted once, in whatever packet it came.
func TestRecovery(t *testing.T) {
	var r recovery
	expect := func(what string, want counters) {
		t.Helper()
		if got := r.counters(); got != want {
			t.Errorf("%s: %+v, expected %+v", what, got, want)
		}
	}
	r.RecordEvent(sentEvent(0, streamFrame(0, 1000)))
	r.RecordEvent(sentEvent(1, streamFrame(1000, 1000)))
	r.RecordEvent(sentEvent(3, streamFrame(2000, 500)))
	r.RecordEvent(sentEvent(4, qlog.Frame{Frame: &qlog.PingFrame{}}))
	expect("four packets", counters{})
	r.RecordEvent(ackEvent(span{3, 5}, span{0, 1}))
	expect("the second is missing", counters{acked: 1500})
	r.RecordEvent(ackEvent(span{3, 5}, span{0, 1}))
	expect("the same once more", counters{acked: 1500})
	r.RecordEvent(qlog.PacketLost{})
	r.RecordEvent(qlog.PacketLost{IsMTUProbePacket: true})
	r.RecordEvent(sentEvent(5, streamFrame(1000, 600), streamFrame(2500, 100)))
	r.RecordEvent(sentEvent(6, streamFrame(1600, 400)))
	expect("sent again", counters{acked: 1500, lost: 1, retransmits: 2, again: 1000})
	r.RecordEvent(ackEvent(span{5, 6}))
	expect("two pieces", counters{acked: 2200, lost: 1, retransmits: 2, again: 1000})
	r.RecordEvent(ackEvent(span{0, 7}))
	expect("all of it, the lost one late", counters{acked: 2600, lost: 1, retransmits: 2, again: 1000})
	// Numbers beyond what is remembered.
	const far = 3 * remembered
	for n := int64(7); n < far; n++ {
		r.RecordEvent(sentEvent(n, streamFrame(2600+(n-7), 1)))
	}
	if len(r.sent) != remembered {
		t.Errorf("%d packets are remembered, expected %d", len(r.sent), remembered)
	}
	r.RecordEvent(ackEvent(span{far - 10, far}))
	expect("the last ten", counters{acked: 2610, lost: 1, retransmits: 2, again: 1000})
}

// TestAgain: of a packet that sends old bytes and new ones, the old ones were sent again.
func TestAgain(t *testing.T) {
	var r recovery
	r.RecordEvent(sentEvent(0, streamFrame(0, 1000)))
	r.RecordEvent(sentEvent(1, streamFrame(800, 700))) // 200 of them
	r.RecordEvent(sentEvent(2, streamFrame(100, 50), streamFrame(1500, 10), streamFrame(1400, 60)))
	if got, want := r.counters(), (counters{retransmits: 2, again: 310}); got != want {
		t.Errorf("%+v, expected %+v", got, want)
	}
}

// TestRemembered: packets that were acknowledged or lost leave their place to later
// ones; the ring grows for those under way alone, and loses none of them.
func TestRemembered(t *testing.T) {
	lost := func(n int64) qlog.PacketLost {
		return qlog.PacketLost{Header: qlog.PacketHeader{PacketType: qlog.PacketType1RTT, PacketNumber: qlog.PacketNumber(n)}}
	}
	var r recovery
	const few = 5 * rememberedFirst
	for n := range int64(few) {
		r.RecordEvent(sentEvent(n, streamFrame(2*n, 1), streamFrame(2*n+1, 1)))
		if n%4 == 0 {
			r.RecordEvent(lost(n))
			continue
		}
		r.RecordEvent(ackEvent(span{n, n + 1}))
	}
	if len(r.sent) != rememberedFirst {
		t.Errorf("%d packets have a place, expected %d", len(r.sent), rememberedFirst)
	}
	if got, want := r.counters(), (counters{acked: few / 4 * 3 * 2, lost: few / 4}); got != want {
		t.Errorf("%+v, expected %+v", got, want)
	}
	r.RecordEvent(ackEvent(span{few - 4, few - 3}))
	if got, want := r.counters().acked, int64(few/4*3*2+2); got != want {
		t.Errorf("one that was taken for lost: %d bytes are acknowledged, expected %d", got, want)
	}
	if n := len(r.more); n > rememberedFirst/4 {
		t.Errorf("second pieces of %d packets are remembered", n)
	}
	for n := range int64(few) {
		r.RecordEvent(sentEvent(few+n, streamFrame(2*few+n, 1)))
	}
	if len(r.sent) != 8*rememberedFirst {
		t.Errorf("%d packets have a place, expected %d", len(r.sent), 8*rememberedFirst)
	}
	before := r.counters().acked
	r.RecordEvent(ackEvent(span{few, 2 * few}))
	if got := r.counters().acked - before; got != few {
		t.Errorf("%d bytes of %d under way are acknowledged", got, few)
	}
}
