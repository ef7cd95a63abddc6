package executor

import (
	"sync"
	"time"

	"linktrial/executor/runsheet"
	"linktrial/protocols/contract"
)

// probeEnd is how long a probe may take from its last packet to its figures.
const probeEnd = contract.ProbeDrainMS * time.Millisecond

// limit bounds the flow from its connected event to its result. A probe has the
// time of the flows that it accompanies, or its own, and that of its end.
func (f *flow) limit() time.Duration {
	if !f.probe {
		return f.node.sheet.Limits.Transfer
	}
	return probeLimit(f.node.sheet, &f.node.sheet.Trials[f.trial], &f.spec)
}

func probeLimit(s *runsheet.Sheet, t *runsheet.Trial, probe *runsheet.Flow) time.Duration {
	if len(t.Flows) == 0 {
		return probe.Duration + probeEnd
	}
	last := time.Duration(0)
	for i := range t.Flows {
		last = max(last, t.Flows[i].Start)
	}
	return last + s.Limits.Connect + s.Limits.Transfer + 2*contract.LimitPatience + probeEnd
}

// longestProbe bounds the probes of a treatment at their listener.
func longestProbe(s *runsheet.Sheet, treatment string) (longest time.Duration) {
	for i := range s.Trials {
		t := &s.Trials[i]
		for k := range t.Probes {
			if t.Probes[k].Treatment == treatment {
				longest = max(longest, probeLimit(s, t, &t.Probes[k])+contract.LimitPatience)
			}
		}
	}
	return longest
}

// bulk splits the flows of an attempt from its probes, which follow them.
func bulk(flows []*flow) (transfers, probes []*flow) {
	for i, f := range flows {
		if f.probe {
			return flows[:i], flows[i:]
		}
	}
	return flows, nil
}

// beside lets probes know when the last of the flows that they accompany has its
// outcome; stop says that none will get one any more.
func beside(flows []*flow) (stop func()) {
	transfers, probes := bulk(flows)
	if len(transfers) == 0 || len(probes) == 0 {
		return func() {}
	}
	over := make(chan struct{})
	end := sync.OnceFunc(func() { close(over) })
	var mu sync.Mutex
	left := len(transfers)
	for _, f := range transfers {
		f.onOver = sync.OnceFunc(func() {
			mu.Lock()
			defer mu.Unlock()
			if left--; left == 0 {
				end()
			}
		})
	}
	for _, p := range probes {
		p.load = over
	}
	return end
}
