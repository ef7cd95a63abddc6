package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"linktrial/executor/journal"
	"linktrial/orchestrator/report"
)

const moved = `
name: moved
radio: prc-117g-anw2c
topology: [vip-lot, k-lot]
size: 512 KiB
treatments:
  - {name: tcp-cubic, label: TCP CUBIC, protocol: tcp, options: {congestion: cubic}}
  - {name: udt, label: UDT, protocol: udt}
iterations: 3
order: fixed
seed: 7
limits: {connect: 10s, transfer: 60s, attempts: 3}
`

// directed is an orchestrator with its lab, to whose runs a director gives commands.
type directed struct{ *served }

// must runs a subcommand that must succeed, and returns what it printed.
func (p *directed) must(args ...string) string {
	p.t.Helper()
	out, code := p.cli(args...)
	if code != 0 {
		p.t.Fatalf("linktrial %q: exit %d:\n%s", args, code, out)
	}
	return out
}

// refuse runs a subcommand that must fail with an error that contains words.
func (p *directed) refuse(words string, args ...string) {
	p.t.Helper()
	if out, code := p.cli(args...); code == 0 || !strings.Contains(out, words) {
		p.t.Errorf("linktrial %q: exit %d, expected a refusal with %q:\n%s", args, code, words, out)
	}
}

func (p *directed) waitUntil(what string, limit time.Duration, done func() bool) {
	p.t.Helper()
	waitUntil(p.t, what, limit, done, func() string { return p.must("run", "list") })
}

func (p *directed) dataset() *report.Dataset {
	p.t.Helper()
	ds, err := report.ReadJSON([]byte(p.must("results", "--format", "json")))
	if err != nil {
		p.t.Fatal(err)
	}
	return ds
}

func (p *directed) trials(run int) []report.Trial { return p.dataset().Runs[run].Trials }

// row returns the row of a treatment in the table of results.
func (p *directed) row(label string) string {
	p.t.Helper()
	out := p.must("results", "--format", "table")
	m := regexp.MustCompile(`(?m)^.*` + label + `.*$`).FindString(out)
	if m == "" {
		p.t.Fatalf("no row of %s:\n%s", label, out)
	}
	return m
}

// resumed counts how often the leading agent has resumed the run after a start.
func (p *directed) resumed(run string) int {
	p.t.Helper()
	n := 0
	err := filepath.WalkDir(p.data, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, filepath.Join("runs", run, "journal.jsonl")) {
			return nil // other files come and go
		}
		b, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(b), `"role":"client"`) {
			n = strings.Count(string(b), `"type":"run-resumed"`)
		}
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return n
}

// killLeader kills the client's agent and waits until the restarted one resumes the run.
func (p *directed) killLeader(run string) {
	p.t.Helper()
	before := p.resumed(run)
	kill(p.t, p.serve.child("agent", "--role client"))
	p.waitUntil("the leading agent has taken the run up again", time.Minute, func() bool { return p.resumed(run) == before+1 })
	time.Sleep(time.Second) // in which a trial would start
}

