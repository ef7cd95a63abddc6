package main

import (
	"cmp"
	"slices"
	"sync/atomic"

	"github.com/quic-go/quic-go/qlog"
	"github.com/quic-go/quic-go/qlogwriter"
)

// counters are what a sender's connection says of its loss recovery.
type counters struct {
	acked       int64 // bytes of the stream
	flight      int64 // bytes in packets
	retransmits int64 // packets with bytes of the stream that had been sent before
	again       int64 // these bytes
	timeouts    int64
	lost        int64 // packets that were taken for lost
	spurious    int64 // of them, those that were acknowledged later
	packet      int64 // largest packet that the path is known to take; 0: not searched yet
}

// recovery keeps the counters up to date from the events that the library would
// write into a qlog, as they happen. Its zero value is ready.
//
// All the events that it takes come from the goroutine of the connection, some for
// every packet. There is no lock, because two locked instructions for each of them
// were 2 % of a sender's processor time; the counters alone are read by others.
//
// The events take a tenth of the throughput where the processor is the bottleneck: the
// library allocates some 370 bytes for each packet before a recorder sees them, and
// cannot make only some of them.
type recovery struct {
	acked, flight, retransmits, again, timeouts, lost, spurious, packet atomic.Int64

	highest int64            // end of the stream's bytes that were ever sent
	numbers ranges           // packets that were acknowledged
	bytes   ranges           // bytes of the stream that were acknowledged
	sent    []sentPacket     // a ring: packet n is at n modulo its length, a power of two
	more    map[int64][]span // of packets that carry several pieces of the stream, all but the first
}

// sentPacket is what a packet carried of the stream. It has no pointers: nothing
// here is for the garbage collector to look at.
type sentPacket struct {
	number int64
	from   int64 // where its piece of the stream begins
	length int32 // of that piece; 0: no packet is here
	lost   bool  // taken for lost: its place may be used again
}

// A sender remembers so many packets, from the beginning and at most. The library
// never has more than 25 000 under way. The ring is small while it can be, so that
// it stays in the processor's cache.
const (
	rememberedFirst = 1 << 10
	remembered      = 1 << 15
)

// gaps is how many gaps are kept between acknowledged packets. An acknowledgement
// names 64 of them at most.
const gaps = 1 << 10

// AddProducer makes the trace the recorder of its connection.
func (r *recovery) AddProducer() qlogwriter.Recorder { return r }

// Close does nothing: the counters stay.
func (r *recovery) Close() error { return nil }

// RecordEvent takes an event of the connection.
func (r *recovery) RecordEvent(e qlogwriter.Event) {
	switch e := e.(type) {
	case qlog.PacketSent:
		if e.Header.PacketType == qlog.PacketType1RTT {
			r.packetSent(int64(e.Header.PacketNumber), e.Frames)
		}
	case qlog.PacketReceived:
		if e.Header.PacketType == qlog.PacketType1RTT {
			r.packetReceived(e.Frames)
		}
	case qlog.MetricsUpdated:
		r.flight.Store(int64(e.BytesInFlight))
	case qlog.PacketLost:
		if !e.IsMTUProbePacket {
			r.lost.Add(1)
		}
		if e.Header.PacketType == qlog.PacketType1RTT {
			r.packetLost(int64(e.Header.PacketNumber))
		}
	case qlog.SpuriousLoss:
		r.spurious.Add(1)
	case qlog.TimerUpdated:
		if e.Type == qlog.TimerEventTypeExpired && e.TimerType == qlog.TimerTypePTO {
			r.timeouts.Add(1)
		}
	case qlog.MTUUpdated:
		r.packet.Store(int64(e.Value))
	}
}

// counters are the newest ones; any goroutine may ask.
func (r *recovery) counters() counters {
	return counters{
		acked: r.acked.Load(), flight: r.flight.Load(), retransmits: r.retransmits.Load(), again: r.again.Load(), timeouts: r.timeouts.Load(),
		lost: r.lost.Load(), spurious: r.spurious.Load(), packet: r.packet.Load(),
	}
}

