package executor

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/executor/credible"
	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol"
)

// load is a node whose processors kept a stated time from every attempt.
type load struct{ missed, tolerated time.Duration }

func (l *load) Begin(tolerate time.Duration) (end func() journal.HostLoad) {
	l.tolerated = tolerate
	return func() journal.HostLoad { return journal.HostLoad{Missed: l.missed, Longest: l.missed} }
}

// Only a plan's rule makes an attempt invalid, whatever its flows ended with; without one
// the measurement is kept.
func TestStarvedHost(t *testing.T) {
	for name, x := range map[string]struct {
		rule    *runsheet.Valid
		missed  time.Duration
		verdict journal.Verdict
	}{
		"no rule":                  {nil, time.Second, journal.Succeeded},
		"rules about other things": {&runsheet.Valid{PositionMetres: 5}, time.Second, journal.Succeeded},
		"within the rule":          {&runsheet.Valid{HostShare: 0.03}, 300 * time.Millisecond, journal.Succeeded},
		"beyond the rule":          {&runsheet.Valid{HostShare: 0.03}, 301 * time.Millisecond, journal.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			n := &node{Config: Config{Role: radio.RoleClient, Host: &load{missed: x.missed}}, sheet: &runsheet.Sheet{Valid: x.rule}, tolerance: &credible.RealTime, log: slog.New(slog.DiscardHandler)}
			f := &flow{node: n}
			f.decide(journal.Succeeded, "", "")
			end := &journal.AttemptEnded{Duration: 10 * time.Second}
			n.measureHost()(end)
			n.holdHost([]*flow{f}, end)
			require.Equal(t, x.missed, end.Host.Missed)
			require.Equal(t, x.verdict, f.result.Verdict)
			if x.verdict == journal.Invalid {
				require.Equal(t, journal.ReasonHost, f.result.Reason)
				require.True(t, journal.ApparatusFault(f.result.Reason), "it is repeated")
				require.Contains(t, f.result.Message, "3.0 % of the attempt (301ms), at most 3 % are allowed")
			}
		})
	}
}

// An emulated radio that was late is held to the same rule.
func TestLateRadio(t *testing.T) {
	for share, verdict := range map[float64]journal.Verdict{0: journal.Succeeded, 0.03: journal.Invalid, 0.04: journal.Succeeded} {
		n := &node{Config: Config{Role: radio.RoleClient}, sheet: &runsheet.Sheet{Valid: &runsheet.Valid{HostShare: share}}, tolerance: &credible.RealTime}
		f := &flow{node: n}
		f.decide(journal.Succeeded, "", "")
		n.holdHost([]*flow{f}, &journal.AttemptEnded{Duration: 10 * time.Second, Host: &journal.HostLoad{},
			Radio: &radiocontrol.Report{Late: &radiocontrol.Late{Missed: 350 * time.Millisecond, Longest: 40 * time.Millisecond}}})
		require.Equal(t, verdict, f.result.Verdict)
		if verdict == journal.Invalid {
			require.Equal(t, journal.ReasonHost, f.result.Reason)
			require.Contains(t, f.result.Message, "rule host: the emulated radio gave packets out late for 3.5 % of the attempt (350ms), at most 3 % are allowed; the longest time was 40ms")
		}
	}
}

// Where the agent may have read an event late, times that contradict its reading are no
// evidence against the driver.
func TestTimesReadLate(t *testing.T) {
	for name, x := range map[string]struct {
		longest time.Duration
		reason  string
		want    string
	}{
		"an agent that ran":         {499 * time.Millisecond, journal.ReasonLongerThanRun, journal.ReasonLongerThanRun},
		"an agent that did not run": {500 * time.Millisecond, journal.ReasonLongerThanRun, journal.ReasonHost},
		"a shorter time":            {time.Second, journal.ReasonShorterThanRun, journal.ReasonHost},
		"another value":             {time.Second, journal.ReasonFasterThanRadio, journal.ReasonFasterThanRadio},
	} {
		t.Run(name, func(t *testing.T) {
			n := &node{Config: Config{Role: radio.RoleClient, Host: &load{missed: x.longest}}, sheet: &runsheet.Sheet{}, tolerance: &credible.RealTime, log: slog.New(slog.DiscardHandler)}
			f := &flow{node: n}
			f.decide(journal.Invalid, x.reason, "as scripted")
			end := &journal.AttemptEnded{Duration: 10 * time.Second}
			n.measureHost()(end)
			n.holdHost([]*flow{f}, end)
			require.Equal(t, x.want, f.result.Reason)
			require.Equal(t, journal.Invalid, f.result.Verdict)
			require.Contains(t, f.result.Message, "as scripted")
		})
	}
}

// Nobody measures in virtual time.
func TestHostNotMeasured(t *testing.T) {
	n := &node{sheet: &runsheet.Sheet{Valid: &runsheet.Valid{HostShare: 0.01}}}
	end := &journal.AttemptEnded{Duration: time.Second}
	n.measureHost()(end)
	n.holdHost([]*flow{{node: n}}, end)
	require.Nil(t, end.Host)
}

func TestTolerableLateness(t *testing.T) {
	require.Equal(t, realLate, TolerableLateness(nil), "nothing is known of a real radio")
}
