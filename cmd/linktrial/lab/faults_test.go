package lab

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/internal/faultlog"
)

// A trial whose last attempt says nothing of its protocol is excluded, and not failed.
func TestTally(t *testing.T) {
	all := tally{uncounted: map[string]int{}}
	for verdict, attempts := range map[string][]*linktrialv1.AttemptRow{
		"succeeded": {{Verdict: "invalid", Reason: "radio-down"}, {Verdict: "succeeded"}},
		"failed":    {{Verdict: "failed", Reason: "reset"}},
		"timed-out": {{Verdict: "timed-out", Reason: "transfer-timeout"}},
		"invalid":   {{Verdict: "invalid", Reason: "marked: the agent of the server did not run from 00:06:40.0 UTC to 00:06:44.1 UTC"}},
		"aborted":   {{Verdict: "aborted", Reason: "interrupted"}},
		"":          {{}},
	} {
		all.add(&linktrialv1.TrialRow{Verdict: verdict, Attempts: attempts})
	}
	require.Equal(t, tally{trials: 6, succeeded: 1, failed: 2, excluded: 2, open: 1, uncounted: map[string]int{"radio-down": 1, "marked": 1, "interrupted": 1}}, all)
}

// From a restart of the leading node its next attempt is looked for, in the run that was
// hit; other nodes' and what had no attempt after it have none.
func TestRestarts(t *testing.T) {
	at := func(seconds float64) time.Time {
		return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).Add(time.Duration(seconds * float64(time.Second)))
	}
	all := tally{begun: map[string][]time.Time{"a": {at(0), at(13.5), at(25)}, "b": {at(11), at(40)}}}
	agent, power := all.restarts(map[int]faultlog.Fault{
		1: {Kind: faultlog.Kill, Target: faultlog.Agent, Node: "client", Run: "a", From: at(10), To: at(12)},
		2: {Kind: faultlog.Restart, Target: faultlog.Agent, Node: "client", From: at(10), To: at(10.5)},
		3: {Kind: faultlog.PowerCut, Target: faultlog.Node, Node: "client", From: at(14), To: at(20)},
		4: {Kind: faultlog.PowerCut, Target: faultlog.Node, Node: "server", From: at(14), To: at(20)},
		5: {Kind: faultlog.Stop, Target: faultlog.Agent, Node: "client", From: at(14), To: at(20)},
		6: {Kind: faultlog.Kill, Target: faultlog.Agent, Node: "client", From: at(50), To: at(51)},
		7: {Kind: faultlog.Kill, Target: faultlog.Agent, Node: "client", From: at(10), Error: "none runs"},
	})
	require.Equal(t, []time.Duration{3500 * time.Millisecond, time.Second}, agent)
	require.Equal(t, []time.Duration{5 * time.Second}, power)
	require.Equal(t, "mean 2.2 s, longest 3.5 s (2)", meanAndLongest(agent))
	require.Equal(t, "none", meanAndLongest(nil))
}
