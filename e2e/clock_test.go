package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"linktrial/executor/journal"
	"linktrial/internal/faultlog"
	"linktrial/internal/testkind"
)

const clockPlan = `
name: clocks
radio: prc-117g-anw2c
topology: vip-lot
size: 64 KiB
treatments:
  - {name: tcp-cubic, protocol: tcp}
  - {name: haul, protocol: haul}
iterations: %d
order: fixed
seed: 7
limits: {connect: 10s, transfer: 60s, attempts: 2}
`

// steps are the steps of the clock that a node's journals of a rehearsal tell.
func (p *program) steps(role string) []time.Duration {
	p.t.Helper()
	files, err := filepath.Glob(filepath.Join(p.data, "agents", "rehearsal", role, "runs", "*", "journal.jsonl"))
	if err != nil || len(files) == 0 {
		p.t.Fatalf("journals of %s: %v (%v)", role, files, err)
	}
	var out []time.Duration
	for _, path := range files {
		f, err := os.Open(path)
		if err != nil {
			p.t.Fatal(err)
		}
		defer f.Close()
		if _, err := journal.Scan(f, func(r journal.Record, _ int64) error {
			var b journal.ClockStepped
			if r.Type != journal.TypeClockStepped {
				return nil
			}
			err := json.Unmarshal(r.Body, &b)
			out = append(out, b.By.Round(100*time.Millisecond))
			return err
		}); err != nil {
			p.t.Fatal(err)
		}
	}
	return out
}

// The clocks of all nodes step by a second, an hour and a year, forwards and back, while
// a plan runs, and agents are killed whose clocks are wrong. No trial is lost, repeated
// or labelled wrongly for it, and no time of the results shows it.
func TestSteppedClocks(t *testing.T) {
	p := newProgram(t)
	schedule := p.plan("schedule.yaml", `
faults:
  - {at: 2s, kind: clock-step, node: client, for: 500ms, step: 1h}
  - {at: 1s, kind: clock-step, node: server, for: 4s, step: -8760h}
  - {at: 1500ms, kind: clock-step, node: relay, for: 1s, step: -1s}
  - {at: 3s, kind: clock-step, node: client, for: 1s, step: -8760h}
  - {at: 2500ms, kind: kill, target: agent, node: server}
  - {at: 3s, kind: clock-step, node: relay, for: 1s, step: 8760h}
  - {at: 4500ms, kind: clock-step, node: client, for: 4s, step: 8760h}
  - {at: 5500ms, kind: kill, target: agent, node: client}
  - {at: 6s, kind: clock-step, node: server, for: 1s, step: 1s}
  - {at: 7500ms, kind: clock-step, node: server, for: 1s, step: -1h}
`)
	r := p.start("rehearse", p.plan("clocks.yaml", fmt.Sprintf(clockPlan, 8)), "--faults", schedule)
	if code := r.wait(4 * time.Minute); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	ds := p.exported()
	checkRun(t, ds)
	for _, tr := range ds.Runs[0].Trials {
		if tr.Verdict != journal.Succeeded {
			t.Errorf("trial %d of %s counts as %s: %s", tr.Index, tr.Treatment, tr.Verdict, tr.Attempts[len(tr.Attempts)-1].Message)
		}
		// By the client's clock as it was when the run began, which may be stepped by then.
		if after := tr.Attempts[0].Started.Sub(ds.Runs[0].Trials[0].Attempts[0].Started); after > 5*time.Minute {
			t.Errorf("trial %d started %s after the first by the results", tr.Index, after)
		}
	}
	steps := 0
	for _, f := range p.faults() {
		if f.Error != "" || f.To.IsZero() {
			t.Errorf("fault %d (%s of %s) has not ended: %s %s", f.Number, f.Kind, f.Node, f.Detail, f.Error)
		}
		if f.Kind == faultlog.ClockStep {
			steps++
		}
	}
	if steps != 8 {
		t.Errorf("%d steps of clocks, expected 8", steps)
	}
	told := p.steps("client")
	t.Logf("the client's journal tells the steps %v, the server's %v", told, p.steps("server"))
	if len(told) < 3 || !slices.ContainsFunc(told, func(d time.Duration) bool { return d.Abs() > 8000*time.Hour }) {
		t.Errorf("the client's journal tells the steps %v", told)
	}
	nothingLeft(t)
}

// Where the plan has the rule, an attempt during which a clock stepped is invalid with
// that reason, and its trial is repeated.
func TestRuleOfSteppedClocks(t *testing.T) {
	testkind.Waits("for trials over a slow radio")
	p := newProgram(t)
	schedule := p.plan("schedule.yaml", `
faults:
  - {at: 6s, kind: clock-step, node: server, for: 6s, step: 1h}
  - {at: 8s, kind: clock-step, node: client, for: 6s, step: -1s}
`)
	// Trials of some 20 s: on a busy machine the first one begins only when several seconds
	// of the run are over, and the clocks are to step while there are attempts.
	r := p.start("rehearse", p.plan("clocks.yaml", fmt.Sprintf(clockPlan, 24)+"valid: {clock_step: 100 ms}\n"), "--faults", schedule)
	if code := r.wait(4 * time.Minute); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	marked := map[string]int{}
	for _, tr := range p.exported().Runs[0].Trials {
		last := tr.Attempts[len(tr.Attempts)-1]
		if last.Verdict != journal.Succeeded {
			t.Errorf("trial %d of %s counts as %s: %s", tr.Index, tr.Treatment, last.Verdict, last.Reason)
		}
		for _, a := range tr.Attempts {
			if len(a.Undecided) > 0 {
				t.Errorf("trial %d, attempt %d: %q", tr.Index, a.Attempt, a.Undecided)
			}
			for _, role := range []string{"client", "server"} {
				if strings.HasPrefix(a.Reason, "marked: rule clock_step: the clock of the "+role+" stepped ") {
					marked[role]++
				}
			}
		}
	}
	if marked["client"] == 0 || marked["server"] == 0 {
		t.Errorf("attempts that broke the rule: %v", marked)
	}
	nothingLeft(t)
}
