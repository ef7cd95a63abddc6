package executor

import (
	"context"
	"time"

	"linktrial/executor/credible"
	"linktrial/executor/journal"
	"linktrial/internal/backoff"
	"linktrial/internal/radiocontrol"
)

// Some network cards report their counters only every second or two.
const (
	countAgain = 250 * time.Millisecond
	countLimit = 3 * time.Second
)

// unknownCount is a reading of the interface that could not be taken.
const unknownCount = -1

// counters is what the radio's interface has sent and received so far, in bytes.
type counters struct{ sent, received int64 }

// count reads the interface's counters.
func (n *node) count() counters {
	return counters{n.read(n.Sent), n.read(n.Received)}
}

func (n *node) read(counter func() (int64, error)) int64 {
	if counter == nil {
		return unknownCount
	}
	b, err := counter()
	if err != nil {
		n.log.Warn("the interface's counter cannot be read: payload is not held against it", "error", err)
		return unknownCount
	}
	return b
}

// since is how much a counter has counted since a reading; known is false where one of
// them could not be taken, or the counter went back: it is another device's.
func since(before, now int64) (counted int64, known bool) {
	return now - before, before != unknownCount && now != unknownCount && now >= before
}

// holdCounters holds this node's flows against what the interface has sent and received
// since a reading before them. It takes countLimit at most, and no time where the counters
// have enough.
func (n *node) holdCounters(ctx context.Context, flows []*flow, before counters) {
	var out, in int64
	some := false
	for _, f := range flows {
		switch {
		case f.result.Verdict != journal.Succeeded:
			continue
		case f.spec.From == n.Role:
			out += f.carried()
		case f.spec.To == n.Role:
			in += f.carried()
		}
		some = true
	}
	if !some {
		return
	}
	began := n.Clock.Now()
	for {
		now := n.count()
		var wrong *credible.Fault
		past := ""
		if sent, known := since(before.sent, now.sent); known {
			wrong = credible.Sent(out, sent)
		}
		if received, known := since(before.received, now.received); known {
			past = credible.Received(in, received)
		}
		if wrong == nil && past == "" {
			return
		}
		if n.Clock.Now().Sub(began) >= countLimit || !backoff.SleepOn(ctx, n.Clock, countAgain) {
			for _, f := range flows {
				f.invalidate(wrong)
				if past != "" {
					f.excuse(journal.ReasonRadioDown, past)
				}
			}
			return
		}
	}
}

// holdRadio holds the flows of an attempt against the emulated radios' report;
// opened is a moment just before the channel's clock started.
func (n *node) holdRadio(flows []*flow, report *radiocontrol.Report, opened time.Time) {
	if report == nil {
		return
	}
	all := make([]credible.Flow, 0, len(flows))
	transfers, _ := bulk(flows)
	for _, f := range flows {
		if f.result.Verdict != journal.Succeeded {
			continue
		}
		r := f.result.Result
		x := f.values()
		if !f.seen.Connected.IsZero() {
			x.End = f.seen.Connected.Sub(opened) + x.Elapsed
		}
		ideal := time.Duration(0)
		if !f.probe && f.spec.Duration == 0 && len(report.Ideal) == len(transfers) {
			ideal = report.Ideal[f.index]
		}
		all = append(all, x)
		f.invalidate(credible.Faster(n.sheet.Network, &x, ideal, n.tolerance))
		if f.probe { // both ends of an emulated radio have one clock
			f.invalidate(credible.Early(n.sheet.Network, &x, r.Probe))
			f.invalidate(credible.Capacity(n.sheet.Network, &x, r.Probe))
			f.invalidate(credible.Messages(n.sheet.Network, &x, r.Probe))
		}
	}
	n.holdCounts(flows, report.Traffic)
	if wrong := credible.Delivered(n.sheet.Network, all, report, n.stationsOf(flows)); wrong != nil {
		for _, f := range flows {
			f.invalidate(wrong)
		}
	}
}
