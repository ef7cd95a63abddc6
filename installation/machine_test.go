package installation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// manager keeps what it was told.
type manager struct {
	units map[string]Unit
	told  []string
	fails string // the call that fails
	looks func(after string)
}

func (m *manager) call(what, unit string, change func(*Unit)) error {
	call := what + " " + strings.TrimSuffix(strings.TrimPrefix(unit, "linktrial-"), ".service")
	m.told = append(m.told, call)
	if m.fails == call {
		return fmt.Errorf("%s does not work", call)
	}
	u := m.units[unit]
	change(&u)
	m.units[unit] = u
	if m.looks != nil {
		m.looks(call)
	}
	return nil
}

func (m *manager) Enable(_ context.Context, unit string) error {
	return m.call("enable", unit, func(u *Unit) { u.Enabled = true })
}

func (m *manager) Disable(_ context.Context, unit string) error {
	return m.call("disable", unit, func(u *Unit) { u.Enabled = false })
}

func (m *manager) Start(_ context.Context, unit string) error {
	return m.call("start", unit, func(u *Unit) { u.Active = "active" })
}

func (m *manager) Restart(_ context.Context, unit string) error {
	return m.call("restart", unit, func(u *Unit) { u.Active = "active" })
}

func (m *manager) Stop(_ context.Context, unit string) error {
	return m.call("stop", unit, func(u *Unit) { u.Active = "inactive" })
}

func (m *manager) Unit(_ context.Context, unit string) (Unit, error) { return m.units[unit], nil }