func (r *recovery) packetSent(number int64, frames []qlog.Frame) {
	p := sentPacket{number: number}
	var again int64
	for _, f := range frames {
		s, ok := f.Frame.(*qlog.StreamFrame)
		if !ok || s.Length == 0 {
			continue
		}
		part := span{s.Offset, s.Offset + s.Length}
		again += max(0, min(part.to, r.highest)-part.from)
		r.highest = max(r.highest, part.to)
		if p.length == 0 {
			p.from, p.length = part.from, int32(s.Length)
			continue
		}
		if r.more == nil {
			r.more = map[int64][]span{}
		}
		r.more[number] = append(r.more[number], part)
	}
	if p.length == 0 {
		return
	}
	if again > 0 {
		r.retransmits.Add(1)
		r.again.Add(again)
	}
	if r.sent == nil {
		r.sent = make([]sentPacket, rememberedFirst)
	}
	at := r.place(number)
	for at.length > 0 && !at.lost && len(r.sent) < remembered {
		r.grow()
		at = r.place(number)
	}
	if at.length > 0 {
		delete(r.more, at.number)
	}
	*at = p
}

// place is where a packet is remembered.
func (r *recovery) place(number int64) *sentPacket { return &r.sent[number&int64(len(r.sent)-1)] }

func (r *recovery) grow() {
	old := r.sent
	r.sent = make([]sentPacket, 2*len(old))
	for _, p := range old {
		if p.length > 0 {
			*r.place(p.number) = p
		}
	}
}

func (r *recovery) packetLost(number int64) {
	if len(r.sent) == 0 {
		return
	}
	if p := r.place(number); p.number == number {
		p.lost = true
	}
}

func (r *recovery) packetReceived(frames []qlog.Frame) {
	var fresh int64
	for _, f := range frames {
		a, ok := f.Frame.(*qlog.AckFrame)
		if !ok {
			continue
		}
		for _, x := range a.AckRanges {
			r.numbers.add(span{int64(x.Smallest), int64(x.Largest) + 1}, func(s span) { fresh += r.packetsAcknowledged(s) })
		}
		// Every lost packet leaves a gap for good.
		r.numbers.forget(gaps)
	}
	if fresh > 0 {
		r.acked.Add(fresh)
	}
}

// packetsAcknowledged returns how many bytes of the stream the acknowledgement of
// packets is the first for.
func (r *recovery) packetsAcknowledged(numbers span) int64 {
	var fresh int64
	count := func(s span) { fresh += s.to - s.from }
	for n := max(numbers.from, numbers.to-int64(len(r.sent))); n < numbers.to; n++ {
		p := r.place(n)
		if p.number != n || p.length == 0 {
			continue
		}
		r.bytes.add(span{p.from, p.from + int64(p.length)}, count)
		p.length = 0
		if len(r.more) == 0 {
			continue
		}
		for _, s := range r.more[n] {
			r.bytes.add(s, count)
		}
		delete(r.more, n)
	}
	return fresh
}

// span is the numbers from one, without the other.
type span struct{ from, to int64 }

// ranges is a set of numbers: spans in order that do not touch.
type ranges struct{ spans []span }

// add adds the numbers of a span, and calls fresh for each part of it that was
// not in the set.
func (r *ranges) add(s span, fresh func(span)) {
	i, _ := slices.BinarySearchFunc(r.spans, s.from, func(x span, from int64) int { return cmp.Compare(x.to, from) })
	whole, j := s, i
	for at := s.from; ; j++ {
		if j == len(r.spans) || r.spans[j].from > s.to {
			if at < s.to {
				fresh(span{at, s.to})
			}
			break
		}
		if x := r.spans[j]; at < x.from {
			fresh(span{at, x.from})
		}
		at = max(at, r.spans[j].to)
		whole.from, whole.to = min(whole.from, r.spans[j].from), max(whole.to, r.spans[j].to)
	}
	if j == i+1 {
		r.spans[i] = whole
		return
	}
	r.spans = slices.Replace(r.spans, i, j, whole)
}

// forget fills the oldest gaps, so that a set of so many spans does not grow.
func (r *ranges) forget(most int) {
	if n := len(r.spans); n > most {
		r.spans = slices.Replace(r.spans, 0, n/2, span{r.spans[0].from, r.spans[n/2-1].to})
	}
}
