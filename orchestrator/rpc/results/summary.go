package results

import (
	"cmp"
	"fmt"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor/journal"
	"linktrial/internal/unit"
	"linktrial/orchestrator/report"
)

// asSummary is a run's table in the units of the API; the values are the
// table's own, each times a power of two.
func asSummary(t *report.RunTable, r *report.Run) *linktrialv1.RunSummary {
	out := &linktrialv1.RunSummary{RadioTitle: t.RadioTitle, TopologyTitle: t.TopologyTitle, Order: t.Order, Iterations: int32(t.Iterations), Group: t.Group}
	for _, c := range r.Axes() {
		if c.Axis != "radio" && c.Axis != "topology" && c.Axis != "size" {
			out.Settings = append(out.Settings, &linktrialv1.AxisValue{Axis: c.Axis, Label: c.Value})
		}
	}
	attempted := map[string]int32{}
	for i := range r.Trials {
		if x := &r.Trials[i]; x.Verdict != "" || len(x.Attempts) > 0 {
			attempted[x.Treatment]++
		}
	}
	for i := range t.Rows {
		out.Treatments = append(out.Treatments, asTreatment(&t.Rows[i], attempted[t.Rows[i].Treatment]))
	}
	for i := range t.Probes {
		out.Probes = append(out.Probes, asProbe(&t.Probes[i]))
	}
	out.ProbeClock, out.BoundsUnknown, out.ControlNote, out.Conclusion = t.ProbeCertainty(), t.BoundsUnknown, t.ControlNote, t.Conclusion
	out.Notes, out.HostNote, out.Imported, out.Rule = t.Notes, t.HostNote, asOrigin(t.Imported), t.RuleText()
	for i := range t.Requirements {
		out.Requirements = append(out.Requirements, asRequirement(&t.Requirements[i]))
	}
	if t.Lead.Text != "" {
		out.Lead = &linktrialv1.Lead{Text: t.Lead.Text, Leader: t.Lead.Leader, Decided: t.Lead.Decided}
	}
	return out
}

var requiredOutcomes = map[report.RequiredOutcome]linktrialv1.RequiredOutcome{
	report.Pass:      linktrialv1.RequiredOutcome_REQUIRED_OUTCOME_PASS,
	report.Fail:      linktrialv1.RequiredOutcome_REQUIRED_OUTCOME_FAIL,
	report.Undecided: linktrialv1.RequiredOutcome_REQUIRED_OUTCOME_UNDECIDED,
}

func asRequirement(j *report.Judgement) *linktrialv1.Requirement {
	return &linktrialv1.Requirement{Entry: int32(j.Entry), Label: j.Label, Outcome: requiredOutcomes[j.Outcome], Text: j.Text, Treatment: j.Treatment, Probe: j.Probe}
}

// asDifference is a difference in bytes per second.
func asDifference(d *report.Difference) *linktrialv1.CampaignDifference {
	bytes := func(kbps *float64) *float64 {
		if kbps == nil {
			return nil
		}
		x := *kbps * unit.KB
		return &x
	}
	out := &linktrialv1.CampaignDifference{Where: d.Where, Treatment: d.Treatment, Label: d.Label, Reference: d.Reference, Campaign: d.Campaign, ReferenceRun: d.ReferenceRun, Run: d.Run,
		ReferenceValid: int32(d.ReferenceValid), Valid: int32(d.Valid), ReferenceAverage: bytes(d.ReferenceKBps), Average: bytes(d.AverageKBps),
		Difference: bytes(d.DifferenceKBps), ChangePercent: d.ChangePercent, PHolm: d.PHolm, Decided: d.Decided(), Changed: d.Changed, Partial: d.Partial,
		ReferenceImported: d.ReferenceImported != nil, Imported: d.Imported != nil, ReferenceFailed: int32(d.ReferenceFailed), Failed: int32(d.Failed)}
	if d.CI != nil {
		out.CiLow, out.CiHigh = bytes(&d.CI.Low), bytes(&d.CI.High)
	}
	if d.ChangeCI != nil {
		out.ChangeLowPercent, out.ChangeHighPercent = &d.ChangeCI.Low, &d.ChangeCI.High
	}
	return out
}