// installed is a machine as a package leaves it.
func installed(t *testing.T) (*Machine, *manager) {
	t.Helper()
	m := &manager{units: map[string]Unit{OrchestratorUnit: {Loaded: true, Active: "inactive"}, AgentUnit: {Loaded: true, Active: "inactive"}}}
	machine := &Machine{Root: t.TempDir(), Manager: m}
	for _, dir := range []string{"/run/systemd/system", "/var/lib", "/usr/bin", "/etc/linktrial"} {
		if err := os.MkdirAll(machine.at(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	uid := os.Geteuid()
	write(t, machine.at("/etc/passwd"), fmt.Sprintf("root:x:0:0::/root:/bin/sh\nlinktrial:x:%d:1::/:/bin/false\nlinktrial-agent:x:%[1]d:1::/:/bin/false\nlinktrial-driver:x:%[1]d:1::/:/bin/false\n", uid))
	write(t, machine.at(program), "")
	return machine, m
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// files are all files of the machine's settings, by name.
func files(t *testing.T, m *Machine) map[string]string {
	t.Helper()
	out := map[string]string{}
	all, err := os.ReadDir(m.at("/etc/linktrial"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		b, err := os.ReadFile(m.at(filepath.Join("/etc/linktrial", e.Name())))
		if err != nil {
			t.Fatal(err)
		}
		out[e.Name()] = string(b)
	}
	return out
}

func expectTold(t *testing.T, m *manager, want ...string) {
	t.Helper()
	if !reflect.DeepEqual(m.told, want) {
		t.Errorf("the service manager was told %q, expected %q", m.told, want)
	}
	m.told = nil
}

func TestStartAndStop(t *testing.T) {
	machine, m := installed(t)
	ready := 0
	check := func(context.Context) error { ready++; return nil }
	if err := machine.StartOrchestrator(t.Context(), OrchestratorSettings{}, check); err != nil {
		t.Fatal(err)
	}
	expectTold(t, m, "enable orchestrator", "start orchestrator")
	agent := AgentSettings{Orchestrator: "https://127.0.0.1:7700", Name: "alpha", Role: "client", Token: "secret"}
	if err := machine.StartAgent(t.Context(), agent, func(context.Context) error {
		f := files(t, machine)
		if f["token"] != "secret\n" || !strings.Contains(f["agent.env"], "LINKTRIAL_OPTIONS=--token-file=/etc/linktrial/token\n") {
			t.Errorf("while the agent enrols: %q", f)
		}
		return check(t.Context())
	}); err != nil {
		t.Fatal(err)
	}
	expectTold(t, m, "enable agent", "start agent")
	want := map[string]string{
		"orchestrator.env": "LINKTRIAL_LISTEN=0.0.0.0:7700\n",
		"agent.env":        "LINKTRIAL_ORCHESTRATOR=https://127.0.0.1:7700\nLINKTRIAL_NODE=alpha\nLINKTRIAL_ROLE=client\n",
	}
	if got := files(t, machine); !maps.Equal(got, want) {
		t.Errorf("%q, expected %q", got, want)
	}
	// Again, nothing is touched.
	agent.Token = ""
	if err := errors.Join(machine.StartOrchestrator(t.Context(), OrchestratorSettings{}, check), machine.StartAgent(t.Context(), agent, check)); err != nil {
		t.Fatal(err)
	}
	expectTold(t, m)
	if ready != 4 {
		t.Errorf("asked %d times whether it is ready, expected 4", ready)
	}
	got, ok, err := machine.Agent()
	if err != nil || !ok || got != agent {
		t.Errorf("%+v, %v, %v, expected %+v", got, ok, err, agent)
	}
	// Other settings are for a new start.
	agent.RadioAddress, agent.Device, agent.Radio = "10.0.0.1", "eth1", "mpu5"
	if err := machine.StartAgent(t.Context(), agent, nil); err != nil {
		t.Fatal(err)
	}
	expectTold(t, m, "restart agent")
	if got, _, err := machine.Agent(); err != nil || got != agent {
		t.Errorf("%+v, %v, expected %+v", got, err, agent)
	}
	if err := machine.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	expectTold(t, m, "disable agent", "stop agent", "disable orchestrator", "stop orchestrator")
	if err := machine.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	expectTold(t, m)
}

// What a person wrote stays: lines, flags, and who may read the file.
func TestLinesOfAPersonStay(t *testing.T) {
	machine, _ := installed(t)
	write(t, machine.at(orchestratorFile), "# ours\nLINKTRIAL_LISTEN=10.0.0.1:7701\nLINKTRIAL_DATABASE='postgres://x:y@db/z'")
	if err := machine.StartOrchestrator(t.Context(), OrchestratorSettings{}, nil); err != nil {
		t.Fatal(err)
	}
	if listen, err := machine.Listen(); err != nil || listen != "10.0.0.1:7701" {
		t.Errorf("%q, %v", listen, err)
	}
	write(t, machine.at(agentFile), "TZ=UTC\nLINKTRIAL_OPTIONS=\"--more-radio=eth2=10.0.1.1 --radio old --driver-reads='/opt/a b'\"\n")
	if err := machine.StartAgent(t.Context(), AgentSettings{Orchestrator: "https://h:1", Name: "a", Radio: "mpu5", Role: "relay", RadioAddress: "10.0.0.1"}, nil); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"orchestrator.env": "# ours\nLINKTRIAL_LISTEN=10.0.0.1:7701\nLINKTRIAL_DATABASE='postgres://x:y@db/z'",
		"agent.env": "TZ=UTC\nLINKTRIAL_OPTIONS=\"--more-radio=eth2=10.0.1.1 \\\"--driver-reads=/opt/a b\\\" --radio=mpu5\"\n" +
			"LINKTRIAL_ORCHESTRATOR=https://h:1\nLINKTRIAL_NODE=a\nLINKTRIAL_ROLE=relay\nLINKTRIAL_RADIO_ADDRESS=10.0.0.1\n",
	}
	if got := files(t, machine); !maps.Equal(got, want) {
		t.Errorf("%q, expected %q", got, want)
	}
	if st, err := os.Stat(machine.at(agentFile)); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
}

// Whatever fails in a step, the machine is as it was.
func TestAStepIsTakenBack(t *testing.T) {
	settings := AgentSettings{Orchestrator: "https://h:1", Name: "alpha", Token: "secret"}
	before := "LINKTRIAL_NODE=old\n"
	for name, c := range map[string]struct {
		fails string
		ready error
		agent Unit // before
		told  []string
	}{
		"enable":                                 {"enable agent", nil, Unit{Active: "inactive"}, []string{"enable agent", "stop agent", "disable agent"}},
		"start":                                  {"start agent", nil, Unit{Active: "inactive"}, []string{"enable agent", "start agent", "stop agent", "disable agent"}},
		"ready":                                  {"", errors.New("not connected"), Unit{Active: "inactive"}, []string{"enable agent", "start agent", "stop agent", "disable agent"}},
		"of one that was enabled and had failed": {"", errors.New("not connected"), Unit{Active: "failed", Enabled: true}, []string{"start agent", "stop agent"}},
		"of one that runs":                       {"", errors.New("not connected"), Unit{Active: "active", Enabled: true}, []string{"restart agent", "restart agent"}},
	} {
		t.Run(name, func(t *testing.T) {
			machine, m := installed(t)
			write(t, machine.at(agentFile), before)
			c.agent.Loaded = true
			m.units[AgentUnit], m.fails = c.agent, c.fails
			ctx, cancel := context.WithCancel(t.Context())
			err := machine.StartAgent(ctx, settings, func(context.Context) error {
				cancel() // a person's interrupt does not keep it from being taken back
				return c.ready
			})
			if err == nil || c.ready != nil && !errors.Is(err, c.ready) || c.fails != "" && !strings.Contains(err.Error(), c.fails+" does not work") {
				t.Errorf("%v", err)
			}
			expectTold(t, m, c.told...)
			if got := files(t, machine); !maps.Equal(got, map[string]string{"agent.env": before}) {
				t.Errorf("%q", got)
			}
			if after := m.units[AgentUnit]; after.Enabled != c.agent.Enabled || after.Running() != c.agent.Running() {
				t.Errorf("%+v was %+v", after, c.agent)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		harm func(*Machine, *manager) error
		now  time.Time
		want string
	}{
		"nothing":    {func(*Machine, *manager) error { return nil }, now, ""},
		"no systemd": {func(m *Machine, _ *manager) error { return os.RemoveAll(m.at("/run/systemd")) }, now, "was not started by systemd"},
		"no unit": {func(_ *Machine, m *manager) error { m.units[AgentUnit] = Unit{}; return nil }, now,
			"linktrial-agent.service is not installed: install Linktrial's package"},
		"no user": {func(m *Machine, _ *manager) error {
			return os.WriteFile(m.at("/etc/passwd"), []byte("linktrial:x:1\nlinktrial-agent:x:1\n"), 0o600)
		}, now, "there is no user linktrial-driver: install"},
		"no program":  {func(m *Machine, _ *manager) error { return os.Remove(m.at(program)) }, now, "/usr/bin/linktrial is not installed"},
		"a clock":     {func(*Machine, *manager) error { return nil }, now.Add(-26 * time.Hour), "this machine's clock says"},
		"a day's end": {func(*Machine, *manager) error { return nil }, now.Add(-24 * time.Hour), ""},
	} {
		machine, m := installed(t)
		if err := c.harm(machine, m); err != nil {
			t.Fatal(err)
		}
		err := machine.Check(t.Context(), c.now)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: %v, expected %q", name, err, c.want)
		}
	}
}

func TestCheckFree(t *testing.T) {
	dir := t.TempDir()
	if err := CheckFree(filepath.Join(dir, "not", "there"), 1); err != nil {
		t.Error(err)
	}
	err := CheckFree(filepath.Join(dir, "not", "there"), 1<<60)
	if err == nil || !strings.HasPrefix(err.Error(), dir+" has ") || !strings.Contains(err.Error(), "expected 1073741824 GiB: make room") {
		t.Error(err)
	}
}

func TestParseUnit(t *testing.T) {
	u, err := parseUnit("NRestarts=2\nActiveEnterTimestamp=@1700000000\nLoadState=loaded\nActiveState=active\nUnitFileState=enabled\nStatusText=works at https://[::]:7700\n")
	if want := (Unit{Loaded: true, Enabled: true, Active: "active", Status: "works at https://[::]:7700", Since: time.Unix(1700000000, 0), Restarts: 2}); err != nil || u != want || !u.Running() {
		t.Errorf("%+v, %v", u, err)
	}
	u, err = parseUnit("ActiveEnterTimestamp=\nLoadState=not-found\nActiveState=inactive\nUnitFileState=\n")
	if want := (Unit{Active: "inactive"}); err != nil || u != want || u.Running() {
		t.Errorf("%+v, %v", u, err)
	}
	for _, text := range []string{"", "LoadState=loaded", "ActiveState=active\nNRestarts=x", "ActiveState=active\nActiveEnterTimestamp=@x"} {
		if _, err := parseUnit(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

func TestSystemctlSaysWhy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "systemctl")
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho \"Failed: $*\" >&2\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	err := (&Systemd{Program: path}).Stop(t.Context(), AgentUnit)
	if err == nil || !strings.Contains(err.Error(), "systemctl stop linktrial-agent.service: exit status 1: Failed: stop linktrial-agent.service") {
		t.Error(err)
	}
}

func TestLocalURL(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "https://127.0.0.1:7700",
		"LINKTRIAL_LISTEN=":                 "https://127.0.0.1:7700",
		"LINKTRIAL_LISTEN=[::]:80":          "https://127.0.0.1:80",
		"LINKTRIAL_LISTEN=:7701":            "https://127.0.0.1:7701",
		"LINKTRIAL_LISTEN=10.0.0.1:7701":    "https://10.0.0.1:7701",
		"LINKTRIAL_LISTEN=127.0.0.1:7701":   "http://127.0.0.1:7701",
		"LINKTRIAL_LISTEN=localhost:7701":   "http://localhost:7701",
		"LINKTRIAL_LISTEN=[::1]:7701":       "http://[::1]:7701",
		"LINKTRIAL_OPTIONS=\"--open -v\"":   "http://127.0.0.1:7700",
		"LINKTRIAL_LISTEN=7700":             "",
		"LINKTRIAL_OPTIONS='\"'":            "",
		"LINKTRIAL_LISTEN=\"127.0.0.1:7700": "",
		"LINKTRIAL_LISTEN=127.0.0.1:7701\nLINKTRIAL_OPTIONS=--tls": "https://127.0.0.1:7701",
	} {
		machine, _ := installed(t)
		write(t, machine.at(orchestratorFile), text)
		if got, err := machine.LocalURL(); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v, expected %q", text, got, err, want)
		}
	}
}
