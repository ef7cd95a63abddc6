package stoprule

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/executor/replay"
	"linktrial/executor/runsheet"
	"linktrial/internal/stats"
	"linktrial/protocols/contract"
)

type noRecords struct{}

func (noRecords) Records(func(journal.Record) error) error { return nil }

func ended(t *testing.T, s *replay.State, trial int, attempts ...journal.AttemptEnded) {
	t.Helper()
	for i := range attempts {
		s.Trial(trial).EndAttempt(&attempts[i])
	}
	s.EndTrial(trial)
}

func flow(connect, elapsed time.Duration) journal.FlowResult {
	return journal.FlowResult{ConnectNS: int64(connect), Result: &contract.Result{ElapsedNS: int64(elapsed)}}
}

// What the protocol failed before is waited for, what the apparatus failed is not; a trial that
// failed counts as the horizon, and one that tells nothing has no time.
func TestTimes(t *testing.T) {
	s := &runsheet.Sheet{Limits: runsheet.Limits{Transfer: 100 * time.Second}}
	for i := range 6 {
		s.Trials = append(s.Trials, runsheet.Trial{Index: i, Iteration: i + 1, Treatment: "a", Flows: []runsheet.Flow{{Start: time.Second}, {Start: 3 * time.Second}}})
	}
	state, err := replay.Journal(noRecords{})
	require.NoError(t, err)
	good := journal.AttemptEnded{Verdict: journal.Succeeded, Flows: []journal.FlowResult{flow(time.Second, 9*time.Second), flow(2*time.Second, 10*time.Second)}}
	ended(t, state, 0, good)
	ended(t, state, 1, journal.AttemptEnded{Verdict: journal.TimedOut, Duration: 40 * time.Second}, journal.AttemptEnded{Verdict: journal.Invalid, Reason: journal.ReasonRadioDown, Duration: 50 * time.Second}, good)
	ended(t, state, 2, journal.AttemptEnded{Verdict: journal.Failed, Duration: time.Second})
	ended(t, state, 3, journal.AttemptEnded{Verdict: journal.Invalid, Reason: journal.ReasonFasterThanRadio})
	state.Trial(4).EndAttempt(&good) // its trial has not ended
	ended(t, state, 5, good)
	require.Equal(t, Times{"a": {1: 14, 2: 54, 3: 100}}, TimesOf(s, state, 5), "from the first start of a flow to the last end, up to iteration 5")
	s.Limits.Horizon = 20 * time.Second
	require.Equal(t, Times{"a": {1: 14, 2: 20, 3: 20}}, TimesOf(s, state, 5))
}

// What was beaten stays so, whatever later looks find, and a rule that cannot be followed stops
// nothing.
func TestJudge(t *testing.T) {
	s := &runsheet.Sheet{Stop: &runsheet.Stop{Looks: []int{10, 20}, Alpha: 0.05, Spending: stats.Pocock},
		Treatments: []runsheet.Treatment{{Name: "a"}, {Name: "b"}}}
	times := Times{}
	for i := range 20 {
		for k, name := range []string{"a", "b"} {
			s.Trials = append(s.Trials, runsheet.Trial{Index: 2*i + k, Iteration: i + 1, Treatment: name, Flows: []runsheet.Flow{{}}})
			times.Set(name, i+1, 10+float64(i)/10)
		}
	}
	l := Judge(s, times, 10, nil)
	require.Empty(t, l.Beaten)
	require.False(t, l.Stop)
	require.Equal(t, 10, l.Comparisons[0].Pairs)
	l = Judge(s, times, 20, []string{"b"})
	require.Equal(t, []string{"b"}, l.Beaten)
	require.True(t, l.Stop)
	require.True(t, NotNeeded(&s.Trials[39], []journal.Look{{Iteration: 19, Stop: true}}))
	require.False(t, NotNeeded(&s.Trials[38], []journal.Look{{Iteration: 19, Beaten: []string{"b"}}}))
	times.Set("a", 3, 0)
	l = Judge(s, times, 10, nil)
	require.Contains(t, l.Fault, "iteration 3: expected positive values")
	require.False(t, l.Stop)
	require.Empty(t, l.Beaten)
}
