package store

import (
	"time"

	"linktrial/executor/journal"
	"linktrial/orchestrator/store/storedb"
)

// Times in tables but the journal's are by the clock of the node as it was when its part
// in the run began: ingest takes the steps of the clock off that the journal has before
// the record. So they are in the order in which things happened, and differences of them
// are those of time. The journal's table has the records' own times.

// momentStep is the moment of a row of clock_offsets that is a step of the clock: its
// offset is by how much. It has a reason why it is no comparison.
const (
	momentStep = "step"
	whyStep    = "the clock stepped"
)

// ClockStep is the row of a step of a node's clock.
func ClockStep(run, node string, seq int64, at time.Time, by time.Duration) storedb.InsertClockOffsetParams {
	return storedb.InsertClockOffsetParams{RunID: run, Node: node, Seq: seq, At: at, Moment: momentStep, OffsetNs: int64(by), Unknown: whyStep}
}

// NodeClock is a node's clock in a run, which may step.
type NodeClock struct {
	offsets []offset // by seq, of the clock as it was when the run began
	steps   []step   // by seq
}

type offset struct {
	seq int64
	at  time.Time
	Clock
}

type step struct {
	seq int64
	by  time.Duration
}

// Clock is the orchestrator's less a node's, within a bound.
type Clock struct{ Offset, Bound time.Duration }

// NodeClocks makes the clocks of a run's nodes of its rows, which are in the order of
// the nodes' records.
func NodeClocks(rows []storedb.ClockOffset) map[string]*NodeClock {
	out := map[string]*NodeClock{}
	for _, r := range rows {
		c := out[r.Node]
		if c == nil {
			c = &NodeClock{}
			out[r.Node] = c
		}
		switch {
		case r.Moment == momentStep:
			c.steps = append(c.steps, step{r.Seq, time.Duration(r.OffsetNs)})
		case r.Unknown == "":
			c.offsets = append(c.offsets, offset{r.Seq, r.At, Clock{time.Duration(r.OffsetNs) + c.Stepped(r.Seq), time.Duration(r.ErrorNs)}})
		}
	}
	return out
}

// Stepped is the sum of the clock's steps up to a record: a step's own record has the
// time of the clock after it.
func (c *NodeClock) Stepped(seq int64) (sum time.Duration) {
	if c == nil {
		return 0
	}
	for _, s := range c.steps {
		if s.seq <= seq {
			sum += s.by
		}
	}
	return sum
}

// Stored is for times in tables but the journal's that are of a record: by the
// comparison with the orchestrator's clock before it, or the first. Where there is none,
// the clocks are taken to be the same.
func (c *NodeClock) Stored(seq int64) Clock {
	if c == nil || len(c.offsets) == 0 {
		return Clock{}
	}
	out := c.offsets[0].Clock
	for _, o := range c.offsets {
		if o.seq < seq {
			out = o.Clock
		}
	}
	return out
}

// Recorded is for the time of a record itself, and times in its body.
func (c *NodeClock) Recorded(seq int64) Clock {
	out := c.Stored(seq)
	out.Offset -= c.Stepped(seq)
	return out
}

// Comparisons calls f for each comparison with the orchestrator's clock: when it was
// made, and by how much the orchestrator's was ahead, both by the clock as it was when
// the run began.
func (c *NodeClock) Comparisons(f func(at time.Time, by time.Duration)) {
	if c == nil {
		return
	}
	for _, o := range c.offsets {
		f(o.at, o.Offset)
	}
}

// compared is what is known of a node's clock, at comparisons and after steps.
func compared(rows []storedb.ProbeClocksRow) []journal.ClockOffset {
	var out []journal.ClockOffset
	last := -1 // the comparison before
	var stepped time.Duration
	for _, r := range rows {
		o := journal.ClockOffset{Offset: time.Duration(r.OffsetNs), Error: time.Duration(r.ErrorNs), Unknown: r.Unknown}
		if r.Moment != momentStep {
			if o.Unknown == "" {
				if last < 0 && stepped != 0 { // what it was before the steps
					out = append(out, journal.ClockOffset{Offset: o.Offset + stepped, Error: o.Error})
				}
				last, stepped = len(out), 0
			}
			out = append(out, o)
			continue
		}
		stepped += o.Offset
		if last >= 0 {
			out = append(out, journal.ClockOffset{Offset: out[last].Offset - stepped, Error: out[last].Error})
		}
	}
	return out
}
