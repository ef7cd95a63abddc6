package faults

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/internal/faultlog"
	"linktrial/internal/radio"
)

var virtualNodes = Nodes{All: threeNodes.All, Drivers: threeNodes.Drivers, Virtual: true}

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
