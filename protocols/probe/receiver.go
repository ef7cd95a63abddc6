package main

import (
	"time"

	"linktrial/protocols/contract"
	"linktrial/protocols/harness"
	"linktrial/protocols/probe/measure"
	"linktrial/protocols/probe/pattern"
	"linktrial/protocols/probe/wire"
)

// late is for how long packets count after the end was announced.
const late = contract.ProbeLateMS * time.Millisecond

// receiver is the end of a probe that measures: the server, or for a probe from the
// server the client.
type receiver struct {
	key      *wire.Key
	log      *packetLog
	clock    clock
	probe    *measure.Probe
	capacity *measure.Capacity // nil: of no search
	spec     *pattern.Spec
	messages measure.Messages // of the pattern messages
	strays   int64
	ownTimes bool // packets arrive when this process gets them
	beat     *harness.Beat
	last     time.Duration // when the last packet arrived
	sampled  sums          // at the sample before

	ended   *wire.Sent // what the other end has sent, once it has said so
	settled time.Time  // until when late packets count, after that

	warning []byte // of a search, to be sent; nil: none
}

// sums are what a sample of a probe is made of.
type sums struct{ packets, delay int64 }

func newReceiver(p *contract.Parameters, spec *pattern.Spec, key *wire.Key, ownTimes bool) *receiver {
	r := &receiver{key: key, spec: spec, probe: measure.New(), ownTimes: ownTimes,
		clock: clock{begin: time.Now()}, beat: harness.NewBeat(time.Duration(p.SampleIntervalMS) * time.Millisecond)}
	if spec.Pattern == pattern.Capacity {
		r.capacity = &measure.Capacity{}
	}
	return r
}

// packet takes a packet of the probe; false: the datagram is none.
func (r *receiver) packet(b []byte, arrived int64) bool {
	step, n, sent, err := r.parse(b)
	if err != nil || (step > 0) != (r.capacity != nil) {
		return false
	}
	r.last = time.Since(r.clock.begin)
	flag := int64(0)
	if r.probe.Arrive(n, sent, arrived, len(b)) {
		flag = 1
		if r.capacity != nil && r.capacity.Arrive(step, n, sent, arrived) {
			r.warning = r.key.Report(r.capacity.Report(step, 0))
		}
		if r.spec.Pattern == pattern.Messages {
			m := r.spec.MessageOf(int64(n))
			r.messages.Arrive(m.Number, int64(m.Bytes), m.Packets, sent, arrived)
		}
	}
	r.log.row(int64(n), sent, arrived, int64(len(b)), flag)
	return true
}

// parse reads a packet as the pattern has it.
func (r *receiver) parse(b []byte) (step, n uint32, sent int64, err error) {
	if r.spec.Pattern == pattern.Messages {
		n, sent, err = r.key.ParseShort(b)
		return 0, n, sent, err
	}
	return r.key.ParsePacket(b)
}

// end takes the announcement that no packet follows; false: the datagram is none.
func (r *receiver) end(b []byte) bool {
	sent, ok := r.key.ParseEnd(b)
	if ok && r.ended == nil {
		r.ended, r.settled = &sent, time.Now().Add(late)
	}
	return ok
}

// answer is what the other end of a search is to get after a datagram of it: the report
// that it asks for, or a warning; nil: nothing.
func (r *receiver) answer(b []byte) (answer []byte, asked bool) {
	if r.capacity == nil {
		return nil, false
	}
	if step, number, ok := r.key.ParseAsk(b); ok {
		return r.key.Report(r.capacity.Report(step, number)), true
	}
	answer, r.warning = r.warning, nil
	return answer, false
}

// over reports whether no packet counts any more.
func (r *receiver) over(now time.Time) bool {
	if r.ended == nil {
		return false
	}
	packets, _ := r.probe.Received()
	return packets >= r.ended.Packets || !now.Before(r.settled)
}

// metrics are those of a probe that is over.
func (r *receiver) metrics() *contract.ProbeMetrics {
	r.clock.now()
	f := r.probe.Metrics(r.ended.Packets, r.ended.Bytes)
	f.Unsent, f.Strays, f.ClockStepNS = r.ended.Unsent, r.strays, r.ended.ClockStep+r.clock.stepNS()
	f.ProcessTimes = r.ownTimes
	if r.capacity != nil {
		f.Capacity = r.capacity.Result(r.ended.Search)
	}
	for _, bytes := range r.spec.MessageSizes() {
		f.Messages = append(f.Messages, contract.MessagesOfSize{Bytes: int64(bytes), Packets: int64(r.spec.PacketsOf(bytes)), Sent: r.spec.MessagesIn(r.ended.Packets, bytes)})
	}
	f.Messages = r.messages.Result(f.Messages)
	return f
}

// sample is the state of the probe; the delay is the mean of the packets since the
// sample before.
func (r *receiver) sample(elapsed time.Duration) *contract.Sample {
	packets, bytes := r.probe.Received()
	now := sums{packets, r.probe.MeanDelay() * packets}
	more := map[string]float64{
		"received_packets": float64(packets), "missing_packets": float64(r.probe.Highest() + 1 - packets), "jitter_us": float64(r.probe.Jitter()) / 1e3,
	}
	if n := now.packets - r.sampled.packets; n > 0 {
		more["delay_us"] = float64(now.delay-r.sampled.delay) / float64(n) / 1e3
	}
	r.sampled = now
	return &contract.Sample{ElapsedNS: elapsed.Nanoseconds(), SentBytes: bytes, More: more}
}
