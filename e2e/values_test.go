package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"linktrial/executor/journal"
	"linktrial/internal/testkind"
	"linktrial/orchestrator/report"
)

// lying is trials of a driver that carries its transfers well, and reports
// other values than those it measured.
const lying = `
name: lying
radio: prc-117g-anw2c
topology: vip-lot
size: 96 KiB
treatments:
  - {name: honest, protocol: plain}
  - {name: slow-clock, protocol: plain, options: {clock: 0.8, pace: 150ms}}
  - {name: fast-clock, protocol: plain, options: {clock: 1.5, pace: 150ms}}
  - {name: short-and-slow, protocol: plain, options: {clock: 0.45}}
  - {name: unsent, protocol: plain, options: {fault: unsent}}
  - {name: corrupted, protocol: plain, options: {fault: corrupted}}
  - {name: ahead, protocol: plain, options: {fault: ahead}}
  - {name: daemon, protocol: plain, options: {fault: daemon}}
  - {name: moved, protocol: plain, options: {shift: 450, pace: 40ms}}
  - {name: connected-early, protocol: plain, options: {shift: -1000, pace: 40ms}}
mixes:
  - {name: honest-twice, flows: [{treatment: honest, count: 2}]}
  - {name: moved-twice, flows: [{treatment: moved, count: 2}]}
  - {name: early-twice, flows: [{treatment: connected-early, count: 2}]}
iterations: 2
order: fixed
seed: 1
limits: {connect: 10s, transfer: 60s, attempts: 3}
`

// expectLies asserts what comes of the trials of lying: the reason of each
// treatment's only attempt, and that no other value than those of honest trials
// counts. moved is the reason of a driver that reports time of the transfer as connecting,
// early of one that does the opposite; short are those that the short transfer with a slow
// clock may have.
func expectLies(t *testing.T, p *program, table, moved, early string, short ...string) {
	t.Helper()
	// Where the radio loses the first packet, a second is waited for before the next one,
	// which the driver then counts to the transfer: that alone is too long.
	reasons := map[string][]string{"short-and-slow": short, "connected-early": {early, journal.ReasonLongerThanRun}, "early-twice": {early, journal.ReasonLongerThanRun}}
	want := map[string]string{"honest": "", "daemon": "", "honest-twice": "", "moved-twice": moved, "early-twice": early, "slow-clock": journal.ReasonShorterThanRun, "fast-clock": journal.ReasonLongerThanRun,
		"moved": moved, "connected-early": early, "short-and-slow": short[0], "unsent": journal.ReasonMoreThanSent, "ahead": journal.ReasonMoreThanSent, "corrupted": journal.ReasonServerFailed}
	ds := p.exported()
	for _, tr := range ds.Runs[0].Trials {
		verdict := journal.Invalid
		if want[tr.Treatment] == "" {
			verdict = journal.Succeeded
		}
		left := attemptsLeft(&tr)
		if len(left) != 1 {
			t.Errorf("%s, iteration %d: %d attempts, expected 1", tr.Treatment, tr.Iteration, len(tr.Attempts))
		}
		for _, a := range left {
			if tr.Verdict != verdict || a.Verdict != verdict || a.Reason != want[tr.Treatment] && !slices.Contains(reasons[tr.Treatment], a.Reason) || a.Valid() != (verdict == journal.Succeeded) {
				t.Errorf("%s, iteration %d: %s, %s (%s: %s), expected %s (%s)", tr.Treatment, tr.Iteration, tr.Verdict, a.Verdict, a.Reason, a.Message, verdict, want[tr.Treatment])
			}
			t.Logf("%s: %s (%s: %s)", tr.Treatment, a.Verdict, a.Reason, a.Message)
		}
	}
	for treatment, reason := range want {
		if len(slices.Compact(slices.Clone(reasons[treatment]))) > 1 {
			continue // it may have one of each
		}
		if reason != "" && !strings.Contains(table, "2× invalid ("+reason+")") {
			t.Errorf("the table does not count the attempts of %s as invalid (%s)", treatment, reason)
		}
	}
	left := slices.DeleteFunc(ds.Runs[0].Breaches, func(b report.Breach) bool { return b.Treatment != "daemon" })
	if len(left) != 2 || left[0].Trial == nil || !strings.Contains(left[0].Message, "sleep 3600") {
		t.Errorf("breaches %+v, expected the daemon of each of two trials", left)
	}
	b, err := filepath.Glob(filepath.Join(p.work, "results", "*", "breaches.csv"))
	if err != nil || len(b) != 1 {
		t.Fatalf("breaches.csv: %v, %v", b, err)
	}
	text, err := os.ReadFile(b[0])
	if err != nil || strings.Count(string(text), "sleep 3600") != 2 || !strings.Contains(table, "sleep 3600") {
		t.Errorf("%v: what was left behind is not in breaches.csv and the table:\n%s", err, text)
	}
}

