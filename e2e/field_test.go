package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"linktrial/executor/journal"
	"linktrial/internal/testkind"
)

// fieldPlan runs over interfaces that Linktrial did not make, at 2 Mbit/s: a transfer takes
// about a second.
const fieldPlan = `
name: field
radio: bench-radio
topology: point-to-point
size: 256 KiB
treatments:
  - {name: tcp, label: TCP, protocol: tcp, options: {congestion: cubic}}
  - {name: sctp, label: SCTP, protocol: sctp}
  - {name: udt, label: UDT, protocol: udt}
  - {name: quic, label: QUIC, protocol: quic}
  - {name: haul, label: Haul, protocol: haul}
iterations: %d
seed: 1
limits: {connect: 5s, transfer: 30s}
`

// fieldCase is a schedule of faults of the real path; each has a trial before it and one
// after it.
type fieldCase struct {
	name       string
	iterations int
	faults     []string
}

var fieldCases = []fieldCase{
	{"interface", 6, []string{
		"at: 6s, kind: interface-new-index, node: server, for: 2s",
		"at: 15s, kind: interface-new-index, node: client, for: 2s",
		"at: 24s, kind: interface-gone, node: server, for: 2s",
		"at: 33s, kind: interface-renamed, node: client, for: 2s",
	}},
	{"address", 6, []string{
		"at: 6s, kind: no-carrier, node: server, for: 2s",
		"at: 15s, kind: address-lost, node: client, for: 2s",
		"at: 24s, kind: address-lost, node: server, for: 2s",
		"at: 33s, kind: address, node: client, for: 2s",
	}},
	{"duplicate address", 4, []string{
		"at: 6s, kind: address-duplicate, node: server, for: 4s",
		"at: 18s, kind: address-duplicate, node: client, for: 4s",
	}},
	{"route", 4, []string{
		"at: 6s, kind: route, node: server, for: 4s",
		"at: 18s, kind: route, node: client, for: 4s",
	}},
	{"filter", 7, []string{
		"at: 6s, kind: filter, node: server, drop: udp-in, for: 3s",
		"at: 14s, kind: filter, node: client, drop: tcp-out, for: 3s",
		"at: 22s, kind: filter, node: server, drop: sctp, for: 3s",
		"at: 30s, kind: filter, node: client, drop: icmp, for: 2s",
		"at: 38s, kind: filter, node: server, drop: fragments, for: 2s",
	}},
	{"narrow path", 5, []string{
		"at: 6s, kind: mtu-hole, node: server, mtu: 1000, for: 4s",
		// An agent that is started again knows which MTU the run began with.
		"at: 20s, kind: mtu, node: server, mtu: 576, for: 6s",
		"at: 20500ms, kind: kill, target: agent, node: server",
	}},
	{"NAT", 3, []string{
		"at: 6s, kind: nat, node: client, for: 4s",
	}},
	{"node", 7, []string{
		"at: 6s, kind: suspend, node: server, for: 5s",
		"at: 14s, kind: suspend, node: client, for: 5s",
		"at: 22s, kind: clock-step, node: server, step: 1h, for: 3s",
		"at: 30s, kind: duplicate-agent, node: client, for: 4s",
		"at: 38s, kind: disk-full, node: server, for: 2s",
	}},
}

// On interfaces that Linktrial did not make, a fault of the path costs repetitions and
// nothing else: no attempt that overlaps it counts against a protocol or with a wrong
// value, afterwards everything works, and nothing is lost or repeated.
func TestField(t *testing.T) {
	t.Run("rigs", func(t *testing.T) {
		for _, c := range fieldCases {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.run(t)
			})
		}
	})
	nothingLeft(t)
}

// fieldRigs is how many rigs run at once: they mostly wait for the slow link.
const fieldRigs = 4

