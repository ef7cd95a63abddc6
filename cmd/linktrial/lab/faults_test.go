package lab

import (
	"testing"

	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
)

// A trial whose last attempt says nothing of its protocol is excluded, and not failed.
func TestTally(t *testing.T) {
	all := tally{uncounted: map[string]int{}}
	for verdict, attempts := range map[string][]*linktrialv1.AttemptRow{
		"succeeded": {{Verdict: "invalid", Reason: "radio-down"}, {Verdict: "succeeded"}},
		"failed":    {{Verdict: "failed", Reason: "reset"}},
		"timed-out": {{Verdict: "timed-out", Reason: "transfer-timeout"}},
		"invalid":   {{Verdict: "invalid", Reason: "marked"}},
		"aborted":   {{Verdict: "aborted", Reason: "interrupted"}},
		"":          {{}},
	} {
		all.add(&linktrialv1.TrialRow{Verdict: verdict, Attempts: attempts})
	}
	require.Equal(t, tally{trials: 6, succeeded: 1, failed: 2, excluded: 2, open: 1, uncounted: map[string]int{"radio-down": 1, "marked": 1, "interrupted": 1}}, all)
}
