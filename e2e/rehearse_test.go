package e2e

import (
	"encoding/csv"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"linktrial/executor/journal"
	"linktrial/internal/testkind"
	"linktrial/orchestrator/report"
)

// short is the quick start with smaller transfers, for tests that only need
// trials to happen.
const short = `
name: short
radio: prc-117g-anw2c
topology: vip-lot
size: 48 KiB
treatments:
  - {name: tcp-cubic, label: TCP CUBIC, protocol: tcp, options: {congestion: cubic}}
  - {name: udt, label: UDT, protocol: udt}
  - {name: sctp, label: SCTP, protocol: sctp}
iterations: 4
order: random
seed: 7
limits: {connect: 10s, transfer: 60s, attempts: 3}
`

// checkRun checks that an export has each trial of the sheet once, ended, in the
// sheet's order, with nothing counted twice.
func checkRun(t *testing.T, ds *report.Dataset) {
	t.Helper()
	if !ds.Complete {
		t.Error("the campaign is not complete")
	}
	for _, run := range ds.Runs {
		if run.State != "completed" {
			t.Errorf("run %s is %s: %s", run.ID, run.State, run.Message)
		}
		if len(run.Trials) != len(run.Sheet.Trials) {
			t.Fatalf("run %s has %d trials, its sheet %d", run.ID, len(run.Trials), len(run.Sheet.Trials))
		}
		var first time.Time // attempt of the trial before
		for i, tr := range run.Trials {
			want := run.Sheet.Trials[i]
			if tr.Index != i || tr.Treatment != want.Treatment || tr.Iteration != want.Iteration {
				testkind.Failed(t, "trial %d is labelled %d, %s, iteration %d; the sheet says %s, %d", i, tr.Index, tr.Treatment, tr.Iteration, want.Treatment, want.Iteration)
			}
			if tr.Verdict == "" || len(tr.Attempts) == 0 {
				testkind.Failed(t, "trial %d was lost: verdict %q, %d attempts", i, tr.Verdict, len(tr.Attempts))
			}
			last := first // one that is found invalid later is repeated after other trials
			for j, a := range tr.Attempts {
				if j == 0 {
					first = a.Started
				}
				if a.Attempt != j+1 {
					testkind.Failed(t, "trial %d: attempt %d stands at place %d", i, a.Attempt, j+1)
				}
				if a.Started.Before(last) {
					t.Errorf("trial %d attempt %d started before the one ahead of it", i, a.Attempt)
				}
				last = a.Started
				if j < len(tr.Attempts)-1 && a.Verdict == journal.Succeeded {
					testkind.Failed(t, "trial %d was repeated after it had succeeded", i)
				}
				if a.Verdict == journal.Succeeded && !a.Verified {
					testkind.Failed(t, "trial %d attempt %d counts, but the server's digest does not confirm it", i, a.Attempt)
				}
			}
		}
	}
}

