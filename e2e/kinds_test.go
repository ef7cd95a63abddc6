//go:build kinds

package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// virtualKinds are the plans that run in virtual time; the others take commands and the
// lab in real time.
var virtualKinds = []string{"flows", "probes", "published", "published-groups", "labels", "places", "radios", "none", "required", "looks", "capacity"}

// TestMakeKinds runs the plans of kinds/plans and writes the store that has all of them
// (kinds/README.md). It takes the tag kinds: make kinds.
func TestMakeKinds(t *testing.T) {
	kindsDir, err := filepath.Abs("kinds")
	if err != nil {
		t.Fatal(err)
	}
	plan := func(name string) string { return filepath.Join(kindsDir, "plans", name+".yaml") }
	p := &kinds{directed: &directed{&served{program: newProgram(t), addr: freeAddr(t)}}}
	for _, name := range virtualKinds {
		// The code is 1 where a treatment has no result.
		if stdout, stderr, code := p.run("rehearse", "--virtual", plan(name)); code > 1 || !strings.Contains(stdout+stderr, "exported") && code != 0 {
			t.Fatalf("%s: exit %d:\n%s%s", name, code, stdout, stderr)
		}
	}
	p.up()
	p.lab("prc-117g-anw2c", "vip-lot")
	for _, live := range []struct {
		plan string
		then func(*kinds, string)
	}{
		{"commands", commandsGiven},
		{"broken", (*kinds).completed},
		{"late", storedLate},
		{"in-band", abortedInBand},
		{"ended", endedUnderWay},
		{"stopped", stoppedByDamage},
		{"under-way", underWay}, // when the store is copied
	} {
		campaign := strings.TrimSpace(p.must("run", "start", "--detach", "--without-preflight", plan(live.plan)))
		live.then(p, campaign+"-1")
	}
	for name, write := range map[string]func(to string){
		"store.tar.gz": func(to string) { p.must("backup", "create", "--out", to) },
		"trusted-keys": func(to string) {
			if err := os.WriteFile(to, []byte(p.must("signing", "keys")), 0o644); err != nil {
				t.Fatal(err)
			}
		},
	} {
		write(filepath.Join(kindsDir, name))
	}
	if err := os.Chmod(filepath.Join(kindsDir, "store.tar.gz"), 0o644); err != nil {
		t.Fatal(err)
	}
}

type kinds struct{ *directed }

type kindsRun struct {
	ID, State   string
	TrialsEnded int
	Paused      bool
}

func (p *kinds) stateOf(run string) kindsRun {
	p.t.Helper()
	var got struct{ Run kindsRun }
	if refusal := p.call("OperatorService/GetRun", map[string]string{"runId": run}, &got); refusal != "" {
		p.t.Fatal(refusal)
	}
	return got.Run
}

func (p *kinds) reached(run, what string, done func(kindsRun) bool) {
	p.t.Helper()
	p.waitUntil(run+": "+what, 5*time.Minute, func() bool { return done(p.stateOf(run)) })
}

// completed waits until all runs of the campaign are completed.
func (p *kinds) completed(run string) {
	campaign := strings.TrimSuffix(run, "-1")
	var got struct{ Runs []kindsRun }
	p.waitUntil(campaign+" is completed", 5*time.Minute, func() bool {
		p.call("OperatorService/ListRuns", map[string]string{"campaignId": campaign}, &got)
		for _, r := range got.Runs {
			if r.State != "RUN_STATE_COMPLETED" {
				return false
			}
		}
		return len(got.Runs) > 0
	})
}

func (p *kinds) pausedAfter(run string, trials int) {
	p.reached(run, "trials have ended", func(r kindsRun) bool { return r.TrialsEnded >= trials })
	p.must("run", "pause", run)
	p.reached(run, "it is paused", func(r kindsRun) bool { return r.Paused })
}

