package executor

import (
	"time"

	"linktrial/executor/runsheet"
	"linktrial/protocols/contract"
)

// probeEnd is how long a probe may take from its last packet to its result.
const probeEnd = contract.ProbeDrainMS * time.Millisecond

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
