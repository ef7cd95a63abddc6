package executor

import (
	"context"
	"time"

	"linktrial/executor/figures"
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

// countSent is how many bytes the radio's interface has sent so far.
func (n *node) countSent() int64 {
	if n.sent == nil {
		return unknownCount
	}
	b, err := n.sent()
	if err != nil {
		n.log.Warn("the interface's counter cannot be read: payload is not held against it", "error", err)
		return unknownCount
	}
	return b
}

// holdSent holds the payload of this node's flows against what the interface has
// sent since a reading before them. It takes countLimit at most, and no time
// where the counter has the payload.
func (n *node) holdSent(ctx context.Context, flows []*flow, before int64) {
	payload := int64(0)
	for _, f := range flows {
		if f.result.Verdict == journal.Succeeded && f.spec.From == n.role {
			payload += f.carried()
		}
	}
	if payload == 0 || before == unknownCount {
		return
	}
	began := n.clock.Now()
	for {
		now := n.countSent()
		if now == unknownCount || now < before { // a counter that went back is of another device
			return
		}
		wrong := figures.Sent(payload, now-before)
		if wrong == nil {
			return
		}
		if n.clock.Now().Sub(began) >= countLimit || !backoff.SleepOn(ctx, n.clock, countAgain) {
			for _, f := range flows {
				f.invalidate(wrong)
			}
			return
		}
	}
}

// carried is the payload of a flow that succeeded which must have been on the
// radio: of a probe, what arrived, because a packet may be lost before its interface.
func (f *flow) carried() int64 {
	if p := f.result.Result.Probe; p != nil {
		return p.ReceivedBytes
	}
	return f.result.Result.SizeBytes
}

// holdRadio holds the flows of an attempt against the emulated radios' report;
// opened is a moment just before the channel's clock started.
func (n *node) holdRadio(flows []*flow, report *radiocontrol.Report, opened time.Time) {
	if report == nil {
		return
	}
	all := make([]figures.Flow, 0, len(flows))
	transfers, _ := bulk(flows)
	for _, f := range flows {
		if f.result.Verdict != journal.Succeeded {
			continue
		}
		r := f.result.Result
		x := figures.Flow{From: f.spec.From, To: f.spec.To, SizeBytes: f.carried(), Elapsed: time.Duration(r.ElapsedNS)}
		if !f.seen.Connected.IsZero() {
			x.End = f.seen.Connected.Sub(opened) + x.Elapsed
		}
		ideal := time.Duration(0)
		if !f.probe && f.spec.Duration == 0 && len(report.Ideal) == len(transfers) {
			ideal = report.Ideal[f.index]
		}
		all = append(all, x)
		f.invalidate(figures.Faster(n.sheet.Network, &x, ideal, n.tolerance))
		if f.probe { // both ends of an emulated radio have one clock
			f.invalidate(figures.Early(n.sheet.Network, &x, r.Probe))
		}
	}
	if wrong := figures.Delivered(n.sheet.Network, all, report.Hops); wrong != nil {
		for _, f := range flows {
			f.invalidate(wrong)
		}
	}
}
