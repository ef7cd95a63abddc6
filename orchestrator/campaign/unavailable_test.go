package campaign

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/orchestrator/campaign/nodes"
)

func TestUnavailable(t *testing.T) {
	tcp := func(name, congestion string) runsheet.Treatment {
		return runsheet.Treatment{Name: name, Protocol: "tcp", DriverVersion: "1", Options: map[string]any{"congestion": congestion}}
	}
	sheet := &runsheet.Sheet{
		Cell: runsheet.Cell{Radio: "prc"}, Network: &radio.Network{},
		Topology: radio.Topology{Stations: []radio.Station{{Role: radio.RoleClient}, {Role: radio.RoleRelay}, {Role: radio.RoleServer}}},
		Treatments: []runsheet.Treatment{tcp("cubic", "cubic"), tcp("westwood", "westwood"), tcp("odd", "100%"),
			{Name: "sctp", Protocol: "sctp"}, {Name: "haul", Protocol: "tcp", Missing: "not yet", Options: map[string]any{"congestion": "x"}}},
		Trials: []runsheet.Trial{{Flows: []runsheet.Flow{{Treatment: "cubic", From: radio.RoleClient, To: radio.RoleServer}}}},
	}
	split := *sheet
	split.Treatments = slices.Clone(sheet.Treatments)
	split.Treatments[0].Via = []runsheet.Via{{At: radio.RoleRelay, Protocol: "sctp"}}
	fromRelay := *sheet
	fromRelay.Trials = []runsheet.Trial{{Flows: []runsheet.Flow{{Treatment: "cubic", From: radio.RoleRelay, To: radio.RoleServer}}}}
	has := func(role radio.Role, congestion, unsupported string) candidate {
		return candidate{name: string(role), role: role, emulated: true, connected: true, drivers: []nodes.Driver{
			{Name: "tcp", Version: "1", Choices: map[string]string{"congestion": congestion}}, {Name: "sctp", Unsupported: unsupported}}}
	}
	remarked := has("client", "cubic,100%", "")
	remarked.drivers[0].Remarks = map[string]string{"congestion=westwood": "not supported: needs 100% more", "congestion=cubic": "here"}
	all := "cubic, westwood,100%"
	for name, c := range map[string]struct {
		sheet                 *runsheet.Sheet
		client, relay, server candidate
		want                  map[string]string
	}{
		"nothing":  {sheet, has("client", all, ""), has("relay", all, ""), has("server", all, ""), map[string]string{}},
		"westwood": {sheet, has("client", "cubic,100%", ""), has("relay", all, ""), has("server", all, ""), map[string]string{"westwood": "the kernel of client has no congestion control westwood"}},
		"why it cannot be brought along": {sheet, remarked, has("relay", all, ""), has("server", all, ""),
			map[string]string{"westwood": "the kernel of client has no congestion control westwood, nor can it be brought along as eBPF: needs 100% more"}},
		"both": {sheet, has("client", "cubic,westwood", ""), has("relay", all, ""), has("server", "cubic,westwood", ""),
			map[string]string{"odd": "the kernel of client and server has no congestion control 100%"}},
		"no SCTP": {sheet, has("client", all, ""), has("relay", all, ""), has("server", all, "100% missing"), map[string]string{"sctp": "server cannot run sctp: 100% missing"}},
		"each its own": {sheet, has("client", all, "x"), has("relay", all, ""), has("server", all, "y"),
			map[string]string{"sctp": "client cannot run sctp: x; server cannot run sctp: y"}},
		"a relay that only relays":  {sheet, has("client", all, ""), has("relay", "", "x"), has("server", all, ""), map[string]string{}},
		"a relay that flows leave":  {&fromRelay, has("client", all, ""), has("relay", "", "x"), has("server", all, ""), map[string]string{"cubic": "the kernel of relay has no congestion control cubic"}},
		"a relay that splits":       {&split, has("client", all, ""), has("relay", "", "x"), has("server", all, ""), map[string]string{"cubic": "relay cannot run sctp: x"}},
		"options that nobody lists": {sheet, candidate{name: "client", role: "client", emulated: true, connected: true, drivers: []nodes.Driver{{Name: "tcp", Version: "1"}, {Name: "sctp"}}}, has("relay", all, ""), has("server", all, ""), map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			all := []candidate{c.client, c.relay, c.server}
			chosen, problems := choose(c.sheet, all, false)
			require.Empty(t, problems)
			require.Equal(t, c.want, unavailable(c.sheet, chosen, all))
		})
	}
	none := fromRelay
	bare := has("relay", all, "")
	bare.drivers = nil
	_, problems := choose(&none, []candidate{has("client", all, ""), bare, has("server", all, "")}, false)
	require.Equal(t, []string{"treatment cubic: node relay has no driver tcp"}, problems)
	_, problems = choose(&split, []candidate{has("client", all, ""), bare, has("server", all, "")}, false)
	require.Equal(t, []string{"treatment cubic: node relay has no driver sctp"}, problems)
}

// A node without a radio takes part in no run, and the plan's problem names it.
func TestNodeWithoutRadio(t *testing.T) {
	sheet := &runsheet.Sheet{Cell: runsheet.Cell{Radio: "prc"}, Topology: radio.Topology{Stations: []radio.Station{{Role: radio.RoleClient}, {Role: radio.RoleServer}}}}
	alpha := candidate{name: "alpha", bare: true, connected: true}
	server := candidate{name: "server", role: radio.RoleServer, address: "10.0.0.2", connected: true}
	_, problems := choose(sheet, []candidate{alpha, server}, false)
	require.Equal(t, []string{"no client node with a radio is connected: node alpha has no radio yet: set it up on that laptop with 'linktrial start --role client --radio INTERFACE --radio-address ADDRESS'"}, problems)
	alpha.role = radio.RoleServer
	_, problems = choose(sheet, []candidate{alpha, server}, false)
	require.Len(t, problems, 1)
	require.Contains(t, problems[0], "no client node is connected: start one")
	alpha.role = radio.RoleClient
	other := candidate{name: "beta", role: radio.RoleClient, address: "10.0.0.1", connected: true}
	chosen, problems := choose(sheet, []candidate{alpha, other, server}, false)
	require.Empty(t, problems)
	require.Equal(t, map[radio.Role]string{radio.RoleClient: "beta", radio.RoleServer: "server"}, chosen)
}
