package node

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/installation"
)

// manager stands in for systemd: units are as the test says.
type manager struct {
	units  map[string]installation.Unit
	called []string
}

func (m *manager) call(what, unit string) error {
	m.called = append(m.called, what+" "+unit)
	return nil
}
func (m *manager) Enable(_ context.Context, unit string) error  { return m.call("enable", unit) }
func (m *manager) Disable(_ context.Context, unit string) error { return m.call("disable", unit) }
func (m *manager) Start(_ context.Context, unit string) error   { return m.call("start", unit) }
func (m *manager) Restart(_ context.Context, unit string) error { return m.call("restart", unit) }
func (m *manager) Stop(_ context.Context, unit string) error    { return m.call("stop", unit) }
func (m *manager) Unit(_ context.Context, unit string) (installation.Unit, error) {
	return m.units[unit], nil
}

// packaged is a laptop in a folder, whose agent has the user of this test.
func packaged(t *testing.T) (*services, *manager) {
	t.Helper()
	root := t.TempDir()
	for path, text := range map[string]string{
		"/run/systemd/system/x": "", "/etc/linktrial/agent.env": "LINKTRIAL_ORCHESTRATOR=https://10.0.0.9:7700\nLINKTRIAL_NODE=old\nLINKTRIAL_ROLE=server\nLINKTRIAL_DEVICE=eth1\nLINKTRIAL_RADIO_ADDRESS=10.77.0.3\n",
		"/etc/passwd": "linktrial-agent:x:" + strconv.Itoa(os.Geteuid()) + ":0::/:/bin/false\n", "/var/lib/linktrial/agents/b/identity.pem": "",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(root, path), []byte(text), 0o600))
	}
	m := &manager{units: map[string]installation.Unit{installation.AgentUnit: {Loaded: true, Active: "inactive"}, installation.OrchestratorUnit: {Loaded: true, Active: "inactive"}}}
	return &services{machine: &installation.Machine{Root: root, Manager: m}, limit: 100 * time.Millisecond, pause: time.Millisecond}, m
}

// Where a package has installed the agent, it is started as what has joined; the radio that
// the laptop had stays.
func TestJoinStartsTheAgent(t *testing.T) {
	s, m := packaged(t)
	require.True(t, s.machine.Installed(t.Context()))
	j := &joinCommand{name: "b", services: s}
	require.NoError(t, j.complete("/data", true, nil))
	require.Equal(t, s.machine.NodeState("b"), j.state)
	require.NoError(t, s.free(t.Context()))

	// The agent does not connect: all is as before.
	a := installation.AgentSettings{Orchestrator: "https://10.0.0.1:7700", Name: "b"}
	before, err := os.ReadFile(filepath.Join(s.machine.Root, "/etc/linktrial/agent.env"))
	require.NoError(t, err)
	err = s.start(t.Context(), a)
	require.ErrorContains(t, err, "has not connected within")
	require.ErrorContains(t, err, "add --replace")
	after, err := os.ReadFile(filepath.Join(s.machine.Root, "/etc/linktrial/agent.env"))
	require.NoError(t, err)
	require.Equal(t, string(before), string(after))
	require.Equal(t, []string{"enable " + installation.AgentUnit, "start " + installation.AgentUnit, "stop " + installation.AgentUnit, "disable " + installation.AgentUnit}, m.called)

	m.units[installation.AgentUnit] = installation.Unit{Loaded: true, Active: "active", Status: "connected to https://10.0.0.1:7700"}
	require.NoError(t, s.start(t.Context(), a))
	is, ok, err := s.machine.Agent()
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, installation.AgentSettings{Orchestrator: a.Orchestrator, Name: "b", Role: "server", Device: "eth1", RadioAddress: "10.77.0.3"}, is)

	require.ErrorContains(t, s.free(t.Context()), "this laptop is node b of the orchestrator https://10.0.0.1:7700")
	m.units[installation.OrchestratorUnit] = m.units[installation.AgentUnit]
	require.ErrorContains(t, s.free(t.Context()), "this laptop has an orchestrator of its own")
	m.units[installation.AgentUnit] = installation.Unit{}
	require.False(t, s.machine.Installed(t.Context()))
}

func TestJoinFlagsOfAPackage(t *testing.T) {
	s, _ := packaged(t)
	for _, c := range []struct {
		j    joinCommand
		want string
	}{
		{joinCommand{name: "b", role: "server"}, "give it to 'linktrial agent'"},
		{joinCommand{name: "b", role: "boss", services: s}, `--role "boss", expected client, relay or server`},
		{joinCommand{name: "b", state: "/x", services: s}, "--state is for an agent that a person starts"},
	} {
		require.ErrorContains(t, c.j.complete("/data", true, nil), c.want)
	}
}