// liars makes a folder with the agents' test driver.
func liars(t *testing.T) string {
	t.Helper()
	dir := dataDir(t)
	plain := filepath.Join(dir, "plain")
	if out, err := exec.Command("go", "build", "-o", filepath.Join(plain, "plain"), "../agents/testdata/driver").CombinedOutput(); err != nil {
		t.Fatalf("build test driver: %v\n%s", err, out)
	}
	manifest, err := os.ReadFile("../agents/testdata/driver/driver.yaml")
	if err == nil {
		err = os.WriteFile(filepath.Join(plain, "driver.yaml"), manifest, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// A driver that reports false values has none in the table, in the real-time
// lab; what it left behind is in the exports.
func TestFalseValuesDoNotCount(t *testing.T) {
	testkind.Waits("for trials over a slow radio")
	p := newProgram(t)
	r := p.start("rehearse", p.plan("lying", lying), "--drivers", liars(t))
	r.wait(4 * time.Minute) // its exit code says that trials failed
	// A busy machine could delay events of so short a transfer by as much, but no
	// radio can carry it as fast. Where the radio loses the SYN, what the clock leaves
	// out of that second is more than a busy machine could.
	expectLies(t, p, r.output(), journal.ReasonFasterThanPackets, journal.ReasonFasterThanPackets, journal.ReasonFasterThanRadio, journal.ReasonShorterThanRun)
	nothingLeft(t)
}

// The same in virtual time.
func TestFalseValuesDoNotCountInVirtualTime(t *testing.T) {
	testkind.OfTest(t, testkind.Exact, "runs in virtual time")
	p := newProgram(t)
	stdout, stderr, _ := p.run("rehearse", "--virtual", p.plan("lying", lying), "--drivers", liars(t))
	expectLies(t, p, stdout+stderr, journal.ReasonShorterThanRun, journal.ReasonLongerThanRun, journal.ReasonShorterThanRun)
}

// outage is a radio that is slow, then holds everything back, then is fast.
const outage = `
name: outage
title: Radio with an outage
manufacturer: none
model: none
waveform: none
figures:
  - {name: rate, value: 400 kbit/s, source: "chosen"}
emulation:
  medium: {value: full-duplex, source: "chosen"}
  rate: {value: 400 kbit/s, source: "chosen"}
  processing_delay: {value: 1ms, source: "chosen"}
  mtu: {value: 1500 B, source: "chosen"}
  queue: {bytes: 1 MiB, source: "chosen"}
  channel: {model: trace, file: outage.csv, source: "chosen"}
`

// The radio could carry the short transfer as fast after the outage, but the
// driver has connected before it: a clock at 0.6 ends within the outage.
func TestFasterThanIdealDoesNotCount(t *testing.T) {
	p := newProgram(t)
	catalog := dataDir(t)
	profiles := filepath.Join(catalog, "radio-profiles")
	if err := os.MkdirAll(profiles, 0o755); err != nil {
		t.Fatal(err)
	}
	trace := strings.Builder{}
	trace.WriteString("time_s,loss,rate_bit_s\n")
	for i, rate := range []int{50_000, 50_000, 50_000, 50_000, 0, 0, 0, 400_000} {
		fmt.Fprintf(&trace, "%.1f,0,%d\n", float64(i)/10, rate)
	}
	for name, text := range map[string]string{"outage.yaml": outage, "outage.csv": trace.String()} {
		if err := os.WriteFile(filepath.Join(profiles, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r := p.start("rehearse", "--catalog", catalog, "--drivers", liars(t), p.plan("swift", `
name: swift
radio: outage
topology: point-to-point
size: 16 KiB
treatments:
  - {name: honest, protocol: plain}
  - {name: swift, protocol: plain, options: {clock: 0.6}}
iterations: 2
order: fixed
seed: 1
limits: {connect: 10s, transfer: 60s, attempts: 1}
`))
	r.wait(4 * time.Minute)
	for _, tr := range p.exported().Runs[0].Trials {
		left := attemptsLeft(&tr)
		if len(left) == 0 {
			t.Errorf("%s, iteration %d: every attempt is invalid: %s", tr.Treatment, tr.Iteration, attemptsOf(&tr))
			continue
		}
		a := left[0]
		want, reason := journal.Succeeded, ""
		if tr.Treatment == "swift" {
			want, reason = journal.Invalid, journal.ReasonFasterThanIdeal
		}
		if tr.Verdict != want || a.Reason != reason {
			t.Errorf("%s, iteration %d: %s (%s: %s), expected %s (%s)", tr.Treatment, tr.Iteration, tr.Verdict, a.Reason, a.Message, want, reason)
		}
		t.Logf("%s: %s (%s: %s)", tr.Treatment, a.Verdict, a.Reason, a.Message)
	}
	nothingLeft(t)
}

// turning are radios of 8 Mbit/s that make packets wait for more than the ones
// before them: by name, what differs in their profiles.
var turning = map[string]string{
	"slots":      "  medium: {value: shared, source: chosen}\n  access: {tdma: {slot: 2ms, guard: 200us, owners: [client, server]}, source: chosen}\n  queue: {bytes: 256 KiB, source: chosen}\n  channel: {model: perfect, source: chosen}\n",
	"contention": "  medium: {value: shared, source: chosen}\n  access: {csma: {difs: 50us, slot: 20us, window_min: 15, window_max: 1023, retries: 7}, source: chosen}\n  queue: {bytes: 256 KiB, source: chosen}\n  channel: {model: perfect, source: chosen}\n",
	"jitter":     "  medium: {value: full-duplex, source: chosen}\n  queue: {bytes: 256 KiB, source: chosen}\n  channel: {model: trace, file: jitter.csv, repeat: true, source: chosen}\n",
	"marking":    "  medium: {value: full-duplex, source: chosen}\n  queue: {bytes: 256 KiB, red: {min: 2 KiB, max: 32 KiB, weight: 0.1, max_probability: 0.5, gentle: true, ecn: true}, source: chosen}\n  channel: {model: perfect, source: chosen}\n",
}

// turningCatalog makes a folder with these radios.
func turningCatalog(t *testing.T) string {
	t.Helper()
	dir := dataDir(t)
	profiles := filepath.Join(dir, "radio-profiles")
	if err := os.MkdirAll(profiles, 0o755); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"jitter.csv": "time_s,loss,delay_ms\n0,0,1\n0.01,0,3\n0.02,0,2\n0.03,0,4\n"}
	for name, more := range turning {
		files[name+".yaml"] = "name: " + name + "\ntitle: " + name + "\nmanufacturer: none\nmodel: none\nwaveform: none\nfigures:\n  - {name: rate, value: 8 Mbit/s, source: chosen}\n" +
			"emulation:\n  rate: {value: 8 Mbit/s, source: chosen}\n  processing_delay: {value: 1ms, source: chosen}\n  mtu: {value: 1500 B, source: chosen}\n" + more
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(profiles, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// On radios with TDMA, CSMA, jitter and ECN no honest value is invalid, and a
// time below what the radio needs is, where it is too short for the rules about
// the executor's own clock.
func TestFasterThanARadioWithTurns(t *testing.T) {
	testkind.OfTest(t, testkind.Exact, "runs in virtual time")
	p := newProgram(t)
	stdout, stderr, _ := p.run("rehearse", "--virtual", "--catalog", turningCatalog(t), "--drivers", liars(t), p.plan("turns", `
name: turns
radio: [slots, contention, jitter, marking]
topology: point-to-point
size: 8 KiB
treatments:
  - {name: tcp, protocol: tcp}
  - {name: sctp, protocol: sctp}
  - {name: udt, protocol: udt}
  - {name: plain, protocol: plain}
  - {name: swift, protocol: plain, options: {clock: 0.4}}
iterations: 3
order: fixed
seed: 1
limits: {connect: 10s, transfer: 60s, attempts: 1}
`))
	ds := p.exported()
	if len(ds.Runs) != len(turning) {
		t.Fatalf("%d runs, expected one of each radio:\n%s%s", len(ds.Runs), stdout, stderr)
	}
	for _, run := range ds.Runs {
		if len(run.Trials) != 15 {
			t.Errorf("%s: %d trials, expected 15", run.Sheet.Cell.Radio, len(run.Trials))
		}
		for _, tr := range run.Trials {
			a := tr.Attempts[0]
			want, reason := journal.Succeeded, ""
			if tr.Treatment == "swift" {
				want, reason = journal.Invalid, journal.ReasonFasterThanRadio
			}
			if a.Verdict != want || a.Reason != reason {
				t.Errorf("%s, %s, iteration %d: %s (%s: %s), expected %s (%s)", run.Sheet.Cell.Radio, tr.Treatment, tr.Iteration, a.Verdict, a.Reason, a.Message, want, reason)
			}
		}
	}
}