func (c fieldCase) run(t *testing.T) {
	p := newProgram(t)
	schedule := "faults:\n"
	for _, f := range c.faults {
		schedule += "  - {" + f + "}\n"
	}
	r := p.start(p.field("--faults", p.plan("schedule.yaml", schedule), c.iterations)...)
	code := r.wait(4 * time.Minute)
	checkRun(t, p.exported())
	for _, tr := range p.exported().Runs[0].Trials {
		if tr.Verdict != journal.Succeeded {
			t.Errorf("trial %d of %s counts as %s, on a path that is in order: %s", tr.Index, tr.Treatment, tr.Verdict, attemptsOf(&tr))
		}
	}
	all := p.faults()
	if len(all) != len(c.faults) {
		t.Errorf("%d of %d faults were injected", len(all), len(c.faults))
	}
	for _, f := range all {
		if f.Error != "" || f.To.IsZero() {
			t.Errorf("fault %d (%s of %s at the %s) has not ended: %s %s", f.Number, f.Kind, f.Target, f.Node, f.Detail, f.Error)
		}
	}
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// field is the arguments of a rehearsal of [fieldPlan] on the real path.
func (p *program) field(flag, source string, iterations int, more ...string) []string {
	p.t.Helper()
	catalog, err := filepath.Abs(filepath.Join("testdata", "field"))
	if err != nil {
		p.t.Fatal(err)
	}
	return append([]string{"rehearse", p.plan("field.yaml", fmt.Sprintf(fieldPlan, iterations)), "--real-path", "--catalog", catalog, flag, source}, more...)
}

// lyingInField has a driver that moves less than the tolerance of a busy machine from its
// transfer to connecting, beside itself without that: by so much less that a late event
// does not find it out, and by so much that a late first packet does not hide it; also two
// of it at once. One of the probes says that it sent a quarter more than it did, and that
// all of it arrived.
const lyingInField = `
name: lying-in-field
radio: bench-radio
topology: point-to-point
size: 512 KiB
treatments:
  - {name: honest, protocol: plain, options: {pace: 20ms}}
  - {name: moved, protocol: plain, options: {shift: 350, pace: 20ms}}
  - {name: probe, protocol: probe, options: {packets_per_second: 100}}
  - {name: boast, protocol: boast, options: {packets_per_second: 100}}
  - {name: voice, protocol: probe, options: {packets_per_second: 80}}
  - {name: brag, protocol: boast, options: {packets_per_second: 80}}
mixes:
  - {name: honest-twice, flows: [{treatment: honest, count: 2}]}
  - {name: moved-twice, flows: [{treatment: moved, count: 2}]}
probes:
  - {treatment: probe, beside: false, alone: 3s}
  - {treatment: boast, beside: false, alone: 3s}
  - {treatment: voice, from: server, beside: false, alone: 3s}
  - {treatment: brag, from: server, beside: false, alone: 3s}
iterations: 2
order: fixed
seed: 1
limits: {connect: 5s, transfer: 30s}
`

// Over real interfaces the packets that leave the client's node tell how long a transfer
// took at the least, and those that arrive at the server's how many of a probe can have.
func TestFalseValuesInField(t *testing.T) {
	testkind.Waits("for trials, and for what other nodes recorded")
	p := newProgram(t)
	catalog, err := filepath.Abs(filepath.Join("testdata", "field"))
	if err != nil {
		t.Fatal(err)
	}
	r := p.start("rehearse", p.plan("lying.yaml", lyingInField), "--real-path", "--catalog", catalog, "--drivers", boasters(t, p.bin))
	r.wait(4 * time.Minute) // its exit code says that trials failed
	reasons := map[string]string{"moved": journal.ReasonFasterThanPackets, "boast": journal.ReasonMoreThanSent, "brag": journal.ReasonMoreThanSent, "moved-twice": journal.ReasonFasterThanPackets}
	words := map[string]string{"moved": "on this node's radio ", "boast": " to its listener arrived over the radio", "brag": " from its listener arrived over the radio", "moved-twice": "of 2 transfers to one listener"}
	for _, tr := range p.exported().Runs[0].Trials {
		left := attemptsLeft(&tr)
		if len(left) != 1 {
			t.Fatalf("trial %d of %s: %s", tr.Index, tr.Treatment, attemptsOf(&tr))
		}
		a := left[0]
		t.Logf("%s: %s (%s: %s)", tr.Treatment, a.Verdict, a.Reason, a.Message)
		reason := reasons[tr.Treatment]
		if a.Valid() != (reason == "") || a.Reason != reason || !strings.Contains(a.Message, words[tr.Treatment]) {
			t.Errorf("trial %d of %s: %s (%s: %s)", tr.Index, tr.Treatment, a.Verdict, a.Reason, a.Message)
		}
	}
	nothingLeft(t)
}

// jammedInField is trials beside a listener that sends while others transfer.
const jammedInField = `
name: jammed-in-field
radio: bench-radio
topology: point-to-point
size: 512 KiB
treatments:
  - {name: cubic, protocol: tcp}
  - {name: jammer, protocol: plain, options: {fault: jam}}
iterations: 1
order: fixed
seed: 1
limits: {connect: 5s, transfer: 30s}
`

// A listener that sends while others transfer over real interfaces spoils their attempts,
// which count for nobody, and its name is told.
func TestListenerThatJamsInField(t *testing.T) {
	testkind.Waits("for trials, and for what other nodes recorded")
	p := newProgram(t)
	catalog, err := filepath.Abs(filepath.Join("testdata", "field"))
	if err != nil {
		t.Fatal(err)
	}
	r := p.start("rehearse", p.plan("jammed.yaml", jammedInField), "--real-path", "--catalog", catalog, "--drivers", liars(t))
	r.waitFor("cubic .*marked invalid by linktrial: foreign-traffic: .* at port 5002, that of a listener of treatment jammer .driver plain.", 3*time.Minute)
	if err := r.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	r.wait(time.Minute)
	nothingLeft(t)
}

// contradictedInField is trials over real interfaces and air that loses an eighth.
const contradictedInField = `
name: contradicted-in-field
radio: lossy-bench-radio
topology: point-to-point
size: 1 MiB
treatments:
  - {name: nothing-again, protocol: plain, options: {fault: nothing-again}}
  - {name: haul, protocol: haul}
  - {name: cubic, protocol: tcp}
iterations: 1
order: fixed
seed: 5
limits: {connect: 20s, transfer: 240s, attempts: 1}
`

// What drivers say that they sent again is held against what left one node and did not
// arrive at the other.
func TestCountsThatNodesContradictInField(t *testing.T) {
	testkind.Waits("for trials over air that loses packets, and for what other nodes recorded")
	p := newProgram(t)
	catalog, err := filepath.Abs(filepath.Join("testdata", "field"))
	if err != nil {
		t.Fatal(err)
	}
	r := p.start("rehearse", p.plan("contradicted.yaml", contradictedInField), "--real-path", "--catalog", catalog, "--drivers", liars(t))
	r.wait(5 * time.Minute) // its exit code says that trials failed
	for _, tr := range p.exported().Runs[0].Trials {
		left := attemptsLeft(&tr)
		if len(left) != 1 {
			t.Fatalf("trial %d of %s: %s", tr.Index, tr.Treatment, attemptsOf(&tr))
		}
		a := left[0]
		t.Logf("%s: %s (%s: %s)", tr.Treatment, a.Verdict, a.Reason, a.Message)
		lies := tr.Treatment == "nothing-again"
		if a.Valid() == lies || lies && !strings.Contains(a.Reason, "fewer-than-lost: the driver reports 0 packets sent again; ") {
			t.Errorf("%s: %s (%s: %s)", tr.Treatment, a.Verdict, a.Reason, a.Message)
		}
	}
	nothingLeft(t)
}

// Faults from a seed on the real path. LINKTRIAL_FIELD_FAULTS=SEED:ITERATIONS has a longer
// campaign, with faults of all kinds.
func TestFieldCampaign(t *testing.T) {
	testkind.Waits("for trials, and for what other nodes recorded")
	seed, iterations := "31", 6
	kinds := []string{"--fault-kinds", "interface-new-index,interface-gone,interface-renamed,no-carrier,address-lost,address-duplicate,address,radio-down,route,filter,nat,suspend,control-cut,control-one-way,clock-step"}
	if given := os.Getenv("LINKTRIAL_FIELD_FAULTS"); given != "" {
		s, n, _ := strings.Cut(given, ":")
		if _, err := fmt.Sscan(n, &iterations); err != nil {
			t.Fatalf("LINKTRIAL_FIELD_FAULTS=%q, expected SEED:ITERATIONS", given)
		}
		seed, kinds = s, nil
	}
	p := newProgram(t)
	r := p.start(p.field("--faults", seed, iterations, append(kinds, "--fault-interval", "5s")...)...)
	if code := r.wait(3*time.Minute + time.Duration(iterations)*time.Minute); code != 0 {
		t.Errorf("exit code %d", code)
	}
	checkRun(t, p.exported())
	n := len(p.faults())
	t.Logf("seed %s: %d faults in %d iterations", seed, n, iterations)
	if n < iterations/2 {
		t.Error("too few")
	}
	nothingLeft(t)
}
