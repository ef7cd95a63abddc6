package e2e

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"linktrial/executor/journal"
	"linktrial/internal/testkind"
	"linktrial/orchestrator/report"
)

// The same plan and seed give byte-identical exports in two virtual runs, with all
// drivers, also while other processes keep both processors busy.
func TestVirtualRunsAreByteIdentical(t *testing.T) {
	testkind.OfTest(t, testkind.Exact, "runs in virtual time")
	export := func(p *program) map[string][]byte {
		t.Helper()
		stdout, stderr, code := p.run("rehearse", "--virtual", quickstart(t))
		if code != 0 {
			t.Fatalf("exit code %d:\n%s%s", code, stdout, stderr)
		}
		files, _ := filepath.Glob(filepath.Join(p.work, "results", "*", "*"))
		out := map[string][]byte{}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			out[filepath.Base(f)] = b
		}
		return out
	}
	p := newProgram(t)
	first := export(p)
	ds := p.exported()
	checkRun(t, ds)
	for _, tr := range ds.Runs[0].Trials {
		if v := tr.Attempts[len(tr.Attempts)-1].Verdict; v != journal.Succeeded {
			t.Errorf("%s, iteration %d: %s", tr.Treatment, tr.Iteration, v)
		}
	}
	if place := ds.Runs[0].Place; place != journal.PlaceVirtual {
		t.Errorf("the run is said to have been %q", place)
	}

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 2 {
		busy := exec.CommandContext(ctx, "sh", "-c", "while :; do :; done")
		if err := busy.Start(); err != nil {
			t.Fatal(err)
		}
		defer busy.Wait()
		defer cancel()
	}
	second := export(newProgram(t))
	if len(first) < 7 || len(first) != len(second) {
		t.Fatalf("%d and %d files", len(first), len(second))
	}
	for name, b := range first {
		if !bytes.Equal(b, second[name]) {
			testkind.Failed(t, "%s differs: %s", name, firstDifference(b, second[name]))
		}
	}
}

func firstDifference(a, b []byte) string {
	la, lb := strings.Split(string(a), "\n"), strings.Split(string(b), "\n")
	for i := range min(len(la), len(lb)) {
		if la[i] != lb[i] {
			return la[i] + " | " + lb[i]
		}
	}
	return "one is longer"
}

func TestVirtualWithoutKernel(t *testing.T) {
	testkind.OfTest(t, testkind.Exact, "runs in virtual time")
	p := newProgram(t)
	cmd := p.command("rehearse", "--virtual", quickstart(t))
	// A root file system in which the cache is empty.
	wrapped := exec.Command("unshare", append([]string{"--mount", "--", "sh", "-c", `mount -t tmpfs none /var/cache && exec "$@"`, "sh"}, cmd.Args...)...)
	wrapped.Env, wrapped.Dir = cmd.Env, cmd.Dir
	out, err := wrapped.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "linktrial lab kernel") {
		t.Errorf("%v, expected one sentence that says how to build the kernel:\n%s", err, out)
	}
}