// asProbe is a row of probes in seconds.
func asProbe(r *report.ProbeRow) *linktrialv1.ProbeSummary {
	seconds := func(ms *float64) *float64 {
		if ms == nil {
			return nil
		}
		s := *ms / 1e3
		return &s
	}
	out := &linktrialv1.ProbeSummary{
		Probe: r.Probe, Label: r.Label, Beside: r.BesideLabel, Measured: int32(r.Measured), Planned: int32(r.Trials), Dscp: int32(r.DSCP),
		Sent: r.Sent, Received: r.Received, Lost: r.Lost, LossShare: r.LossShare, LossBursts: r.LossBursts, LongestLossBurst: r.LongestLossBurst,
		Unsent: r.Unsent, Reordered: r.Reordered, Duplicated: r.Duplicated,
		DelayMin: seconds(r.DelayMinMS), DelayMean: seconds(r.DelayMeanMS), DelayP50: seconds(r.DelayP50MS), DelayP95: seconds(r.DelayP95MS),
		DelayP99: seconds(r.DelayP99MS), DelayMax: seconds(r.DelayMaxMS), Jitter: seconds(r.JitterMS), JitterMax: seconds(r.JitterMaxMS),
		Uncertainty: seconds(r.UncertaintyMS), FailedTransfers: int32(r.FailedTransfers),
		RFactor: r.RFactor, Mos: r.MOS, Capacity: asCapacity(r.Capacity),
	}
	for i := range r.Messages {
		m := &r.Messages[i]
		x := &linktrialv1.MessagesSummary{Bytes: m.Bytes, Packets: m.Packets, Sent: m.Sent, Delivered: m.Delivered,
			TimeMin: seconds(m.TimeMinMS), TimeP50: seconds(m.TimeP50MS), TimeP95: seconds(m.TimeP95MS), TimeMax: seconds(m.TimeMaxMS)}
		if c := m.DeliveredCI; c != nil {
			x.ShareLow, x.ShareHigh = &c.Low, &c.High
		}
		out.Messages = append(out.Messages, x)
	}
	for _, f := range r.Failures {
		out.Failures = append(out.Failures, fmt.Sprintf("%d× %s", f.Attempts, cmp.Or(f.Reason, string(f.Verdict))))
	}
	if r.Unloaded > 0 {
		out.Failures = append(out.Failures, fmt.Sprintf("%d× left out: %s", r.Unloaded, report.UnloadedNote))
	}
	return out
}

// asCapacity is what searches found in seconds; nil: there was none.
func asCapacity(c *report.CapacityRow) *linktrialv1.CapacitySummary {
	if c == nil {
		return nil
	}
	out := &linktrialv1.CapacitySummary{Measured: int32(c.Measured), Maximum: value(c.MaximumBPS), Mean: value(c.MeanBPS), Payload: value(c.PayloadBPS), Bottleneck: c.BottleneckBPS,
		Rate: value(c.RateBPS), LossShare: value(c.LossShare), DelayMean: value(c.DelayMeanMS) / 1e3, DelayP95: value(c.DelayP95MS) / 1e3, PacketBytes: value(c.PacketBytes),
		Interval: value(c.IntervalMS) / 1e3, LargestPayload: c.LargestPayloadBytes, Unfinished: int32(c.Unfinished), Highest: int32(c.Highest)}
	if r := c.MaximumCI; r != nil {
		out.MaximumLow, out.MaximumHigh = &r.Low, &r.High
	}
	return out
}

func asTreatment(r *report.Row, attempted int32) *linktrialv1.TreatmentSummary {
	bytesPerSecond := func(kb *float64) float64 { return value(kb) * unit.KB }
	out := &linktrialv1.TreatmentSummary{
		Name: r.Treatment, Label: r.Label, Protocol: r.Protocol, Missing: r.Missing, Via: r.Via,
		Valid: int32(r.Valid), Attempted: attempted, Failed: int32(r.Failed), Planned: int32(r.Trials),
		Average: bytesPerSecond(r.AverageKBps), Sd: bytesPerSecond(r.SDKBps), Min: bytesPerSecond(r.MinKBps), Max: bytesPerSecond(r.MaxKBps),
		Median: bytesPerSecond(r.MedianKBps), P05: bytesPerSecond(r.P05KBps), P25: bytesPerSecond(r.P25KBps), P75: bytesPerSecond(r.P75KBps), P95: bytesPerSecond(r.P95KBps),
		IdealShare: r.ShareOfIdeal, CodedBoundShare: r.ShareOfCodedBound, ConnectAverage: value(r.ConnectSeconds), RetransmitsAverage: r.Retransmits, TimeoutsAverage: r.Timeouts,
	}
	out.IdealAverage, out.CodedBoundAverage = perSecond(r.IdealKBps), perSecond(r.CodedBoundKBps)
	if r.MeanCI != nil {
		out.CiLow, out.CiHigh = r.MeanCI.Low*unit.KB, r.MeanCI.High*unit.KB
	}
	if c := r.Comparison; c != nil {
		out.Ratio, out.PValue, out.PHolm = c.Ratio, c.P, c.PHolm
		if c.RatioCI != nil {
			out.RatioLow, out.RatioHigh = &c.RatioCI.Low, &c.RatioCI.High
		}
	}
	if p := r.Published; p != nil {
		out.Published = &linktrialv1.PublishedValue{Average: p.AvgKBps * unit.KB, Sd: p.SDKBps * unit.KB, Min: p.MinKBps * unit.KB, Max: p.MaxKBps * unit.KB, N: int32(p.N), Source: p.Source}
	}
	out.Delivery = asDelivery(r.Delivery)
	for _, f := range r.Failures {
		name := f.Reason
		if name == "" {
			name = string(f.Verdict)
		}
		out.Failures = append(out.Failures, fmt.Sprintf("%d× %s", f.Attempts, name))
	}
	return out
}

