package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"linktrial/executor/journal"
	"linktrial/internal/faultlog"
	"linktrial/internal/process"
)

// campaignPlan has protocols with several libraries and kernels behind them.
const campaignPlan = `
name: faults
radio: prc-117g-anw2c
topology: vip-lot
size: 192 KiB
treatments:
  - {name: tcp-cubic, label: TCP CUBIC, protocol: tcp, options: {congestion: cubic}}
  - {name: sctp, label: SCTP, protocol: sctp}
  - {name: haul, label: Haul, protocol: haul}
  - {name: udt, label: UDT, protocol: udt}
iterations: %d
order: random
seed: 7
limits: {connect: 10s, transfer: 60s, attempts: 3}
`

// Faults from a seed while a plan runs: nothing is lost, repeated after it had
// succeeded, or counted against a protocol; everything works again at the end. make
// faults has LINKTRIAL_FAULTS=SEED:ITERATIONS for a longer campaign, with faults of all
// kinds.
func TestFaultCampaign(t *testing.T) {
	seed, iterations := "42", 5
	kinds := []string{"--fault-kinds", "kill,restart,power-cut,control-cut,control-slow,control-lossy,control-one-way,database-read-only,clock-step"}
	if given := os.Getenv("LINKTRIAL_FAULTS"); given != "" {
		s, n, _ := strings.Cut(given, ":")
		var err error
		if iterations, err = strconv.Atoi(n); err != nil {
			t.Fatalf("LINKTRIAL_FAULTS=%q, expected SEED:ITERATIONS", given)
		}
		seed, kinds = s, nil
	}
	p := newProgram(t)
	r := p.start(append([]string{"rehearse", p.plan("faults.yaml", fmt.Sprintf(campaignPlan, iterations)), "--faults", seed, "--fault-interval", "4s"}, kinds...)...)
	if code := r.wait(time.Minute + time.Duration(iterations)*time.Minute); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	checkRun(t, p.exported())
	for _, tr := range p.exported().Runs[0].Trials {
		if tr.Verdict != journal.Succeeded {
			t.Errorf("trial %d of %s counts as %s, on radios that carry every transfer: %s", tr.Index, tr.Treatment, tr.Verdict, tr.Attempts[len(tr.Attempts)-1].Message)
		}
	}
	faults := p.faults()
	if len(faults) < iterations {
		t.Errorf("%d faults in %d iterations", len(faults), iterations)
	}
	for _, f := range faults {
		if f.Error != "" || f.To.IsZero() {
			t.Errorf("fault %d (%s %s of %q) has not ended: %s %s", f.Number, f.Kind, f.Target, f.Node, f.Detail, f.Error)
		}
	}
	want := fmt.Sprintf("Trials of the run sheets: %d; succeeded %[1]d, failed 0, excluded 0, without a result 0", 4*iterations)
	if !strings.Contains(r.output(), want) {
		t.Errorf("the output has no %q", want)
	}
	nothingLeft(t)
	injected := map[faultlog.Kind]int{}
	for _, f := range faults {
		injected[f.Kind]++
	}
	t.Logf("%d faults over %d trials: %v; %s", len(faults), 4*iterations, injected, regexp.MustCompile(`Attempts that do not count.*`).FindString(r.output()))
}

// faults reads the exported list of injected faults.
func (p *program) faults() []faultlog.Fault {
	p.t.Helper()
	files, err := filepath.Glob(filepath.Join(p.work, "results", "*", faultlog.FileName))
	if err != nil || len(files) != 1 {
		p.t.Fatalf("exported lists of faults: %v (%v)", files, err)
	}
	f, err := os.Open(files[0])
	if err != nil {
		p.t.Fatal(err)
	}
	defer f.Close()
	out, err := faultlog.Read(f)
	if err != nil {
		p.t.Fatal(err)
	}
	return out
}

// A second agent of a node's name, with a state folder of its own, takes the node's place at
// no moment of a run, also not while an orchestrator that was just started has heard of
// neither. Found by a fault campaign: it began the run's journal anew, and the run was stopped.
func TestSecondAgentTakesNoPlace(t *testing.T) {
	p := newProgram(t)
	schedule := p.plan("schedule.yaml", `
faults:
  - {at: 1s, kind: duplicate-agent, node: server, for: 30s}
  - {at: 2s, kind: duplicate-agent, node: client, for: 30s}
  - {at: 4s, kind: kill, target: orchestrator}
  - {at: 9s, kind: gone, target: database, for: 3s}
  - {at: 17s, kind: gone, target: orchestrator, for: 4s}
`)
	r := p.start("rehearse", p.plan("faults.yaml", fmt.Sprintf(campaignPlan, 6)), "--faults", schedule)
	if code := r.wait(4 * time.Minute); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	checkRun(t, p.exported())
	if want := "Trials of the run sheets: 24; succeeded 24, failed 0, excluded 0, without a result 0"; !strings.Contains(r.output(), want) {
		t.Errorf("the output has no %q", want)
	}
	if n := len(p.faults()); n != 5 {
		t.Errorf("%d of 5 faults were injected", n)
	}
	nothingLeft(t)
}