// Every command to a run, with the leading agent killed in the pauses: nothing is
// lost, and nothing happens twice.
func TestCommandsToARun(t *testing.T) {
	p := &directed{newServed(t)}
	p.lab("prc-117g-anw2c", "vip-lot")
	r := p.start("run", p.plan("moved.yaml", moved), "--confirm-moves", "--orchestrator", "http://"+p.addr)
	first := strings.TrimPrefix(r.waitFor(`linktrial run continue \S+`, time.Minute), "linktrial run continue ")
	second := strings.TrimSuffix(first, "1") + "2"

	p.refuse("it is not paused", "run", "resume", first)
	p.refuse("trial 0 has not ended yet", "run", "repeat", first, "--trial", "0")
	p.refuse("it has no trial 6; its trials are 0 to 5", "run", "skip", first, "--trial", "6")
	p.refuse("no trial of the run is running", "run", "skip", first)
	p.refuse("does not wait for nodes to be moved", "run", "continue", second)
	p.refuse("not found", "run", "pause", "nothere-1")
	p.refuse(`required flag(s) "reason" not set`, "run", "exclude", first, "--trial", "0")

	// Paused before the first trial; an agent that was killed is still paused.
	p.must("run", "pause", first, "--by", "ada")
	p.must("run", "continue", first)
	r.waitFor("run "+first+": paused; to resume: linktrial run resume", time.Minute)
	p.must("run", "skip", first, "--trial", "3")
	p.waitUntil("the skip is applied in the pause", time.Minute, func() bool { return p.trials(0)[3].Verdict == journal.Aborted })
	p.killLeader(first)
	for _, tr := range p.trials(0) {
		if len(tr.Attempts) > 0 {
			t.Fatalf("trial %d started in the pause", tr.Index)
		}
	}
	p.must("run", "resume", first)

	// The running trial is skipped.
	skipped := -1
	p.waitUntil("a running trial is skipped", time.Minute, func() bool {
		stdout, code := p.cli("run", "skip", first)
		if code == 0 {
			if _, err := fmt.Sscanf(stdout, "trial %d ends", &skipped); err != nil {
				t.Fatalf("%v: %s", err, stdout)
			}
		}
		return code == 0
	})
	p.waitUntil("the skipped trial has ended", time.Minute, func() bool { return p.trials(0)[skipped].Verdict != "" })
	done := -1
	p.waitUntil("a trial has succeeded", time.Minute, func() bool {
		for _, tr := range p.trials(0) {
			if tr.Verdict == journal.Succeeded && tr.Index != skipped {
				done = tr.Index
			}
		}
		return done >= 0
	})

	// Killed in a pause, with a repetition open.
	p.must("run", "pause", first)
	p.waitUntil("the run holds", time.Minute, func() bool { return strings.Contains(p.must("run", "list"), " paused ") })
	p.must("run", "repeat", first, "--trial", fmt.Sprint(done))
	p.waitUntil("the repetition is applied", time.Minute, func() bool { return !strings.Contains(p.must("run", "commands", first), "not yet") })
	if v := p.trials(0)[done].Verdict; v != "" {
		t.Errorf("trial %d is to be repeated and has the verdict %s", done, v)
	}
	p.killLeader(first)
	p.must("run", "resume", first)
	r.waitFor("run "+first+": completed", 2*time.Minute)
	for _, tr := range p.trials(0) {
		var got []string
		for _, a := range attemptsLeft(&tr) {
			got = append(got, strings.TrimSpace(string(a.Verdict)+" "+a.Reason))
		}
		want := []string{"succeeded"}
		switch tr.Index {
		case done:
			want = []string{"succeeded", "succeeded"}
		case 3:
			want = nil
		case skipped:
			if got != nil && got[0] == "succeeded" {
				break // the command arrived as it ended
			}
			want = []string{"aborted skipped"}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("trial %d has attempts %q, expected %q", tr.Index, got, want)
		}
	}
	if out := p.must("run", "commands", first); strings.Count(out, "\n") != 1+8 || !strings.Contains(out, "ada") || strings.Contains(out, "rejected") {
		t.Errorf("commands:\n%s", out)
	}

	// A mark removes one value from the table; removing the mark brings it back.
	label := p.dataset().Runs[0].Sheet.Treatment(p.trials(0)[done].Treatment).Label
	before := p.row(label)
	p.must("run", "exclude", first, "--trial", fmt.Sprint(done), "--reason", "a truck in between")
	marked := p.row(label)
	if n, m := counted(t, before), counted(t, marked); m != n-1 {
		t.Errorf("%d valid trials before the mark, %d after\n%s\n%s", n, m, before, marked)
	}
	if all := p.trials(0)[done].Attempts; len(all) < 2 || all[len(all)-1].Verdict != journal.Invalid || all[len(all)-1].Reason != "marked: a truck in between" || !strings.Contains(all[len(all)-1].Message, "succeeded") {
		t.Errorf("the marked trial has %+v", all)
	}
	p.must("run", "include", first, "--trial", fmt.Sprint(done))
	if again := p.row(label); again != before {
		t.Errorf("after the mark was taken back:\n%s\nbefore:\n%s", again, before)
	}
	p.refuse("it has ended (completed)", "run", "pause", first)

	// The second run is at another topology.
	r.waitFor("linktrial run continue "+second, time.Minute)
	p.must("run", "continue", second)
	r.waitFor("run "+second+": running", time.Minute)
	p.must("run", "abort", second, "--reason", "rain")
	if code := r.wait(time.Minute); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if ds := p.dataset(); ds.Runs[1].State != "aborted" || ds.Runs[1].Message != "rain" {
		t.Errorf("the second run is %s: %s", ds.Runs[1].State, ds.Runs[1].Message)
	}
}

// counted returns the number of valid trials in a row of the table, "2/3".
func counted(t *testing.T, row string) int {
	t.Helper()
	var n, of int
	if m := regexp.MustCompile(`\d+/\d+`).FindString(row); m == "" {
		t.Fatalf("no count in %q", row)
	} else if _, err := fmt.Sscanf(m, "%d/%d", &n, &of); err != nil {
		t.Fatal(err)
	}
	return n
}