func TestQuickStart(t *testing.T) {
	testkind.Waits("for trials over a slow radio")
	p := newProgram(t)
	r := p.start("rehearse", quickstart(t))
	if code := r.wait(4 * time.Minute); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	out := r.output()
	for _, want := range []string{"TCP CUBIC", "TCP BBR", "SCTP", "UDT", "Haul", "QUIC", "3/3", "KB/s", "Exported:", "Next:"} {
		if !strings.Contains(out, want) {
			t.Errorf("the output does not show %q", want)
		}
	}
	ds := p.exported()
	checkRun(t, ds)
	run := ds.Runs[0]
	for _, tr := range run.Trials {
		a := tr.Attempts[len(tr.Attempts)-1]
		if a.Verdict != journal.Succeeded {
			t.Errorf("%s, iteration %d: %s (%s)", tr.Treatment, tr.Iteration, a.Verdict, a.Message)
			continue
		}
		// No protocol is faster than Ideal.
		if a.Ideal <= 0 || a.Elapsed < a.Ideal {
			t.Errorf("%s, iteration %d took %s, Ideal %s", tr.Treatment, tr.Iteration, a.Elapsed, a.Ideal)
		}
		if a.CodedBound < a.Ideal {
			t.Errorf("%s, iteration %d: the coded bound is %s, Ideal %s", tr.Treatment, tr.Iteration, a.CodedBound, a.Ideal)
		}
		// Every emulated radio is read by HTTP, and its readings belong to the attempt.
		told := map[string]bool{}
		for _, x := range a.Telemetry {
			if x.Source == "radio-http" && x.Metric == "snr" && x.Unit == "dB" && x.Minimum >= -10 && x.Maximum <= 30 && x.Minimum <= x.Mean && x.Mean <= x.Maximum {
				told[x.Node] = true
			}
		}
		if len(told) != 3 {
			t.Errorf("%s, iteration %d: the SNR of %v was told, expected client, relay and server: %+v", tr.Treatment, tr.Iteration, slices.Collect(maps.Keys(told)), a.Telemetry)
		}
	}
	for _, node := range []string{"client", "relay", "server"} {
		pv := run.Provenance[node]
		if pv.Kernel == "" || len(pv.Sysctls) < 10 || len(pv.Interfaces) == 0 || len(pv.Drivers) < 3 {
			t.Errorf("provenance of %s is thin: kernel %q, %d sysctls, %d interfaces, %d drivers", node, pv.Kernel, len(pv.Sysctls), len(pv.Interfaces), len(pv.Drivers))
		}
		when := map[string]bool{}
		for _, c := range run.Clocks[node] {
			when[c.When] = c.Unknown == ""
		}
		if !when["before"] || !when["after"] {
			t.Errorf("clock offset of %s: %+v", node, run.Clocks[node])
		}
	}
	checkFiles(t, p, 18)
	nothingLeft(t)

	// The results can be read after everything has ended.
	stdout, stderr, code := p.run("results", "--format", "markdown")
	if code == 0 {
		t.Error("results answered although LINKTRIAL_ORCHESTRATOR names an orchestrator that is not there")
	}
	cmd := p.command("results", "--format", "markdown")
	cmd.Env = append(os.Environ(), "LINKTRIAL_DATA="+p.data, "LINKTRIAL_ORCHESTRATOR=")
	b, err := cmd.Output()
	if err != nil || !strings.Contains(string(b), "TCP CUBIC") {
		t.Errorf("results after the rehearsal: %v: %s%s%s", err, b, stdout, stderr)
	}
}

func quickstart(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../plans/quickstart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func checkFiles(t *testing.T, p *program, trials int) {
	t.Helper()
	found := map[string]bool{}
	files, _ := filepath.Glob(filepath.Join(p.work, "results", "*", "*"))
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil || len(b) == 0 {
			t.Errorf("%s is empty (%v)", f, err)
		}
		found[filepath.Ext(f)] = true
		if filepath.Ext(f) == ".csv" {
			if _, err := csv.NewReader(strings.NewReader(string(b))).ReadAll(); err != nil {
				t.Errorf("%s: %v", f, err)
			}
		}
		if strings.HasSuffix(f, "trials.csv") {
			// On a busy machine an attempt may have to be repeated: its value would be the machine's.
			if n := strings.Count(string(b), ",true,succeeded,"); n != trials {
				t.Errorf("%s has %d attempts that count as succeeded, expected %d:\n%s", f, n, trials, b)
			}
		}
	}
	for _, ext := range []string{".csv", ".json", ".md", ".tex", ".svg"} {
		if !found[ext] {
			t.Errorf("no %s file was exported: %v", ext, files)
		}
	}
}

func TestKillOrchestrator(t *testing.T) {
	p := newProgram(t)
	r := p.start("rehearse", p.plan("short.yaml", short))
	r.waitFor(`\n +3/12 `, 2*time.Minute)
	kill(t, r.child("serve"))
	r.waitFor(`no contact with the orchestrator`, 30*time.Second)
	if code := r.wait(3 * time.Minute); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	ds := p.exported()
	checkRun(t, ds)
	for _, tr := range ds.Runs[0].Trials {
		if len(attemptsLeft(&tr)) != 1 {
			t.Errorf("trial %d has %d attempts: the orchestrator's death is no reason to repeat one", tr.Index, len(tr.Attempts))
		}
	}
	nothingLeft(t)
}