// A schedule of faults is injected at its times, each once.
func TestFaultSchedule(t *testing.T) {
	p := newProgram(t)
	schedule := p.plan("schedule.yaml", `
faults:
  - {at: 500ms, kind: kill, target: emulator}
  - {at: 3s, kind: power-cut, node: server, for: 1s}
  - {at: 6s, kind: kill, target: agent, node: client}
`)
	r := p.start("rehearse", p.plan("faults.yaml", fmt.Sprintf(campaignPlan, 4)), "--faults", schedule)
	if code := r.wait(4 * time.Minute); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	checkRun(t, p.exported())
	var got []string
	for _, f := range p.faults() {
		got = append(got, fmt.Sprintf("%s %s %s touches=%t ended=%t", f.Kind, f.Target, f.Node, f.Touches, !f.To.IsZero()))
	}
	want := "kill emulator  touches=true ended=true\npower-cut node server touches=true ended=true\nkill agent client touches=true ended=true"
	if strings.Join(got, "\n") != want {
		t.Errorf("injected:\n%s\nexpected:\n%s", strings.Join(got, "\n"), want)
	}
	nothingLeft(t)
}

// Orchestrator and database are gone for a time while a plan runs: the nodes go on, and
// all that they measured is there at the end.
func TestOrchestratorAndDatabaseGone(t *testing.T) {
	p := newProgram(t)
	schedule := p.plan("schedule.yaml", `
faults:
  - {at: 1s, kind: gone, target: orchestrator, for: 8s}
  - {at: 10s, kind: gone, target: database, for: 8s}
`)
	r := p.start("rehearse", p.plan("faults.yaml", fmt.Sprintf(campaignPlan, 4)), "--faults", schedule)
	if code := r.wait(4 * time.Minute); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	checkRun(t, p.exported())
	for _, f := range p.faults() {
		if f.Error != "" || f.Touches || f.To.Sub(f.From) < 8*time.Second {
			t.Errorf("fault %d (%s %s): from %s to %s, touches %t, %s", f.Number, f.Kind, f.Target, f.From, f.To, f.Touches, f.Error)
		}
	}
	nothingLeft(t)
}

// Second orchestrators are started while a plan runs: each is refused in a sentence that
// names the first one, which goes on.
func TestSecondOrchestrator(t *testing.T) {
	p := newProgram(t)
	schedule := p.plan("schedule.yaml", `
faults:
  - {at: 500ms, kind: duplicate-orchestrator}
  - {at: 6s, kind: duplicate-orchestrator}
`)
	r := p.start("rehearse", p.plan("faults.yaml", fmt.Sprintf(campaignPlan, 4)), "--faults", schedule)
	r.waitFor("orchestrator, emulated radio network and", 2*time.Minute)
	first := r.child("serve")
	if code := r.wait(4 * time.Minute); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	checkRun(t, p.exported())
	said := regexp.MustCompile(fmt.Sprintf(`^on the same data folder: data folder %s is in use by another orchestrator \(process %d\): stop that one, .*; `+
		`on the same database: the database is in use by another program \(linktrial orchestrator, process %[2]d on .*\): stop that one`, regexp.QuoteMeta(p.data), first))
	faults := p.faults()
	if len(faults) != 2 {
		t.Errorf("%d faults, expected 2", len(faults))
	}
	for _, f := range faults {
		if f.Error != "" || f.To.IsZero() || f.Touches || !said.MatchString(f.Detail) {
			t.Errorf("fault %d, touches=%t ended=%t: %s %s", f.Number, f.Touches, !f.To.IsZero(), f.Detail, f.Error)
		}
	}
	nothingLeft(t)
}

