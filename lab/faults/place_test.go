package faults

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/internal/faultlog"
	"linktrial/internal/radio"
)

var virtualNodes = Nodes{All: threeNodes.All, Drivers: threeNodes.Drivers, Lab: Virtual}

// What does not exist in virtual time is refused by name, wherever it is asked for, and
// never drawn.
func TestVirtualKinds(t *testing.T) {
	_, err := virtualNodes.Parse([]string{"kill:orchestrator"})
	require.ErrorContains(t, err, "kill:orchestrator does not exist in virtual time; there are kill:agent, kill:driver")
	_, err = virtualNodes.Parse([]string{"kill", "control-cut"})
	require.ErrorContains(t, err, "control-cut does not exist in virtual time; there are")
	_, err = virtualNodes.Parse([]string{"klil"})
	require.ErrorContains(t, err, `unknown "klil"`)
	some, err := virtualNodes.Parse([]string{"kill"})
	require.NoError(t, err)
	require.Equal(t, []Choice{{faultlog.Kill, faultlog.Agent}, {faultlog.Kill, faultlog.Driver}, {faultlog.Kill, faultlog.Emulator}}, some)
	all, err := threeNodes.Parse([]string{"kill:orchestrator"})
	require.NoError(t, err)
	require.Len(t, all, 1)

	_, err = Parse("f.yaml", []byte("faults: [{at: 1s, kind: stop, target: database, for: 1s}]"), virtualNodes)
	require.ErrorContains(t, err, "f.yaml:1:25: faults[0].kind: stop:database does not exist in virtual time; there are")
	_, err = Parse("f.yaml", []byte(`random: {seed: 1, kinds: ["duplicate-agent"]}`), virtualNodes)
	require.ErrorContains(t, err, "f.yaml:1:26: random.kinds: duplicate-agent does not exist in virtual time")

	r := NewRandom(3, time.Second, nil, virtualNodes)
	for range 1000 {
		i, ok := r.Next()
		require.True(t, ok)
		require.Contains(t, virtualChoices, Choice{i.Kind, i.Target})
	}
}

// A run without a relay has none of the relay's faults.
func TestNodesOn(t *testing.T) {
	two := Nodes{All: []radio.Role{radio.RoleClient, radio.RoleServer}, Drivers: []radio.Role{radio.RoleServer}}
	list := []Injection{
		{Kind: faultlog.Kill, Target: faultlog.Agent, Node: radio.RoleRelay},
		{Kind: faultlog.Kill, Target: faultlog.Emulator},
		{Kind: faultlog.Kill, Target: faultlog.Driver, Node: radio.RoleClient},
		{Kind: faultlog.Kill, Target: faultlog.Driver, Node: radio.RoleServer},
	}
	require.Equal(t, []Injection{list[1], list[3]}, two.On(list))
}

var fieldNodes = Nodes{All: threeNodes.All, Drivers: threeNodes.Drivers, Lab: RealPath}

// Faults of the path to a radio exist on plain radios alone, and faults of an emulator do
// not exist there.
func TestRealPathKinds(t *testing.T) {
	_, err := threeNodes.Parse([]string{"suspend"})
	require.ErrorContains(t, err, "suspend does not exist on emulated radios; there are kill:agent")
	require.NotContains(t, threeNodes.Choices(), Choice{faultlog.Filter, faultlog.Path})
	_, err = fieldNodes.Parse([]string{"kill:emulator"})
	require.ErrorContains(t, err, "kill:emulator does not exist on the real path")
	some, err := fieldNodes.Parse([]string{"kill", "route"})
	require.NoError(t, err)
	require.NotContains(t, some, Choice{faultlog.Kill, faultlog.Emulator})
	require.Contains(t, some, Choice{faultlog.Route, faultlog.Path})

	s, err := Parse("f.yaml", []byte("faults:\n- {at: 1s, kind: filter, node: server, drop: udp-in, for: 1s}\n- {at: 3s, kind: mtu-hole, node: client, mtu: 900, for: 1s}\n"), fieldNodes)
	require.NoError(t, err)
	require.Equal(t, "filter path of server that drops udp-in for 1s", s.Faults[0].String())
	require.Equal(t, "mtu-hole radio of client 900 bytes for 1s", s.Faults[1].String())
	_, err = Parse("f.yaml", []byte("faults: [{at: 1s, kind: filter, node: server, drop: icpm, for: 1s}]"), fieldNodes)
	require.ErrorContains(t, err, `drop: `)

	r := NewRandom(3, time.Second, nil, fieldNodes)
	drawn := map[Choice]bool{}
	for range 2000 {
		i, ok := r.Next()
		require.True(t, ok)
		drawn[Choice{i.Kind, i.Target}] = true
		require.False(t, i.Target == faultlog.Listener && i.Node == radio.RoleClient, "nothing listens on the client")
		require.Equal(t, i.Kind == faultlog.Filter, i.Block != "")
	}
	require.Len(t, drawn, len(fieldNodes.Choices()))
}
