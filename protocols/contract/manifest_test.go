package contract

import (
	"math"
	"slices"
	"strings"
	"testing"

	"linktrial/internal/yamldoc"
)

const goodManifest = `
name: demo
title: Demo
summary: for a test
version: 1.2.3
contract: 2
command: [./demo, --quiet]
network: udp
capabilities: [CAP_NET_ADMIN]
features: [duration]
resources: {memory: 64 MiB, cpus: 0.5, processes: 32}
options:
  mode: {type: string, choices: [a, b], default: a, help: h}
  node: {type: string, from_node: true, help: h}
  count: {type: int, min: 1, max: 10, help: h}
  share: {type: number, min: 0, max: 1, default: 0.5, help: h}
  on: {type: bool, default: true, help: h}
  buffer: {type: size, min: 4 KiB, max: 1 MiB, help: h}
  delay: {type: duration, min: 1ms, max: 1s, default: 200ms, help: h}
`

func manifest(t *testing.T) *Manifest {
	t.Helper()
	m, err := ParseManifest("driver.yaml", []byte(goodManifest))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestParseManifest(t *testing.T) {
	m := manifest(t)
	if m.Name != "demo" || len(m.Options) != 7 || len(m.Command) != 2 || *m.Options[5].Min != 4096 || m.Options[6].Default != 200.0 || !m.Has(FeatureDuration) || m.Has("") || m.Resources != (Resources{64 << 20, 0.5, 32}) {
		t.Errorf("read %+v", m)
	}
	for _, c := range []struct{ old, with, want string }{
		{"name: demo", "name: Demo", "lower-case"},
		{"contract: 2", "contract: 1", "speaks version 2"},
		{"contract: 2", "contract: 3", "speaks version 2"},
		{"[./demo, --quiet]", "[]", "empty list"},
		{"network: udp", "network: ip", `unknown "ip"`},
		{"CAP_NET_ADMIN", "net_admin", "capability"},
		{"[duration]", "[durations]", `did you mean "duration"?`},
		{"[duration]", "duration", "list"},
		{"memory: 64 MiB", "memory: 1 MiB", "6 MiB or more, found 1 MiB"},
		{"cpus: 0.5", "cpus: 0", "0.01"},
		{"processes:", "procs:", `unknown`},
		{"mode:", "Mode:", "option name"},
		{"choices: [a, b], default: a", "choices: [a, b], default: c", "there are a, b"},
		{"max: 10,", "max: 10, default: 11,", "1 to 10"},
		{"min: 1, max: 10", "min: 10, max: 1", "no value would do"},
		{"{type: bool,", "{type: bool, min: 1,", "has no bounds"},
		{"{type: int,", "{type: int, from_node: true,", "only a string option"},
		{"title: Demo\n", "", "title"},
		{"title: Demo\n", "title: Demo\nfiles: []\n", "found an empty list"},
		{"title: Demo\n", "title: Demo\nfiles: [lib]\n", "the list lacks the program"},
		{"title: Demo\n", "title: Demo\nfiles: [../lib]\n", "expected a file or folder in the driver's folder"},
		{"features: [duration]", "roles: []", "found an empty list"},
		{"features: [duration]", "roles: [client]", "one of them alone"},
		{"features: [duration]", "roles: [relay, relay]", "relay is there twice"},
		{"features: [duration]", "roles: [query]", `unknown "query"`},
		{"features: [duration]", "features: [duration]\nroles: [relay]", "not among the roles"},
		{"version: 1.2.3", "verson: 1.2.3", `did you mean "version"?`},
	} {
		if !strings.Contains(goodManifest, c.old) {
			t.Fatalf("no %q", c.old)
		}
		_, err := ParseManifest("driver.yaml", []byte(strings.Replace(goodManifest, c.old, c.with, 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, expected an error with %q", c.with, err, c.want)
		}
	}
}

func TestRoles(t *testing.T) {
	for text, want := range map[string][]Role{
		"":                               {RoleQuery, RoleClient, RoleServer},
		"roles: [relay]":                 {RoleQuery, RoleRelay},
		"roles: [client, server, relay]": {RoleQuery, RoleClient, RoleServer, RoleRelay},
	} {
		m, err := ParseManifest("driver.yaml", []byte(strings.Replace(goodManifest, "features: [duration]", text, 1)))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		for _, r := range []Role{RoleQuery, RoleClient, RoleServer, RoleRelay, "", "router"} {
			if m.Plays(r) != slices.Contains(want, r) {
				t.Errorf("%q: plays %q is %t", text, r, m.Plays(r))
			}
		}
	}
}

func TestCheckOptions(t *testing.T) {
	m := manifest(t)
	got, err := m.CheckOptions(map[string]any{"count": 3.0, "buffer": int64(8192), "mode": "b", "node": "anything"})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"count": int64(3), "buffer": int64(8192), "mode": "b", "node": "anything", "share": 0.5, "on": true, "delay": 200.0}
	if len(got) != len(want) {
		t.Errorf("%v, expected %v", got, want)
	}
	for k, v := range want {
		if got[k] != v {
			t.Errorf("%s is %v (%T), expected %v (%T)", k, got[k], got[k], v, v)
		}
	}
	for name, v := range map[string]any{
		"missing": 1.0, "mode": "c", "node": 1.0, "count": 1.5, "share": math.NaN(), "on": "true", "buffer": 1.0, "delay": nil,
	} {
		if got, err := m.CheckOptions(map[string]any{name: v}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v gives %v, %v", name, v, got, err)
		}
	}
	m.Options[2].Max, m.Options[2].Min = nil, nil
	if got, err := m.CheckOptions(map[string]any{"count": 1e300}); err == nil {
		t.Errorf("1e300 as a whole number gives %v", got)
	}
}

func TestReadOptions(t *testing.T) {
	m := manifest(t)
	d := yamldoc.Parse("plan.yaml", []byte("{buffer: 64 KiB, delay: 5ms, count: 4}"))
	got := m.ReadOptions(d.Root())
	if err := d.Err(); err != nil {
		t.Fatal(err)
	}
	if got["buffer"] != int64(65536) || got["delay"] != 5.0 || got["count"] != int64(4) || got["mode"] != "a" {
		t.Errorf("read %v", got)
	}
	d = yamldoc.Parse("plan.yaml", []byte("{bufer: 64 KiB, delay: 5s, count: x}"))
	m.ReadOptions(d.Root())
	err := d.Err()
	for _, want := range []string{`did you mean "buffer"?`, "1ms to 1000ms", "whole number"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, expected %q among the problems", err, want)
		}
	}
}

// FuzzParseManifest: no manifest that is taken refuses its own defaults.
func FuzzParseManifest(f *testing.F) {
	f.Add([]byte(goodManifest))
	f.Add([]byte("name: x"))
	f.Add([]byte("- [}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := ParseManifest("driver.yaml", b)
		if err != nil {
			return
		}
		defaults := map[string]any{}
		for _, o := range m.Options {
			if o.Default != nil {
				defaults[o.Name] = o.Default
			}
		}
		if _, err := m.CheckOptions(defaults); err != nil {
			t.Fatalf("%s: %v", b, err)
		}
	})
}
