package executor

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/stats"
	"linktrial/protocols/contract"
)

// failing is a runner of drivers of which some always fail.
type failing string

func (f failing) Start(ctx context.Context, protocol string, p *contract.Parameters, payload io.Reader) (Process, error) {
	s := scripted{}
	if strings.Contains(string(f), protocol) {
		s.fail = func(*contract.Parameters) contract.Code { return contract.CodeReset }
	}
	return s.Start(ctx, protocol, p, payload)
}

// stopSheet has 20 iterations of three treatments, and a rule that looks after 10, 15 and 20.
func stopSheet(t testing.TB) []byte {
	t.Helper()
	s, err := runsheet.Decode(testSheet(t, 0, 1))
	require.NoError(t, err)
	s.Treatments = append(s.Treatments, runsheet.Treatment{Name: "c", Protocol: "c", Port: 5003})
	s.Stop = &runsheet.Stop{Looks: []int{10, 15, 20}, Alpha: 0.05, Spending: stats.Pocock}
	for i := range 60 {
		name := s.Treatments[i%3].Name
		s.Trials = append(s.Trials, runsheet.Trial{Index: i, Iteration: i/3 + 1, Treatment: name,
			Flows: []runsheet.Flow{{Treatment: name, From: "client", To: "server", SizeBytes: 1000, PayloadSeed: uint64(i)}}})
	}
	b, err := s.Encode()
	require.NoError(t, err)
	return b
}

// told is what a journal says of looks and of trials that the rule ended, in its order.
func told(t testing.TB, j Journal) (lines []string) {
	t.Helper()
	notNeeded := 0
	flush := func() {
		if notNeeded > 0 {
			lines = append(lines, fmt.Sprintf("%d trials not needed", notNeeded))
			notNeeded = 0
		}
	}
	for _, r := range read(t, j) {
		switch r.Type {
		case journal.TypeLook:
			flush()
			lines = append(lines, journal.Text(r.Type, r.Body))
		case journal.TypeTrialEnded:
			if b := body[journal.TrialEnded](t, r); b.Reason == journal.ReasonNotNeeded {
				require.Equal(t, journal.TrialEnded{Trial: b.Trial, Verdict: journal.Aborted, Reason: journal.ReasonNotNeeded}, b)
				notNeeded++
			}
		case journal.TypeRunEnded:
			flush()
			lines = append(lines, string(body[journal.RunEnded](t, r).End))
		}
	}
	return lines
}

// A treatment that is beaten has no more trials, and the run ends when one is left; it is
// complete then. Treatments that are alike go on to the last iteration.
func TestRuleStops(t *testing.T) {
	for fails, want := range map[failing][]string{
		"": {"after iteration 10 the plan's rule lets the run go on", "after iteration 15 the plan's rule lets the run go on", "after iteration 20 the plan's rule lets the run go on", "completed"},
		"b": {"after iteration 10 the plan's rule lets the run go on without b", "10 trials not needed",
			"after iteration 15 the plan's rule lets the run go on without b", "after iteration 20 the plan's rule lets the run go on without b", "completed"},
		"bc": {"after iteration 10 the plan's rule stops the run: beaten are b, c", "30 trials not needed", "completed"},
	} {
		j := openJournal(t, filepath.Join(t.TempDir(), "j"), journal.Options{})
		require.NoError(t, Lead(context.Background(), config(stopSheet(t), j, fails, &fakeRadio{})))
		require.Equal(t, want, told(t, j), "%q fail", string(fails))
		j.Close()
	}
}

// Wherever a crash cuts the journal around a look, the resumed run judges alike, once.
func TestRuleStopsAfterACrash(t *testing.T) {
	sheet, path := stopSheet(t), filepath.Join(t.TempDir(), "j")
	run := func() ([]string, []journal.Record) {
		j := openJournal(t, path, journal.Options{})
		defer j.Close()
		require.NoError(t, Lead(context.Background(), config(sheet, j, failing("b"), &fakeRadio{})))
		return told(t, j), read(t, j)
	}
	want, _ := run()
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	first := bytes.Index(whole, []byte(`"look"`))
	require.Positive(t, first)
	begin := bytes.LastIndexByte(whole[:first], '\n') + 1
	cuts := 0
	for at := begin - 1; at < len(whole) && cuts < 30; at += 1 + bytes.IndexByte(whole[at+1:], '\n') {
		for _, cut := range []int{at, at + 1, at + 40} {
			require.NoError(t, os.WriteFile(path, whole[:min(cut, len(whole))], 0o600))
			got, records := run()
			// The trials of one look may be counted in two parts; the looks are the same.
			require.Equal(t, strings.Join(want, "\n"), strings.Join(got, "\n"), "cut at %d", cut)
			ended := map[int]int{}
			for _, r := range records {
				if r.Type == journal.TypeTrialEnded {
					ended[body[journal.TrialEnded](t, r).Trial]++
				}
			}
			require.Len(t, ended, 60)
			for trial, n := range ended {
				require.Equal(t, 1, n, "trial %d", trial)
			}
		}
		cuts++
	}
}

// A trial that the rule ended is not repeated; one that has run is.
func TestRepeatOfWhatIsNotNeeded(t *testing.T) {
	s, err := runsheet.Decode(stopSheet(t))
	require.NoError(t, err)
	j := openJournal(t, filepath.Join(t.TempDir(), "j"), journal.Options{})
	defer j.Close()
	n, state, err := begin(context.Background(), config(stopSheet(t), j, failing(""), &fakeRadio{}))
	require.NoError(t, err)
	p := &progress{node: n, state: state}
	for i := range s.Trials {
		p.state.EndTrial(i)
	}
	p.state.Looks = []journal.Look{{Iteration: 10, Beaten: []string{"b", "c"}, Stop: true}}
	p.state.Trial(3).Attempts = 1
	require.Empty(t, p.rejectReason(Command{Kind: journal.CommandRepeat, Trial: 3}))
	require.Equal(t, "trial 31 is not needed: the plan's rule to stop by had ended it", p.rejectReason(Command{Kind: journal.CommandRepeat, Trial: 31}))
}