// A virtual rehearsal that is interrupted keeps what it has measured: its runs that had
// ended are complete in the store, and the faults that were injected can be audited.
func TestInterruptVirtual(t *testing.T) {
	p := newProgram(t)
	schedule := p.plan("schedule.yaml", "faults: [{at: 500ms, kind: clock-step, node: server, step: 1h, for: 1s}]\n")
	r := p.start("rehearse", "--virtual", "--jobs", "1", "--yes", "--faults", schedule, p.plan("sizes.yaml", `
name: sizes
radio: prc-117g-anw2c
topology: vip-lot
size: [64 KiB, 512 MiB]
treatments: [{name: tcp-cubic, protocol: tcp, options: {congestion: cubic}}]
iterations: 2
order: fixed
seed: 1
limits: {connect: 10s, transfer: 10h, attempts: 1}
`))
	r.waitFor(`run 2 of 2, 2 of 4 trials`, 2*time.Minute)
	r.cmd.Process.Signal(syscall.SIGINT)
	if code := r.wait(time.Minute); code == 0 {
		t.Error("an interrupted rehearsal must not exit 0")
	}
	if !strings.Contains(r.output(), "of which 1 had ended") {
		t.Errorf("the output does not say what was stored:\n%s", r.output())
	}
	audit := regexp.MustCompile(`faults injected until then: [12], listed in .*; to audit them: linktrial (audit-run .*)`).FindStringSubmatch(r.output())
	if audit == nil {
		t.Fatalf("the output does not say how to audit the faults:\n%s", r.output())
	}
	left, err := filepath.Glob(filepath.Join(p.data, "virtual", "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("%v, the guests left %v", err, left)
	}

	q := &pieces{program: p}
	addr := freeAddr(t)
	q.url = "http://" + addr
	p.start("serve", "--listen", addr).waitFor("orchestrator is ready", time.Minute)
	states := map[string]int{}
	for _, run := range q.dataset().Runs {
		succeeded := 0
		for _, tr := range run.Trials {
			if tr.Verdict == journal.Succeeded {
				succeeded++
			}
		}
		states[fmt.Sprintf("%s, %d of %d trials succeeded", run.State, succeeded, len(run.Trials))]++
	}
	if states["completed, 2 of 2 trials succeeded"] != 1 || states["aborted, 0 of 2 trials succeeded"] != 1 {
		t.Errorf("the store has runs that are %v", states)
	}
	out, stderr, code := p.run(append(strings.Fields(audit[1]), "--orchestrator", q.url)...)
	if code != 0 || !regexp.MustCompile(`faults +passed`).MatchString(out) || !strings.Contains(out, "1 faults were injected, of which 0 can change the outcome") {
		t.Errorf("exit code %d of the audit: %s\n%s", code, stderr, out)
	}
}

// Over a slow radio the queue of a sender that sends again without need is full when its
// transfer ends, and its close finds no room. The other end must not go on into the trials
// of others: the channel is the same in each iteration but for its errors, which ARQ
// repairs, and so is the time of each protocol that sends as much again.
func TestTrialsLeaveNothingOnTheAir(t *testing.T) {
	testkind.OfTest(t, testkind.Exact, "runs in virtual time")
	p := newProgram(t)
	out, errs, code := p.run("rehearse", "--virtual", "--yes", p.plan("air.yaml", `
name: air
radio: hf-4800-arq-fec
topology: vip-lot
size: 8 KiB
treatments:
  - {name: udt, label: UDT, protocol: udt}
  - {name: tcp-cubic, label: TCP CUBIC, protocol: tcp, options: {congestion: cubic}}
  - {name: sctp, label: SCTP, protocol: sctp}
iterations: 4
order: random
seed: 1
limits: {connect: 60s, transfer: 300s}
`))
	if code != 0 {
		t.Fatalf("exit code %d:\n%s%s", code, out, errs)
	}
	attempts, ended := map[string][]report.Attempt{}, time.Time{}
	for _, tr := range p.exported().Runs[0].Trials {
		if tr.Verdict != journal.Succeeded {
			t.Fatalf("trial %d of %s: %s", tr.Index, tr.Treatment, tr.Verdict)
		}
		a := tr.Attempts[0]
		attempts[tr.Treatment] = append(attempts[tr.Treatment], a)
		if !ended.IsZero() && a.Started.Sub(ended) > time.Minute {
			t.Errorf("trial %d began %s after the one before", tr.Index, a.Started.Sub(ended))
		}
		ended = a.Started.Add(a.Duration)
	}
	for treatment, all := range attempts {
		nothingOfOthers(t, treatment, all)
	}
}

// nothingOfOthers holds the attempts of a treatment against the one that sent least again.
// Packets of another trial would be on the air without having been sent by this one, and
// would make it longer. What a sender sends again without need is its own: SCTP's timers
// have a random part, and where one ends while the acknowledgement is on its way, a
// transfer is longer by that.
func nothingOfOthers(t *testing.T, treatment string, all []report.Attempt) {
	t.Helper()
	again := func(a report.Attempt) int64 { return *a.Retransmits }
	least := slices.MinFunc(all, func(a, b report.Attempt) int { return cmp.Compare(again(a), again(b)) })
	for _, a := range all {
		more := again(a) - again(least)
		// Each one passes two links, and is answered over both.
		if sent := a.Radio.SentPackets - least.Radio.SentPackets; sent > 4*more+8 {
			t.Errorf("%s: %d packets more on the air than in another trial, which sent %d fewer again", treatment, sent, more)
		}
		if more <= 2 && a.Elapsed > least.Elapsed*115/100 {
			t.Errorf("%s: %s and %s, with %d more sent again, expected within 15 %%", treatment, least.Elapsed, a.Elapsed, more)
		}
	}
}

// Faults of the apparatus change no value that counts: each one is that of the same trial
// without faults. In virtual time both meet the same channel, and what transfers are is
// decided by the protocol alone. Found by comparing a campaign so: Haul's listener was
// started while its interface had another MTU, and kept packets of that size for attempts
// that counted.
func TestFaultsLeaveValuesAlone(t *testing.T) {
	testkind.OfTest(t, testkind.Exact, "runs in virtual time")
	const plan = `
name: values
radio: prc-117g-anw2c
topology: vip-lot
size: 32 KiB
treatments:
  - {name: tcp-cubic, label: TCP CUBIC, protocol: tcp, options: {congestion: cubic}}
  - {name: sctp, label: SCTP, protocol: sctp}
  - {name: haul, label: Haul, protocol: haul}
iterations: 18
order: random
seed: 7
limits: {connect: 5s, transfer: 60s, attempts: 3}
`
	values := func(flags ...string) (p *program, value map[int][2]time.Duration) {
		p = newProgram(t)
		out, errs, code := p.run(append([]string{"rehearse", "--virtual", "--yes", p.plan("values.yaml", plan)}, flags...)...)
		if code != 0 {
			t.Fatalf("exit code %d:\n%s%s", code, out, errs)
		}
		value = map[int][2]time.Duration{}
		for _, tr := range p.exported().Runs[0].Trials {
			if a := tr.Attempts[len(tr.Attempts)-1]; tr.Verdict == journal.Succeeded && a.Verdict == journal.Succeeded {
				value[tr.Index] = [2]time.Duration{a.Connect, a.Elapsed}
			}
		}
		return p, value
	}
	_, want := values()
	if len(want) != 54 {
		t.Fatalf("%d of 54 trials succeeded without faults", len(want))
	}
	schedule := filepath.Join(t.TempDir(), "schedule.yaml")
	if err := os.WriteFile(schedule, []byte(`
faults: # what begins while an interface is not in order, and what lasts longer than that
  - {at: 1s, kind: mtu, node: server, for: 4s}
  - {at: 2s, kind: kill, target: agent, node: server}
  - {at: 12s, kind: mtu, node: client, for: 4s}
  - {at: 13s, kind: kill, target: agent, node: client}
  - {at: 18s, kind: address, node: server, for: 3s}
  - {at: 19s, kind: power-cut, node: server, for: 1s}
  - {at: 23s, kind: stop, target: emulator, for: 1s}
  - {at: 25s, kind: kill, target: emulator}
  - {at: 27s, kind: stop, target: agent, node: server, for: 1500ms}
  - {at: 30s, kind: radio-down, node: server, for: 2s}
  - {at: 31s, kind: kill, target: driver, node: server, driver: haul}
  - {at: 34s, kind: stop, target: driver, node: server, driver: haul, for: 1s}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	p, got := values("--faults", schedule)
	if faults := p.faults(); len(faults) != 12 {
		t.Errorf("%d of 12 faults were injected", len(faults))
	}
	if len(got) < 45 {
		t.Errorf("%d of 54 trials succeeded", len(got))
	}
	elsewhere := 0
	for trial, x := range got {
		for i, what := range []string{"connecting", "transferring"} {
			if w := want[trial][i]; (x[i] - w).Abs() > w/10 { // the emulator is a process of its own with faults
				t.Errorf("trial %d: %s took %s, without faults %s", trial, what, x[i], w)
			}
			// SCTP's timers depend on when its processes were started. Where the channel lost
			// what connects, the transfer begins at another time, and meets another part of
			// the channel.
			if (x[0] - want[trial][0]).Abs() > 5*time.Millisecond {
				elsewhere++
				break
			}
		}
	}
	if elsewhere > 2 {
		t.Errorf("%d transfers began at another time after the attempt did than without faults", elsewhere)
	}
}
