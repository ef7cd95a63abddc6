package sheet

import (
	"math"
	"slices"
	"time"

	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/orchestrator/plan"
	"linktrial/protocols/contract"
)

// flows is the flows of one trial of a treatment or mix, none of a probe's.
func flows(p *plan.Plan, c *plan.Cell, n *radio.Network, where []string, iteration int, name string) []runsheet.Flow {
	out := []runsheet.Flow{} // written as an empty list, not as null
	if isProbe(c, name) {
		return out
	}
	specs := c.Flows
	if i := slices.IndexFunc(c.Mixes, func(m plan.Mix) bool { return m.Name == name }); i >= 0 {
		specs = c.Mixes[i].Flows
	}
	session := 0
	add := func(f runsheet.Flow) {
		f.PayloadSeed = derive(p.Seed, "payload", append(where, number(int64(iteration)), name, number(int64(len(out))))...)
		out = append(out, f)
	}
	for entry, spec := range specs {
		f := runsheet.Flow{Treatment: spec.Treatment, From: spec.From, To: spec.To, SizeBytes: spec.SizeBytes, Duration: spec.Duration}
		if f.Treatment == "" {
			f.Treatment = name
		}
		switch {
		case f.Duration > 0:
			f.SizeBytes = endless(n, &f)
		case f.SizeBytes == 0:
			f.SizeBytes = c.SizeBytes
		}
		for i := range spec.Count {
			f.Start = spec.Start + time.Duration(i)*spec.Spacing
			if spec.OnMean == 0 {
				add(f)
				continue
			}
			session++
			parts := append(slices.Clone(where), number(int64(iteration)), number(int64(entry)), number(int64(i)))
			for _, on := range onTimes(p.Seed, parts, spec) {
				g := f
				g.Start, g.Duration, g.Session = f.Start+on.start, on.length, session
				g.SizeBytes = endless(n, &g)
				add(g)
			}
		}
	}
	return out
}

func isProbe(c *plan.Cell, name string) bool {
	return slices.ContainsFunc(c.Treatments, func(t runsheet.Treatment) bool { return t.Name == name && t.Probe })
}

// probes is the probes of one trial of a treatment or mix: beside its flows, or of
// a probe's own trial that one alone, in each direction that has one.
func probes(p *plan.Plan, c *plan.Cell, where []string, iteration int, name string) (out []runsheet.Flow) {
	for _, spec := range c.ProbesOf(name) {
		if !slices.ContainsFunc(slices.Concat(c.Treatments, c.Listeners), func(t runsheet.Treatment) bool { return t.Name == spec.Treatment && t.Missing == "" }) {
			continue // its driver is missing, which the results say
		}
		f := runsheet.Flow{Treatment: spec.Treatment, From: spec.From, To: spec.To}
		if isProbe(c, name) {
			f.Duration = spec.Alone
		}
		parts := append(slices.Clone(where), number(int64(iteration)), spec.Treatment)
		if f.FromServer() { // who speaks at the other end has pauses of their own
			parts = append(parts, string(f.From))
		}
		f.PayloadSeed = derive(p.Seed, "probe", parts...)
		out = append(out, f)
	}
	return out
}

// endless is more than the radio can carry in the flow's duration: a quarter
// and a MiB above its fastest link's rate.
func endless(n *radio.Network, f *runsheet.Flow) int64 {
	if n == nil {
		return contract.MaxSize
	}
	rate := 0.0
	for i := range n.Links {
		rate = max(rate, fastest(&n.Links[i]))
	}
	return int64(min(contract.MaxSize, math.Ceil(rate/8*f.Duration.Seconds()*1.25)+1<<20))
}

// fastest is the highest rate a link ever has.
func fastest(l *radio.Link) float64 {
	rate := l.RateBitsPerSecond
	for _, c := range []*radio.Channel{&l.Channel, l.Back} {
		if c == nil {
			continue
		}
		for _, part := range append([]radio.Channel{*c}, c.Parts...) {
			if part.Trace != nil && len(part.Trace.RateBitsPerSecond) > 0 {
				rate = max(rate, slices.Max(part.Trace.RateBitsPerSecond))
			}
		}
	}
	return rate
}

type onTime struct{ start, length time.Duration }

// shortestOn keeps an on-time long enough to connect and send something.
const shortestOn = time.Millisecond

// onTimes draws when a source is on, from 0 to the specification's duration:
// on-times and idle times in turn, exponential with its means, rounded to the
// millisecond so that they are the same on every machine.
func onTimes(seed uint64, parts []string, spec plan.FlowSpec) []onTime {
	var out []onTime
	drawn := int64(0)
	exponential := func(mean time.Duration) time.Duration {
		u := (float64(derive(seed, "on-off", append(parts[:len(parts):len(parts)], number(drawn))...)>>11) + 0.5) / (1 << 53)
		drawn++
		return time.Duration(-math.Log(u) * float64(mean)).Round(time.Millisecond)
	}
	for at := time.Duration(0); at < spec.Duration; {
		on := max(shortestOn, exponential(spec.OnMean))
		out = append(out, onTime{at, min(on, spec.Duration-at)})
		at += on + exponential(spec.IdleMean)
	}
	return out
}