// The disk of the database is full while a plan runs, first one on which overwriting
// takes no room, then one on which PostgreSQL cannot even write its log and ends.
// Agents keep their journals, and everything is stored when there is room.
func TestDatabaseFull(t *testing.T) {
	p := newProgram(t)
	schedule := p.plan("schedule.yaml", `
faults:
  - {at: 1s, kind: database-full, for: 8s}
  - {at: 14s, kind: database-full, for: 6s, copy_on_write: true}
`)
	r := p.start("rehearse", p.plan("faults.yaml", fmt.Sprintf(campaignPlan, 5)), "--faults", schedule)
	if code := r.wait(5 * time.Minute); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	checkRun(t, p.exported())
	for _, want := range []string{"Trials of the run sheets: 20; succeeded 20, failed 0, excluded 0, without a result 0", "the orchestrator is back after",
		" UTC the database has no room left on its disk; nothing is lost", "the database takes changes again: since "} {
		if !strings.Contains(r.output(), want) {
			t.Errorf("the output has no %q", want)
		}
	}
	down := false
	for line := range strings.Lines(r.output()) {
		switch {
		case strings.HasPrefix(line, "since "):
			down = true
		case strings.HasPrefix(line, "the orchestrator is back after"):
			if !down {
				t.Errorf("said twice: %s", line)
			}
			down = false
		}
	}
	var got []string
	for _, f := range p.faults() {
		got = append(got, fmt.Sprintf("%s %s touches=%t ended=%t %s", f.Kind, f.Target, f.Touches, !f.To.IsZero(), f.Error))
	}
	if want := strings.Repeat("database-full database touches=false ended=true \n", 2); strings.Join(got, "\n")+"\n" != want {
		t.Errorf("injected:\n%s\nexpected:\n%s", strings.Join(got, "\n"), want)
	}
	log, err := os.ReadFile(filepath.Join(p.data, "logs", "rehearsal.log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"No space left on device (SQLSTATE 53100)", "the claim on the database was lost with its connection"} {
		if !strings.Contains(string(log), want) {
			t.Errorf("the log has no %q", want)
		}
	}
	nothingLeft(t)
}

// A rehearsal that is killed while the disk of its database is full leaves the database
// as it is without one: the next rehearsal works with it.
func TestKillWhileDatabaseIsFull(t *testing.T) {
	p := newProgram(t)
	schedule := p.plan("schedule.yaml", "faults:\n  - {at: 1s, kind: database-full, for: 1h, copy_on_write: true}\n")
	plan := p.plan("faults.yaml", fmt.Sprintf(campaignPlan, 1))
	r := p.start("rehearse", plan, "--faults", schedule)
	r.waitFor("fault 1 at .*database-full", 2*time.Minute)
	postmaster := r.child("-D " + filepath.Join(p.data, "postgres"))
	kill(t, r.cmd.Process.Pid)
	waitUntil(t, "PostgreSQL has ended", time.Minute, func() bool {
		_, err := process.Identify(postmaster)
		return err != nil
	}, func() string { return fmt.Sprintf("process %d", postmaster) })
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(mounts), p.data) {
		t.Errorf("something is mounted in the data folder:\n%s", mounts)
	}
	again := p.start("rehearse", plan)
	if code := again.wait(3 * time.Minute); code != 0 {
		t.Fatalf("exit code %d of the next rehearsal", code)
	}
	nothingLeft(t)
}

// What cannot be injected is refused before anything is started, with one error.
func TestFaultsRefused(t *testing.T) {
	p := newProgram(t)
	plan := p.plan("faults.yaml", fmt.Sprintf(campaignPlan, 1))
	schedule := p.plan("schedule.yaml", "faults:\n  - {at: 1s, kind: kill, target: driver, node: relay}\n")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--faults", schedule}, "schedule.yaml:2:48: faults[0].node: unknown \"relay\"; there are client, server"},
		{[]string{"--faults", "nowhere.yaml"}, "schedule of faults: open nowhere.yaml: no such file or directory"},
		{[]string{"--faults", "7", "--fault-kinds", "clock"}, "--fault-kinds: kind of faults unknown \"clock\"; there are kill, stop"},
		{[]string{"--faults", "7", "--fault-interval", "1ms"}, "--fault-interval 1ms, expected 100ms to 24h0m0s"},
		{[]string{"--fault-interval", "1s"}, "--fault-interval is for faults from a seed"},
		{[]string{"--faults", ""}, "--faults is empty"},
		{[]string{"--faults", "7", "--runner", "docker"}, "remove one of them"},
	} {
		_, stderr, code := p.run(append([]string{"rehearse", plan}, c.args...)...)
		if code == 0 || !strings.Contains(stderr, c.want) {
			t.Errorf("%v: exit code %d, %s; expected %q", c.args, code, stderr, c.want)
		}
	}
}
