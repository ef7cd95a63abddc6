package agent

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/agents/preflight"
	"linktrial/agents/radioset"
	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor/journal"
	"linktrial/internal/radio"
)

func setUp(device, address, profile string, role radio.Role) radioset.Setting {
	return radioset.Setting{Interface: device, Address: netip.MustParsePrefix(address), Role: role, Profile: profile}
}

// A radio that a person set up counts as one that flags name.
func TestAdoptRadio(t *testing.T) {
	c := Config{Orchestrator: "http://127.0.0.1:7700", Role: radio.RoleClient, Place: journal.PlaceUnnamed}
	require.True(t, c.withoutRadio())
	c.adopt(nil)
	require.True(t, c.withoutRadio())
	require.Equal(t, radio.RoleClient, c.Role)
	c.adopt([]radioset.Setting{setUp("eth1", "10.77.0.2/24", "", radio.RoleRelay), setUp("eth2", "10.77.1.2/24", "", radio.RoleRelay)})
	require.False(t, c.withoutRadio())
	require.Equal(t, []any{"eth1", "10.77.0.2", radio.RoleRelay, "", journal.PlaceUnnamed}, []any{c.Device, c.RadioAddress, c.Role, c.Radio, c.Place})
	require.Equal(t, []preflight.Radio{{Device: "eth2", Address: "10.77.1.2"}}, c.More)

	named := Config{Orchestrator: "http://127.0.0.1:7700", Place: journal.PlaceUnnamed}
	named.adopt([]radioset.Setting{setUp("eth1", "10.77.0.1/24", "mpu5", radio.RoleClient)})
	require.Equal(t, []any{"mpu5", journal.PlaceReal}, []any{named.Radio, named.Place})
}

// What flags name counts, and says so.
func TestFlagsWin(t *testing.T) {
	c := Config{Name: "alpha", Role: radio.RoleClient, StateDir: t.TempDir(), DriversDir: t.TempDir(), Orchestrator: "http://127.0.0.1:7700", Device: "lo", RadioAddress: "127.0.0.1"}
	require.NoError(t, c.complete())
	a := &agent{node: node{cfg: c}, runs: map[string]*run{}}
	require.NoError(t, a.openRadios(t.Context()))
	require.Contains(t, a.refusesRadio(), "this agent was started with --device lo, --radio-address 127.0.0.1, which counts")
	require.False(t, a.radios.Carry(t.Context(), &linktrialv1.RadioOrder{Id: "1", Remove: true, Radio: &linktrialv1.NodeRadio{}}, a.refusesRadio()))
	s := a.radios.State(a.fixed)
	require.False(t, s.Done)
	require.Equal(t, a.fixed, s.Text)
	require.True(t, a.radios.Known("1"))
}

// While a run is on the node, its radio stays as it is.
func TestNoOtherRadioDuringRun(t *testing.T) {
	a := &agent{runs: map[string]*run{}}
	require.Empty(t, a.refusesRadio())
	a.runs["abcd-1"] = nil
	require.Equal(t, "run abcd-1 is under way on this node, or is not delivered yet: wait for its end, then try again", a.refusesRadio())
}
