package plan_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/internal/yamldoc"
	"linktrial/orchestrator/plan"
)

const passing = `name: passing
radio: mpu4
topology: k-lot
size: 64 KiB
treatments:
  - name: a
    protocol: tcp
    via:
      - {at: relay, protocol: split, options: {congestion: reno}}
      - {at: server, protocol: split}
iterations: 2
seed: 7
`

func TestVia(t *testing.T) {
	p, err := plan.Parse(nil, "p.yaml", []byte(passing), testCatalog(t))
	if err != nil {
		t.Fatal(err)
	}
	want := []runsheet.Via{
		{At: radio.RoleRelay, Protocol: "split", DriverVersion: "1.0.0", Options: map[string]any{"accept": "tcp", "connect": "tcp", "congestion": "reno", "buffer": int64(64 << 10)}},
		{At: radio.RoleServer, Protocol: "split", DriverVersion: "1.0.0", Options: map[string]any{"accept": "tcp", "connect": "tcp", "congestion": "cubic", "buffer": int64(64 << 10)}},
	}
	if d := cmp.Diff(want, p.Treatments[0].Via); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"tcp", "split"}, p.Protocols()); d != "" {
		t.Error(d)
	}
	// What it passes makes a treatment another one.
	two := strings.Replace(passing, "iterations:", "  - {name: b, protocol: tcp}\niterations:", 1)
	if _, err := plan.Parse(nil, "p.yaml", []byte(two), testCatalog(t)); err != nil {
		t.Error(err)
	}
}

// Each mistake is one problem at its place.
func TestViaRefused(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{"no relay in the topology", "topology: k-lot", "topology: point-to-point", "9:14: treatments[0].via[0].at: treatment a passes the relay, but topology point-to-point has none"},
		{"a driver without the role", "protocol: split}", "protocol: tcp}", "10:32: treatments[0].via[1].protocol: driver tcp cannot carry connections onward: its manifest has no role relay"},
		{"a relay as an end", "protocol: tcp", "protocol: split", "7:15: treatments[0].protocol: driver split has no client and server; it is a relay"},
		{"the wrong order", "at: server", "at: client", "10:14: treatments[0].via[1].at: the client comes after the relay; expected client, relay, server"},
		{"a role twice", "at: server", "at: relay", "10:14: treatments[0].via[1].at: the relay comes after the relay"},
		{"an unknown role", "at: server", "at: sever", `unknown "sever" (did you mean "server"?)`},
		{"no role", "at: server, ", "", "10:9: treatments[0].via[1].at is missing"},
		{"an unknown driver", "protocol: split}", "protocol: splt}", `unknown protocol "splt" (did you mean "split"?)`},
		{"an unknown option", "congestion: reno", "congestio: reno", `protocol split has no option "congestio"`},
		{"an empty list", "via:\n      - {at: relay, protocol: split, options: {congestion: reno}}\n      - {at: server, protocol: split}", "via: []", "8:10: treatments[0].via: expected at least one, found an empty list"},
		{"a wrong form", "via:\n      - {at: relay, protocol: split, options: {congestion: reno}}\n      - {at: server, protocol: split}", "via: split", "8:10: treatments[0].via: expected a list"},
		{"the same twice", "iterations:", "  - {name: b, protocol: tcp, via: [{at: relay, protocol: split, options: {congestion: reno}}, {at: server, protocol: split}]}\niterations:", "is the same as a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(passing, c.old, c.new, 1)
			if text == passing {
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

// A treatment whose relay process nobody has built is missing with the plan's reason.
func TestViaMissing(t *testing.T) {
	for _, c := range []struct{ old, new string }{
		{"protocol: split}", "protocol: masque}"},
		{"congestion: reno", "congestion: westwood"},
		{"protocol: split}", "protocol: tcp}"},
	} {
		text := strings.Replace(passing, "protocol: tcp", "protocol: tcp\n    missing: not built", 1)
		text = strings.Replace(strings.Replace(text, c.old, c.new, 1), "iterations:", "  - {name: b, protocol: tcp}\niterations:", 1)
		p, err := plan.Parse(nil, "p", []byte(text), testCatalog(t))
		if err != nil || p.Treatments[0].Missing != "not built" {
			t.Errorf("%s: %v, %+v", c.new, err, p)
		}
	}
	text := strings.Replace(passing, "protocol: tcp", "protocol: tcp\n    missing: not built", 1)
	p, err := plan.Parse(nil, "p", []byte(text), testCatalog(t))
	if err != nil || p.Treatments[0].Missing != "" || p.Expected["a"] != "not built" {
		t.Errorf("with all drivers there: %v, %+v", err, p)
	}
}

// TestSecondRadioRefused: second radios need a topology that has them, and no relay
// processes.
func TestSecondRadioRefused(t *testing.T) {
	const text = `name: second
radio: transports-link
topology: two-radios
size: 64 KiB
treatments:
  - {name: a, protocol: tcp}
  - {name: b, protocol: tcp, second_radio: true}
iterations: 2
seed: 7
`
	p, err := plan.Parse(nil, "p.yaml", []byte(text), testCatalog(t))
	if err != nil || p.Treatments[0].SecondRadio || !p.Treatments[1].SecondRadio {
		t.Fatalf("%+v, %v", p, err)
	}
	for name, c := range map[string][3]string{
		"one radio":       {"two-radios", "point-to-point", "7:44: treatments[1].second_radio: treatment b uses second radios, but topology point-to-point gives the nodes one each"},
		"relay processes": {"second_radio: true", "second_radio: true, via: [{at: server, protocol: split}]", "7:44: treatments[1].second_radio: treatment b passes relay processes, which use the first radio"},
	} {
		_, err := plan.Parse(nil, "p.yaml", []byte(strings.Replace(text, c[0], c[1], 1)), testCatalog(t))
		var ps yamldoc.Problems
		if !errors.As(err, &ps) || len(ps) != 1 || !strings.Contains(err.Error(), c[2]) {
			t.Errorf("%s: %v, expected %s", name, err, c[2])
		}
	}
}
