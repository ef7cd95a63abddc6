package report

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radiocontrol"
)

func TestHostNote(t *testing.T) {
	attempt := func(v journal.Verdict, missed time.Duration) []Attempt {
		return []Attempt{{Verdict: v, Duration: 10 * time.Second, Host: &journal.HostLoad{Missed: missed}}}
	}
	r := &Run{Sheet: &runsheet.Sheet{Treatments: []runsheet.Treatment{{Name: "a", Label: "TCP"}, {Name: "b", Label: "Haul"}}}, Trials: []Trial{
		{Treatment: "a", Attempts: attempt(journal.Succeeded, 200*time.Millisecond)},
		{Treatment: "b", Attempts: attempt(journal.Succeeded, 201*time.Millisecond)},
		{Treatment: "b", Attempts: attempt(journal.TimedOut, time.Second)},
		{Treatment: "a", Attempts: attempt(journal.Invalid, time.Second)},
		{Treatment: "a", Attempts: []Attempt{{Verdict: journal.Succeeded, Duration: time.Second}}},
		{Treatment: "a"},
	}}
	require.Equal(t, "2 of 4 attempts that count ran on a starved host: the leading node's processors kept programs waiting (in 2) for over 2 % of the time, so that their values may be the machine's (Haul 2). The rule \"host\" of plans has such attempts repeated.", r.hostNote())
	r.Trials[0].Attempts[0].Radio = &RadioReport{Late: &radiocontrol.Late{Missed: time.Second}}
	r.Trials[1].Attempts[0].Radio = &RadioReport{Late: &radiocontrol.Late{Missed: 200 * time.Millisecond}}
	require.Contains(t, r.hostNote(), "3 of 4 attempts that count ran on a starved host: the leading node's processors kept programs waiting (in 2), the emulated radio gave packets out late (in 1) for over 2 % of the time, so that their values may be the machine's (TCP 1, Haul 2).")
	r.Trials[0].Attempts[0].Radio = nil
	r.Trials = r.Trials[:1]
	require.Empty(t, r.hostNote(), "none is")
}
