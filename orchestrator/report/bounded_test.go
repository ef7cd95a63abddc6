package report

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
)

func TestThroughputOfFlowsThatTimesBound(t *testing.T) {
	const s = time.Second
	attempt := func(elapsed time.Duration, flows ...Flow) *Attempt {
		a := &Attempt{Verdict: journal.Succeeded, Verified: true, Elapsed: elapsed, Flows: flows}
		for _, f := range flows {
			a.SizeBytes += f.SizeBytes
		}
		return a
	}
	for name, c := range map[string]struct {
		attempt *Attempt
		want    float64 // B/s
	}{
		"sizes":             {attempt(20*s, Flow{SizeBytes: 1000, Elapsed: 10 * s}, Flow{SizeBytes: 1000, Elapsed: 20 * s}), 100},
		"in time":           {attempt(10*s, Flow{SizeBytes: 1000, Elapsed: 10 * s, Bound: 10 * s}, Flow{SizeBytes: 500, Elapsed: 10 * s, Bound: 10 * s}), 150},
		"one is late":       {attempt(40*s, Flow{SizeBytes: 1000, Elapsed: 10 * s, Bound: 10 * s}, Flow{SizeBytes: 400, Elapsed: 40 * s, Bound: 10 * s}), 110},
		"at other times":    {attempt(60*s, Flow{Start: 5 * s, SizeBytes: 1000, Elapsed: 10 * s, Bound: 10 * s}, Flow{Start: 20 * s, SizeBytes: 1000, Elapsed: 40 * s, Bound: 10 * s}), 50},
		"one connects late": {attempt(20*s, Flow{SizeBytes: 1000, Connect: 1 * s, Elapsed: 10 * s, Bound: 10 * s}, Flow{SizeBytes: 1000, Connect: 11 * s, Elapsed: 10 * s, Bound: 10 * s}), 100},
		"some have sizes":   {attempt(40*s, Flow{SizeBytes: 1000, Elapsed: 10 * s, Bound: 10 * s}, Flow{SizeBytes: 1000, Elapsed: 40 * s}), 50},
		"one flow alone":    {attempt(40 * s), 0},
	} {
		t.Run(name, func(t *testing.T) {
			require.InDelta(t, c.want, c.attempt.ThroughputBytesPerSecond(), 1e-9)
		})
	}

	// The sources of a trial are its throughput.
	a := attempt(60*s, Flow{Session: 1, SizeBytes: 1000, Elapsed: 10 * s, Bound: 10 * s}, Flow{Session: 2, Start: 5 * s, SizeBytes: 600, Elapsed: 20 * s, Bound: 10 * s},
		Flow{Session: 1, Start: 15 * s, SizeBytes: 700, Elapsed: 45 * s, Bound: 5 * s})
	o := observe(&Trial{Iteration: 1}, a, 0)
	require.Len(t, o.flows, 2)
	require.InDelta(t, o.kbps, o.flows[0].kbps+o.flows[1].kbps, 1e-9)
}
