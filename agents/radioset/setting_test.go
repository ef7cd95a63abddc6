package radioset

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/internal/radio"
)

func good() *linktrialv1.NodeRadio {
	return &linktrialv1.NodeRadio{Interface: "eth1", Address: "10.77.0.1/24", MtuBytes: 1400, Role: "client", Routes: []*linktrialv1.RadioRoute{{To: "10.77.1.0/24", Via: "10.77.0.2"}}}
}

func TestParse(t *testing.T) {
	t.Parallel()
	s, err := parse(good())
	require.NoError(t, err)
	require.True(t, proto.Equal(good(), s.proto()))
	for name, c := range map[string]struct {
		change func(*linktrialv1.NodeRadio)
		says   string
	}{
		"no interface":               {func(r *linktrialv1.NodeRadio) { r.Interface = "" }, `interface "", expected the name of a network interface`},
		"a path":                     {func(r *linktrialv1.NodeRadio) { r.Interface = "../eth1" }, `interface "../eth1"`},
		"a long name":                {func(r *linktrialv1.NodeRadio) { r.Interface = "sixteen-letters-" }, "at most 15 characters"},
		"no length of the network":   {func(r *linktrialv1.NodeRadio) { r.Address = "10.77.0.1" }, `address "10.77.0.1", expected an address of one node with the length of its network`},
		"the network's address":      {func(r *linktrialv1.NodeRadio) { r.Address = "10.77.0.0/24" }, `address "10.77.0.0/24"`},
		"the broadcast address":      {func(r *linktrialv1.NodeRadio) { r.Address = "10.77.0.255/24" }, `address "10.77.0.255/24"`},
		"that of a smaller network":  {func(r *linktrialv1.NodeRadio) { r.Address = "10.77.0.7/30" }, `address "10.77.0.7/30"`},
		"a group's address":          {func(r *linktrialv1.NodeRadio) { r.Address = "224.0.0.5/24" }, `address "224.0.0.5/24"`},
		"all addresses":              {func(r *linktrialv1.NodeRadio) { r.Address = "10.77.0.1/0" }, `address "10.77.0.1/0"`},
		"a small MTU":                {func(r *linktrialv1.NodeRadio) { r.MtuBytes = 67 }, "MTU 67, expected 68 to 65535 bytes, or 0"},
		"a role":                     {func(r *linktrialv1.NodeRadio) { r.Role = "captain" }, `role "captain"`},
		"a default route":            {func(r *linktrialv1.NodeRadio) { r.Routes[0].To = "0.0.0.0/0" }, "and not all addresses"},
		"a route of another version": {func(r *linktrialv1.NodeRadio) { r.Routes[0].To = "fd77::/64" }, "of the same version of IP"},
		"a route over nobody":        {func(r *linktrialv1.NodeRadio) { r.Routes[0].Via = "10.78.0.2" }, `route over "10.78.0.2", expected another node's address in 10.77.0.0/24`},
		"a route over itself":        {func(r *linktrialv1.NodeRadio) { r.Routes[0].Via = "10.77.0.1" }, `route over "10.77.0.1"`},
		"many routes":                {func(r *linktrialv1.NodeRadio) { r.Routes = make([]*linktrialv1.RadioRoute, 17) }, "17 routes, expected at most 16"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := good()
			c.change(r)
			_, err := parse(r)
			require.ErrorContains(t, err, c.says)
		})
	}
}

func TestRefuse(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(all map[string]*linktrialv1.NodeInterface, s *Setting)
		kept   []Setting
		says   string
	}{
		"nothing":             {func(map[string]*linktrialv1.NodeInterface, *Setting) {}, nil, ""},
		"no such interface":   {func(_ map[string]*linktrialv1.NodeInterface, s *Setting) { s.Interface = "eth9" }, nil, "this machine has no interface eth9; it has eth0, eth1: connect the radio"},
		"the control network": {func(_ map[string]*linktrialv1.NodeInterface, s *Setting) { s.Interface = "eth0" }, nil, "the way to the orchestrator goes over eth0"},
		"another program": {func(all map[string]*linktrialv1.NodeInterface, _ *Setting) {
			all["eth1"].ConfiguredBy = "NetworkManager"
		}, nil, "NetworkManager configures eth1, and would change what is set here: have it leave the interface alone ('nmcli device set eth1 managed no')"},
		"the network of another interface": {func(_ map[string]*linktrialv1.NodeInterface, s *Setting) {
			s.Address = netip.MustParsePrefix("10.20.0.9/16")
		}, nil,
			"10.20.0.9/16 is in the network of eth0 (10.20.0.1/24)"},
		"a route to it": {func(_ map[string]*linktrialv1.NodeInterface, s *Setting) {
			s.Routes[0].To = netip.MustParsePrefix("10.20.0.0/16")
		}, nil, "the route to 10.20.0.0/16 covers"},
		"a route to the orchestrator": {func(_ map[string]*linktrialv1.NodeInterface, s *Setting) {
			s.Routes[0].To = netip.MustParsePrefix("10.30.0.0/16")
		}, nil, "lead packets to the orchestrator (10.30.0.7) over the radio"},
		"another role": {func(map[string]*linktrialv1.NodeInterface, *Setting) {}, []Setting{{Interface: "eth2", Role: radio.RoleRelay}}, "eth2 is the radio of a relay, and a node has one role"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := parse(good())
			require.NoError(t, err)
			all := []*linktrialv1.NodeInterface{{Name: "eth0", Kind: kindWired, Control: true, Addresses: []string{"10.20.0.1/24", "fe80::1/64"}}, {Name: "eth1", Kind: kindUSB}}
			c.change(map[string]*linktrialv1.NodeInterface{"eth0": all[0], "eth1": all[1]}, &s)
			got := refuse(&s, all, c.kept, []netip.Addr{netip.MustParseAddr("10.30.0.7")})
			if c.says == "" {
				require.Empty(t, got)
			}
			require.Contains(t, got, c.says)
		})
	}
}
