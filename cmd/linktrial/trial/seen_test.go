package trial

import (
	"testing"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
)

// A view that reconnects shows an attempt once, and again where its verdict has changed.
func TestSeen(t *testing.T) {
	s := newSeen()
	event := func(attempt int32, verdict, reason string) *linktrialv1.WatchResponse {
		return &linktrialv1.WatchResponse{Event: &linktrialv1.WatchResponse_TrialEnded{TrialEnded: &linktrialv1.TrialEnded{RunId: "r-1", Trial: 3,
			Attempt: &linktrialv1.AttemptRow{Attempt: attempt, Verdict: verdict, Reason: reason}}}}
	}
	for _, c := range []struct {
		attempt         int32
		verdict, reason string
		want            bool
	}{
		{1, "succeeded", "", true}, {1, "succeeded", "", false}, {2, "succeeded", "", true},
		{1, "invalid", "marked: the cable", true}, {1, "invalid", "marked: the cable", false}, {1, "succeeded", "", true},
	} {
		if got := s.first(event(c.attempt, c.verdict, c.reason)); got != c.want {
			t.Errorf("attempt %d, %s (%s): shown %v, expected %v", c.attempt, c.verdict, c.reason, got, c.want)
		}
	}
	if !s.first(&linktrialv1.WatchResponse{}) {
		t.Error("another event is not shown")
	}
}