func asDelivery(d *report.Delivery) *linktrialv1.Delivery {
	if d == nil {
		return nil
	}
	out := &linktrialv1.Delivery{Trials: int32(d.Trials), Horizon: d.HorizonSeconds, Share: value(d.Share), Mean: value(d.MeanSeconds),
		Median: d.MedianSeconds, MedianLow: d.MedianLow, MedianHigh: d.MedianHigh, Goodput: perSecond(d.GoodputKBps)}
	if r := d.ShareCI; r != nil {
		out.ShareLow, out.ShareHigh = r.Low, r.High
	}
	if r := d.MeanCI; r != nil {
		out.MeanLow, out.MeanHigh = &r.Low, &r.High
	}
	for _, s := range thinned(d.Curve, maxCurve) {
		out.CurveTime, out.CurveShare = append(out.CurveTime, s.Seconds), append(out.CurveShare, value(s.Share))
		out.CurveLow, out.CurveHigh = append(out.CurveLow, s.ShareCI.Low), append(out.CurveHigh, s.ShareCI.High)
	}
	if x := d.Difference; x != nil {
		out.Pairs, out.Sooner, out.SoonerP, out.SoonerPHolm = int32(x.Pairs), x.SoonerSeconds, x.P, x.PHolm
		if r := x.SoonerCI; r != nil {
			out.SoonerLow, out.SoonerHigh = &r.Low, &r.High
		}
	}
	return out
}

// maxCurve is how many steps of a curve are sent: a chart cannot show more.
const maxCurve = 250

// thinned is so many of the steps at most, evenly, and the last.
func thinned(steps []report.DeliveryStep, most int) []report.DeliveryStep {
	n := len(steps)
	if n <= most {
		return steps
	}
	out := make([]report.DeliveryStep, most)
	for i := range out {
		out[i] = steps[(i+1)*n/most-1]
	}
	return out
}

// perSecond is a throughput in bytes per second.
func perSecond(kb *float64) *float64 {
	if kb == nil {
		return nil
	}
	b := *kb * unit.KB
	return &b
}

func value(x *float64) float64 {
	if x == nil {
		return 0
	}
	return *x
}

var pointVerdicts = map[journal.Verdict]linktrialv1.PointVerdict{
	journal.Succeeded: linktrialv1.PointVerdict_POINT_VERDICT_SUCCEEDED,
	journal.Failed:    linktrialv1.PointVerdict_POINT_VERDICT_FAILED,
	journal.TimedOut:  linktrialv1.PointVerdict_POINT_VERDICT_TIMED_OUT,
	journal.Aborted:   linktrialv1.PointVerdict_POINT_VERDICT_ABORTED,
	journal.Invalid:   linktrialv1.PointVerdict_POINT_VERDICT_INVALID,
}

// asPoints is every attempt of a run.
func asPoints(t *report.RunTable, r *report.Run) *linktrialv1.Points {
	place := map[string]int32{}
	for i := range t.Rows {
		place[t.Rows[i].Treatment] = int32(i)
	}
	p := &linktrialv1.Points{Reason: map[int32]string{}}
	for i := range r.Trials {
		trial := &r.Trials[i]
		if _, compared := place[trial.Treatment]; !compared {
			continue // a probe's
		}
		for k := range trial.Attempts {
			a := &trial.Attempts[k]
			verdict := pointVerdicts[a.Verdict]
			if a.Verdict == journal.Succeeded && !a.Verified {
				verdict = linktrialv1.PointVerdict_POINT_VERDICT_UNVERIFIED
			}
			if a.Reason != "" {
				p.Reason[int32(len(p.Trial))] = a.Reason
			}
			p.Trial, p.Attempt, p.Iteration = append(p.Trial, int32(trial.Index)), append(p.Attempt, int32(a.Attempt)), append(p.Iteration, int32(trial.Iteration))
			p.Treatment, p.Verdict = append(p.Treatment, place[trial.Treatment]), append(p.Verdict, verdict)
			p.Throughput, p.Elapsed = append(p.Throughput, a.ThroughputBytesPerSecond()), append(p.Elapsed, a.Elapsed.Seconds())
			p.Ideal, p.CodedBound = append(p.Ideal, a.Ideal.Seconds()), append(p.CodedBound, a.CodedBound.Seconds())
			p.Counts = append(p.Counts, trial.Counted() == a)
		}
	}
	return p
}