func TestKillLeadingAgent(t *testing.T) {
	p := newProgram(t)
	plan := strings.Replace(short, "48 KiB", "384 KiB", 1)
	plan = strings.Replace(plan, "iterations: 4", "iterations: 2", 1)
	r := p.start("rehearse", p.plan("short.yaml", plan))
	r.waitFor(`\n +1/6 `, 2*time.Minute)
	time.Sleep(600 * time.Millisecond) // well inside the second trial, which takes over a second
	kill(t, r.child("agent", "--role client"))
	if code := r.wait(3 * time.Minute); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	ds := p.exported()
	checkRun(t, ds)
	interrupted := 0
	for _, tr := range ds.Runs[0].Trials {
		for _, a := range tr.Attempts {
			if a.Verdict == journal.Aborted && a.Reason == "interrupted" {
				interrupted++
			}
		}
		if v := tr.Attempts[len(tr.Attempts)-1].Verdict; v != journal.Succeeded {
			t.Errorf("trial %d ended %s", tr.Index, v)
		}
	}
	if interrupted != 1 {
		t.Errorf("%d attempts are marked interrupted, expected the one that was", interrupted)
	}
	nothingLeft(t)
}

func TestKillServerAgent(t *testing.T) {
	p := newProgram(t)
	r := p.start("rehearse", p.plan("short.yaml", short))
	r.waitFor(`\n +2/12 `, 2*time.Minute)
	kill(t, r.child("agent", "--role server"))
	if code := r.wait(4 * time.Minute); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	checkRun(t, p.exported())
	nothingLeft(t)
}

func TestKillRehearsal(t *testing.T) {
	testkind.Waits("for trials over a slow radio")
	p := newProgram(t)
	first := p.start("rehearse", p.plan("short.yaml", short))
	first.waitFor(`\n +2/12 `, 2*time.Minute)
	kill(t, first.cmd.Process.Pid)
	first.wait(10 * time.Second)

	second := p.start("rehearse", filepath.Join(p.work, "short.yaml"))
	if code := second.wait(4 * time.Minute); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	if !strings.Contains(second.output(), "removed what an earlier rehearsal or lab has left behind") {
		t.Error("the second start does not say that it removed something")
	}
	checkRun(t, p.exported())
	nothingLeft(t)
}

// Two rehearsals with data folders of their own run at once, and neither removes what
// the other uses; a third one is kept out of a folder that is in use.
func TestTwoRehearsalsAtOnce(t *testing.T) {
	p, q := newProgram(t), newProgram(t)
	text := strings.Replace(short, "iterations: 4", "iterations: 12", 1)
	first := p.start("rehearse", p.plan("short.yaml", text))
	second := q.start("rehearse", q.plan("short.yaml", text))
	first.waitFor(`\n +1/36 `, 2*time.Minute)
	second.waitFor(`\n +1/36 `, 2*time.Minute)
	stdout, stderr, code := p.run("rehearse", filepath.Join(p.work, "short.yaml"))
	if code == 0 || !strings.Contains(stderr, "another rehearsal uses the data folder "+p.data) {
		t.Errorf("on a data folder in use: exit code %d:\n%s%s", code, stdout, stderr)
	}
	for _, r := range []*running{first, second} {
		if strings.Contains(r.output(), " 36/36 ") {
			t.Error("one of the rehearsals had ended its trials before both ran")
		}
	}
	for _, r := range []*running{first, second} {
		if code := r.wait(4 * time.Minute); code != 0 {
			t.Errorf("exit code %d:\n%s", code, r.output())
		}
		if strings.Contains(r.output(), "left behind") {
			t.Errorf("a rehearsal removed another's lab:\n%s", r.output())
		}
	}
	checkRun(t, p.exported())
	checkRun(t, q.exported())
	nothingLeft(t)
}

func TestInterrupt(t *testing.T) {
	p := newProgram(t)
	r := p.start("rehearse", p.plan("short.yaml", short))
	r.waitFor(`\n +2/12 `, 2*time.Minute)
	r.cmd.Process.Signal(syscall.SIGINT)
	if code := r.wait(time.Minute); code == 0 {
		t.Error("an interrupted rehearsal must not exit 0")
	}
	if !strings.Contains(r.output(), "interrupted") {
		t.Error("the output does not say that it was interrupted")
	}
	nothingLeft(t)
}