// commandsGiven repeats a success, skips a trial that waits, excludes an attempt, and
// excludes another and includes it again.
func commandsGiven(p *kinds, run string) {
	p.pausedAfter(run, 2)
	p.must("run", "repeat", run, "--trial", "0")
	p.must("run", "skip", run, "--trial", "4")
	p.must("run", "resume", run)
	p.completed(run)
	p.must("run", "exclude", run, "--trial", "6", "--reason", "a truck in front of the antenna")
	p.must("run", "exclude", run, "--trial", "7", "--reason", "by mistake")
	p.must("run", "include", run, "--trial", "7")
}

// storedLate stops the orchestrator, but neither database nor nodes, while trials run.
func storedLate(p *kinds, run string) {
	p.reached(run, "it has begun", func(r kindsRun) bool { return r.State == "RUN_STATE_RUNNING" })
	serve := p.serve.cmd.Process
	if err := serve.Signal(syscall.SIGSTOP); err != nil {
		p.t.Fatal(err)
	}
	time.Sleep(20 * time.Second) // that the journals are late by
	if err := serve.Signal(syscall.SIGCONT); err != nil {
		p.t.Fatal(err)
	}
	p.completed(run)
}

func abortedInBand(p *kinds, run string) {
	p.reached(run, "trials have ended", func(r kindsRun) bool { return r.TrialsEnded >= 4 })
	p.must("run", "abort", run)
	p.reached(run, "it is aborted", func(r kindsRun) bool { return r.State == "RUN_STATE_ABORTED" })
}

// endedUnderWay ends two attempts while they transfer: one with its trial, which is
// skipped, one with the run, which is aborted.
func endedUnderWay(p *kinds, run string) {
	p.reached(run, "a trial has ended", func(r kindsRun) bool { return r.TrialsEnded >= 1 })
	p.underWay(run)
	p.must("run", "skip", run, "--trial", "1")
	p.reached(run, "the skipped trial has ended", func(r kindsRun) bool { return r.TrialsEnded >= 2 })
	p.underWay(run)
	p.must("run", "abort", run)
	p.reached(run, "it is aborted", func(r kindsRun) bool { return r.State == "RUN_STATE_ABORTED" })
}

// underWay waits until bytes of an attempt arrive.
func (p *kinds) underWay(run string) {
	client := p.journalOf(run)
	p.waitUntil(run+": a transfer is under way", time.Minute, func() bool {
		b, err := os.ReadFile(client)
		if err != nil {
			p.t.Fatal(err)
		}
		begun := bytes.LastIndex(b, []byte(`"type":"attempt-started"`))
		return begun > bytes.LastIndex(b, []byte(`"type":"attempt-ended"`)) && bytes.Contains(b[max(begun, 0):], []byte(`"type":"samples"`))
	})
}

// journalOf is the journal of a run on its leading node.
func (p *kinds) journalOf(run string) string {
	p.t.Helper()
	files, err := filepath.Glob(filepath.Join(p.data, "agents", "*", "client", "runs", run, "journal.jsonl"))
	if err != nil || len(files) != 1 {
		p.t.Fatalf("journals of %s at the client: %v (%v)", run, files, err)
	}
	return files[0]
}

// stoppedByDamage changes a byte of the leading node's journal while its agent is away,
// which refuses the journal when it is back.
func stoppedByDamage(p *kinds, run string) {
	p.pausedAfter(run, 3)
	agent := p.serve.child("agent", "--role client")
	if err := syscall.Kill(agent, syscall.SIGSTOP); err != nil { // it is not to write meanwhile
		p.t.Fatal(err)
	}
	path := p.journalOf(run)
	b, err := os.ReadFile(path)
	if err != nil {
		p.t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(path, b, 0o600); err != nil {
		p.t.Fatal(err)
	}
	kill(p.t, agent)
	p.reached(run, "it is stopped", func(r kindsRun) bool { return r.State == "RUN_STATE_STOPPED" })
}

func underWay(p *kinds, run string) { p.pausedAfter(run, 5) }
