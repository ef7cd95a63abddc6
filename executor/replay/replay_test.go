package replay_test

import (
	"testing"

	"linktrial/executor/journal"
	"linktrial/executor/replay"
)

// TestUndetermined holds that a trial is not lost for an attempt that nothing explains,
// and that one which never ends otherwise ends.
func TestUndetermined(t *testing.T) {
	t.Parallel()
	var trial replay.Trial
	for n := range journal.FreeUndetermined {
		trial.EndAttempt(&journal.AttemptEnded{Verdict: journal.Invalid, Reason: journal.ReasonUndetermined})
		if trial.Over(1) {
			t.Fatalf("the trial is over after %d undetermined attempts", n+1)
		}
	}
	saved := trial
	trial.EndAttempt(&journal.AttemptEnded{Verdict: journal.Invalid, Reason: journal.ReasonUndetermined})
	if v, _ := trial.Verdict(); !trial.Over(1) || v != journal.Invalid {
		t.Errorf("one more: over %v, %q; expected that it is, as invalid", trial.Over(1), v)
	}
	saved.EndAttempt(&journal.AttemptEnded{Verdict: journal.Succeeded})
	if v, _ := saved.Verdict(); !saved.Over(1) || v != journal.Succeeded {
		t.Errorf("a success: over %v, %q", saved.Over(1), v)
	}
}
