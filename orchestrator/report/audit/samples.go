package audit

import (
	"cmp"
	"slices"
	"time"

	"linktrial/executor/journal"
	"linktrial/protocols/contract"
)

// stream is the samples of one flow of one attempt, from one end.
type stream struct {
	trial, attempt, flow int
	side                 string
}

// streamState is how far a stream is.
type streamState struct {
	at      Finding // its first record
	last    contract.Sample
	samples int
	bytes   int64 // sum of sent_bytes
}

// counters are the metrics of samples that never decrease (docs/driver-contract.md).
var counters = []struct {
	name string
	of   func(*contract.Sample) *int64
}{
	{"sent_bytes", func(s *contract.Sample) *int64 { return &s.SentBytes }},
	{"acked_bytes", func(s *contract.Sample) *int64 { return s.AckedBytes }},
	{"retransmits", func(s *contract.Sample) *int64 { return s.Retransmits }},
	{"timeouts", func(s *contract.Sample) *int64 { return s.Timeouts }},
	{"transmitted_bytes", func(s *contract.Sample) *int64 { return s.TransmittedBytes }},
	{"retransmitted_bytes", func(s *contract.Sample) *int64 { return s.RetransmittedBytes }},
	{"loss_events", func(s *contract.Sample) *int64 { return s.LossEvents }},
}

func (a *auditor) takeSamples(s *source, e *entry, b *journal.Samples) {
	c := a.check(Samples)
	at := placed(s.where(e.seq), b.Trial, b.Attempt)
	if b.Trial < 0 || b.Trial >= len(a.sheet.Trials) {
		c.find(at, "samples of trial %d, the sheet has trials 0 to %d", b.Trial, len(a.sheet.Trials)-1)
		return
	}
	of := a.sheet.Trials[b.Trial].Carried()
	if b.Flow < 0 || b.Flow >= len(of) {
		c.find(at, "samples of flow %d, the trial has %d", b.Flow, len(of))
		return
	}
	flow := &of[b.Flow]
	end := string(flow.ServerAt())
	if b.Side == "client" {
		end = string(flow.ClientAt())
	}
	switch {
	case b.Side != "client" && b.Side != "server":
		c.find(at, "samples of side %q, expected client or server", b.Side)
	case s.role != end:
		c.find(at, "samples of the %s of flow %d in the journal of a %s; that end of the flow is at the %s", b.Side, b.Flow, s.role, end)
	}
	if o := a.history.open; s.role == "client" && b.Side == "client" && (o == nil || o.trial != b.Trial || o.number != b.Attempt) {
		c.find(at, "samples of flow %d while the attempt does not run", b.Flow)
	}
	k := stream{b.Trial, b.Attempt, b.Flow, b.Side}
	st := a.streams[k]
	if st == nil {
		st = &streamState{at: at}
		a.streams[k] = st
	}
	for i := range b.Samples {
		c.Objects++
		x := &b.Samples[i]
		if flow.Duration == 0 && flow.SizeBytes > 0 && x.SentBytes > flow.SizeBytes {
			c.find(at, "sample %d of flow %d (%s) has %d bytes, the flow has %d", st.samples+1, b.Flow, b.Side, x.SentBytes, flow.SizeBytes)
		}
		if x.AckedBytes != nil && *x.AckedBytes > x.SentBytes {
			c.find(at, "sample %d of flow %d (%s): %d bytes are acknowledged, and %d were sent", st.samples+1, b.Flow, b.Side, *x.AckedBytes, x.SentBytes)
		}
		if all, again := x.TransmittedBytes, x.RetransmittedBytes; all != nil && again != nil && *again > *all {
			c.find(at, "sample %d of flow %d (%s): %d bytes were sent again, and %d in all", st.samples+1, b.Flow, b.Side, *again, *all)
		}
		if st.samples > 0 {
			a.monotone(c, at, st, x, b)
		}
		st.last = *x
		st.last.More = nil
		st.samples++
		st.bytes += x.SentBytes
	}
}

// monotone checks that nothing goes back from one sample of a stream to the next.
func (a *auditor) monotone(c *Check, at Finding, st *streamState, x *contract.Sample, b *journal.Samples) {
	// Two may be of one moment: where a sample is taken between a transfer's end and
	// the last one, which is of that end, the last one is of the same moment.
	if x.ElapsedNS < st.last.ElapsedNS {
		c.find(at, "sample %d of flow %d (%s) is of %s, the one before of %s", st.samples+1, b.Flow, b.Side, time.Duration(x.ElapsedNS), time.Duration(st.last.ElapsedNS))
	}
	for i := range counters {
		before, now := counters[i].of(&st.last), counters[i].of(x)
		if before != nil && now != nil && *now < *before {
			c.find(at, "sample %d of flow %d (%s): %s goes back from %d to %d", st.samples+1, b.Flow, b.Side, counters[i].name, *before, *now)
		}
	}
}

// checkStreams looks for samples of attempts that there were not.
func (a *auditor) checkStreams() {
	if !a.history.seen {
		return
	}
	c := a.check(Samples)
	had := map[key]bool{}
	for _, x := range a.history.all {
		had[key{x.trial, x.number}] = true
	}
	var lost []*streamState
	for k, st := range a.streams {
		if !had[key{k.trial, k.attempt}] {
			lost = append(lost, st)
		}
	}
	slices.SortFunc(lost, func(x, y *streamState) int {
		return cmp.Or(cmp.Compare(x.at.Node, y.at.Node), cmp.Compare(x.at.Record, y.at.Record))
	})
	for _, st := range lost {
		c.find(st.at, "samples of an attempt that the leading node's journal does not have")
	}
}
