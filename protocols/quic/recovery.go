package main

import (
	"cmp"
	"slices"
	"sync"

	"github.com/quic-go/quic-go/qlog"
	"github.com/quic-go/quic-go/qlogwriter"
)

// figures are what a sender's connection says of its loss recovery.
type figures struct {
	acked       int64 // bytes of the stream
	flight      int64 // bytes in packets
	retransmits int64 // packets with bytes of the stream that had been sent before
	timeouts    int64
	lost        int64 // packets that were taken for lost
	spurious    int64 // of them, those that were acknowledged later
	packet      int64 // largest packet that the path is known to take; 0: not searched yet
}

// recovery keeps the figures up to date from the events that the library would
// write into a qlog, as they happen. Its zero value is ready.
type recovery struct {
	mu      sync.Mutex
	now     figures
	highest int64  // end of the stream's bytes that were ever sent
	numbers ranges // packets that were acknowledged
	bytes   ranges // bytes of the stream that were acknowledged
	sent    []sentPacket
}

// sentPacket is what a packet carried of the stream.
type sentPacket struct {
	number int64
	part   span
	more   []span // where it is not one piece
}

// remembered is how many packets a sender remembers. The library never has more
// than 25 000 under way.
const remembered = 1 << 15

// gaps is how many gaps are kept between acknowledged packets. An acknowledgement
// names 64 of them at most.
const gaps = 1 << 10

// AddProducer makes the trace the recorder of its connection.
func (r *recovery) AddProducer() qlogwriter.Recorder { return r }

// Close does nothing: the figures stay.
func (r *recovery) Close() error { return nil }

// RecordEvent takes an event of the connection.
func (r *recovery) RecordEvent(e qlogwriter.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
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
		r.now.flight = int64(e.BytesInFlight)
	case qlog.PacketLost:
		if !e.IsMTUProbePacket {
			r.now.lost++
		}
	case qlog.SpuriousLoss:
		r.now.spurious++
	case qlog.TimerUpdated:
		if e.Type == qlog.TimerEventTypeExpired && e.TimerType == qlog.TimerTypePTO {
			r.now.timeouts++
		}
	case qlog.MTUUpdated:
		r.now.packet = int64(e.Value)
	}
}

func (r *recovery) figures() figures {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

func (r *recovery) packetSent(number int64, frames []qlog.Frame) {
	p := sentPacket{number: number}
	again := false
	for _, f := range frames {
		s, ok := f.Frame.(*qlog.StreamFrame)
		if !ok || s.Length == 0 {
			continue
		}
		part := span{s.Offset, s.Offset + s.Length}
		again = again || part.from < r.highest
		r.highest = max(r.highest, part.to)
		if p.part == (span{}) {
			p.part = part
		} else {
			p.more = append(p.more, part)
		}
	}
	if p.part == (span{}) {
		return
	}
	if again {
		r.now.retransmits++
	}
	for number >= int64(len(r.sent)) && len(r.sent) < remembered {
		r.sent = append(r.sent, make([]sentPacket, max(64, len(r.sent)))...)
	}
	r.sent[number%int64(len(r.sent))] = p
}

func (r *recovery) packetReceived(frames []qlog.Frame) {
	for _, f := range frames {
		a, ok := f.Frame.(*qlog.AckFrame)
		if !ok {
			continue
		}
		for _, x := range a.AckRanges {
			r.numbers.add(span{int64(x.Smallest), int64(x.Largest) + 1}, r.packetsAcknowledged)
		}
		// Every lost packet leaves a gap for good.
		r.numbers.forget(gaps)
	}
}

func (r *recovery) packetsAcknowledged(numbers span) {
	count := func(s span) { r.now.acked += s.to - s.from }
	for n := max(numbers.from, numbers.to-int64(len(r.sent))); n < numbers.to; n++ {
		p := &r.sent[n%int64(len(r.sent))]
		if p.number != n || p.part == (span{}) {
			continue
		}
		r.bytes.add(p.part, count)
		for _, s := range p.more {
			r.bytes.add(s, count)
		}
	}
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
