package plan_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"linktrial/internal/radio"
	"linktrial/internal/yamldoc"
	"linktrial/orchestrator/plan"
	"linktrial/protocols/contract"
)

const probing = `name: probing
radio: mpu4
topology: k-lot
size: 64 KiB
treatments:
  - {name: a, protocol: tcp}
  - {name: voice, protocol: probe, options: {pattern: voip-g711}, dscp: EF}
  - {name: sensor, protocol: probe, dscp: 8}
mixes:
  - {name: m, flows: [{treatment: a}], probes: [{treatment: sensor}]}
probes:
  - {treatment: voice, alone: 60s}
iterations: 2
seed: 7
`

func TestProbes(t *testing.T) {
	p, err := plan.Parse(nil, "p.yaml", []byte(probing), testCatalog(t))
	if err != nil {
		t.Fatal(err)
	}
	c := &p.Cells[0]
	voice := plan.ProbeSpec{Treatment: "voice", From: radio.RoleClient, To: radio.RoleServer, Alone: time.Minute, Beside: true}
	sensor := plan.ProbeSpec{Treatment: "sensor", From: radio.RoleClient, To: radio.RoleServer, Beside: true}
	for name, want := range map[string][]plan.ProbeSpec{"a": {voice}, "voice": {voice}, "m": {sensor}} {
		if d := cmp.Diff(want, c.ProbesOf(name)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	// The sensor only accompanies: it listens and has no trials.
	if d := cmp.Diff([]string{"a", "voice", "m"}, c.Runnable()); d != "" {
		t.Error(d)
	}
	if len(c.Listeners) != 1 || c.Listeners[0].Name != "sensor" || !c.Listeners[0].Probe || c.Listeners[0].DSCP != 8 {
		t.Errorf("listeners %+v", c.Listeners)
	}
	if t1 := c.Treatments[1]; !t1.Probe || t1.DSCP != 46 || c.Treatments[0].Probe {
		t.Errorf("treatments %+v", c.Treatments)
	}
}

// TestProbesAlone: probes carry no payload, so that a plan of them needs no size.
func TestProbesAlone(t *testing.T) {
	text := "name: alone\nradio: mpu4\ntopology: k-lot\ntreatments: [{name: v, protocol: probe}]\nprobes: [{treatment: v, alone: 5m}]\niterations: 1\nseed: 1\n"
	p, err := plan.Parse(nil, "p", []byte(text), testCatalog(t))
	if err != nil || p.Trials() != 1 {
		t.Errorf("%+v, %v", p, err)
	}
}

// A call goes both ways: two entries of one treatment, each with its direction.
func TestProbesBothWays(t *testing.T) {
	text := strings.Replace(probing, "alone: 60s}", "alone: 60s}\n  - {treatment: voice, from: server, alone: 30s}\n  - {treatment: sensor, to: client}", 1)
	p, err := plan.Parse(nil, "p", []byte(text), testCatalog(t))
	if err != nil {
		t.Fatal(err)
	}
	there := plan.ProbeSpec{Treatment: "voice", From: radio.RoleClient, To: radio.RoleServer, Alone: time.Minute, Beside: true}
	back := plan.ProbeSpec{Treatment: "voice", From: radio.RoleServer, To: radio.RoleClient, Alone: 30 * time.Second, Beside: true}
	sensor := plan.ProbeSpec{Treatment: "sensor", From: radio.RoleServer, To: radio.RoleClient, Beside: true}
	for name, want := range map[string][]plan.ProbeSpec{"a": {there, back, sensor}, "voice": {there, back}} {
		if d := cmp.Diff(want, p.Cells[0].ProbesOf(name)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// A driver whose server only listens carries probes from the client alone.
func TestProbesFromServerNeedTheFeature(t *testing.T) {
	cat := testCatalog(t)
	cat.Manifest("probe").Features = []contract.Feature{contract.FeatureDSCP}
	_, err := plan.Parse(nil, "p", []byte(strings.Replace(probing, "alone: 60s", "from: server", 1)), cat)
	if err == nil || !strings.Contains(err.Error(), "driver probe cannot send from its server: its manifest has no feature from-server") {
		t.Error(err)
	}
}

// A group takes the plan's probes, or has its own.
func TestProbesOfGroups(t *testing.T) {
	text := strings.Replace(probing, "size: 64 KiB", "size: 64 KiB\ngroups: [{name: g}, {name: h, probes: []}, {name: i, treatments: [a]}]", 1)
	p, err := plan.Parse(nil, "p", []byte(text), testCatalog(t))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"a voice m", "a m", "a"} {
		if got := strings.Join(p.Cells[i].Runnable(), " "); got != want {
			t.Errorf("group %s has trials of %s, expected %s", p.Groups[i], got, want)
		}
	}
	if n := len(p.Cells[2].ProbesOf("a")); n != 1 {
		t.Errorf("the group without the probe among its treatments has %d beside a, expected 1", n)
	}
}

// Each mistake is one problem at its place.
func TestProbesRefused(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{"nobody uses it", "probes:\n  - {treatment: voice, alone: 60s}\n", "", "7:29: treatments[1].protocol: treatment voice is a probe, and no list of probes has it"},
		{"a transfer", "treatment: voice, alone", "treatment: a, alone", `treatment "a" carries transfers, its driver tcp is not a probe`},
		{"an unknown one", "treatment: voice, alone", "treatment: voce, alone", `unknown treatment "voce" (did you mean "voice"?)`},
		{"twice", "alone: 60s}", "alone: 60s}\n  - {treatment: voice}", `probe "voice" is given twice from the client`},
		{"neither way", "alone: 60s", "beside: false", "the probe runs neither beside transfers nor alone"},
		{"twice from the server", "alone: 60s}", "from: server}\n  - {treatment: voice, to: client}", `probe "voice" is given twice from the server`},
		{"from the relay", "alone: 60s", "from: relay", "probes[0].from: probes lead from client to server or back, not from the relay"},
		{"to the relay", "alone: 60s", "to: relay", "probes[0].to: probes lead from client to server or back, not to the relay"},
		{"from the server to itself", "alone: 60s", "from: server, to: server", "the probe leads from the server to itself"},
		{"from nobody", "alone: 60s", "from: gateway", `unknown "gateway"; there are client, relay, server`},
		{"a wrong time", "alone: 60s", "alone: soon", "expected a duration"},
		{"an unknown key", "alone: 60s", "size: 5 KiB", `unknown key "size"`},
		{"no list", "\n  - {treatment: voice, alone: 60s}", " voice", "probes: expected a list"},
		{"a flow of a mix", "[{treatment: a}]", "[{treatment: voice}]", `treatment "voice" is a probe; name it in probes`},
		{"alone in a mix", "[{treatment: sensor}]", "[{treatment: sensor, alone: 1m}]", `unknown key "alone"`},
		{"past a relay", "dscp: EF", "via: [{at: relay, protocol: split}]", "driver probe carries probes, which no relay process carries onward"},
		{"a trace without lines", "pattern: voip-g711", "pattern: trace", "the pattern trace needs the option trace"},
		{"a trace of nonsense", "pattern: voip-g711", `pattern: trace, trace: "0 1"`, "option trace, line 1: expected 24 to 8972 bytes"},
		{"an unknown code point", "dscp: EF", "dscp: AF99", "7:73: treatments[1].dscp: expected a code point by name"},
		{"a code point too high", "dscp: EF", "dscp: 64", `found "64"`},
		{"a driver that does not mark", "name: a, protocol: tcp", "name: a, protocol: tcp, dscp: EF", "driver tcp cannot mark its packets: its manifest has no feature dscp"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(probing, c.old, c.new, 1)
			if text == probing {
				t.Fatalf("%q is not in the plan", c.old)
			}
			_, err := plan.Parse(nil, "p", []byte(text), testCatalog(t))
			var ps yamldoc.Problems
			if !errors.As(err, &ps) || len(ps) != 1 || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got\n%v\nwant, alone,\n%s", err, c.want)
			}
		})
	}
}

// TestProbesOfCapacity: a search for the capacity runs alone, and long enough.
func TestProbesOfCapacity(t *testing.T) {
	const text = "name: alone\nradio: mpu4\ntopology: k-lot\ntreatments: [{name: c, protocol: probe, options: {pattern: capacity}}]\nprobes: [{treatment: c, alone: 20s, beside: false}]\niterations: 1\nseed: 1\n"
	if p, err := plan.Parse(nil, "p", []byte(text), testCatalog(t)); err != nil || p.Trials() != 1 {
		t.Errorf("%+v, %v", p, err)
	}
	both := strings.NewReplacer("capacity}}]", "capacity}}, {name: d, protocol: probe, options: {pattern: capacity}}]", "beside: false}]", "beside: false}, {treatment: d, from: server, alone: 20s, beside: false}]").Replace(text)
	if p, err := plan.Parse(nil, "p", []byte(both), testCatalog(t)); err != nil || p.Trials() != 2 {
		t.Errorf("a treatment for each direction: %+v, %v", p, err)
	}
	for _, c := range []struct{ old, new, want string }{
		{", beside: false", "", `probe "c" searches for the capacity, which leaves transfers beside it no room: expected beside: false`},
		{"20s", "5s", `probe "c" searches for the capacity: expected alone: 10s or more, found 5s`},
	} {
		if _, err := plan.Parse(nil, "p", []byte(strings.Replace(text, c.old, c.new, 1)), testCatalog(t)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, expected %q", c.new, err, c.want)
		}
	}
}
