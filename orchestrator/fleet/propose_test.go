package fleet_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/orchestrator/fleet"
)

func TestPropose(t *testing.T) {
	t.Parallel()
	with := func(name, role string, radios ...*linktrialv1.NodeRadio) fleet.NodeRadios {
		return fleet.NodeRadios{Name: name, Role: role, Radios: radios}
	}
	uses := func(name string, addresses ...string) fleet.NodeRadios {
		return fleet.NodeRadios{Name: name, Interfaces: []*linktrialv1.NodeInterface{{Name: "eth0", Addresses: addresses}}}
	}
	radio := func(device, address, role string) *linktrialv1.NodeRadio {
		return &linktrialv1.NodeRadio{Interface: device, Address: address, Role: role}
	}
	client, server := with("a", "client", radio("eth1", "10.77.0.1/24", "client")), with("c", "server", radio("eth1", "10.77.0.3/24", "server"))
	relay := with("b", "relay", radio("eth1", "10.77.0.2/24", "relay"), radio("eth2", "10.77.1.2/24", "relay"))
	for name, c := range map[string]struct {
		all               []fleet.NodeRadios
		node, role, iface string
		says              string // role, address and routes
	}{
		"the first laptop":                    {[]fleet.NodeRadios{with("a", "client"), with("b", "")}, "a", "", "eth1", "client 10.77.0.1/24"},
		"the second":                          {[]fleet.NodeRadios{client, with("b", "")}, "b", "", "eth1", "server 10.77.0.3/24"},
		"one that was started as client, too": {[]fleet.NodeRadios{client, with("b", "client")}, "b", "", "eth1", "server 10.77.0.3/24"},
		"the third":                           {[]fleet.NodeRadios{client, server, with("b", "")}, "b", "", "eth1", "relay 10.77.0.2/24"},
		"a role that a person chose":          {[]fleet.NodeRadios{client, with("b", "")}, "b", "relay", "eth1", "relay 10.77.0.2/24"},
		"a role twice":                        {[]fleet.NodeRadios{client, with("b", "")}, "b", "client", "eth1", "client 10.77.0.4/24"},
		"once more":                           {[]fleet.NodeRadios{client, server}, "a", "", "eth1", "client 10.77.0.1/24"},
		"a site with that network":            {[]fleet.NodeRadios{with("a", ""), uses("b", "10.77.0.9/16")}, "a", "", "eth1", "client 172.31.0.1/24"},
		"a site with a part of it":            {[]fleet.NodeRadios{with("a", ""), uses("b", "fe80::1/64", "10.77.0.200/25")}, "a", "", "eth1", "client 10.77.1.1/24"},
		"the network of the other radios":     {[]fleet.NodeRadios{with("a", "", radio("eth1", "192.168.9.33/27", "client")), with("b", "")}, "b", "", "eth1", "server 192.168.9.35/27"},
		"a relay's second radio":              {[]fleet.NodeRadios{client, with("b", "relay", radio("eth1", "10.77.0.2/24", "relay"))}, "b", "relay", "eth2", "relay 10.77.1.2/24"},
		"a relay's first one again":           {[]fleet.NodeRadios{client, relay}, "b", "relay", "eth1", "relay 10.77.0.2/24"},
		"a client before a relay":             {[]fleet.NodeRadios{relay, with("a", "")}, "a", "", "eth1", "client 10.77.0.1/24 10.77.1.0/24 over 10.77.0.2"},
		"a server behind it":                  {[]fleet.NodeRadios{client, relay, with("c", "")}, "c", "", "eth1", "server 10.77.1.3/24 10.77.0.0/24 over 10.77.1.2"},
		"a node that nobody knows":            {nil, "x", "server", "eth1", "server"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := fleet.Propose(c.all, c.node, c.role, c.iface)
			words := []string{r.Role, r.Address}
			for _, x := range r.Routes {
				words = append(words, x.To+" over "+x.Via)
			}
			require.Equal(t, c.says, strings.TrimSpace(strings.Join(words, " ")))
			require.Equal(t, c.iface, r.Interface)
		})
	}
}
