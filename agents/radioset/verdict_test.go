package radioset

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
)

const (
	likelyRadio = linktrialv1.InterfaceVerdict_INTERFACE_VERDICT_LIKELY
	possible    = linktrialv1.InterfaceVerdict_INTERFACE_VERDICT_POSSIBLE
	refused     = linktrialv1.InterfaceVerdict_INTERFACE_VERDICT_REFUSED
)

// words are an interface's points, one a line, those against with a minus.
func words(i *linktrialv1.NodeInterface) string {
	var out []string
	for _, p := range i.Points {
		sign := "+ "
		if p.Against {
			sign = "- "
		}
		out = append(out, sign+p.Text)
	}
	return strings.Join(out, "\n")
}

func TestJudge(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		of      *linktrialv1.NodeInterface
		radio   bool
		verdict linktrialv1.InterfaceVerdict
		says    string // the points, or a part of them
	}{
		"an adapter of a radio":  {&linktrialv1.NodeInterface{Kind: kindUSB, Up: true, Carrier: true, SpeedMbit: 100, Addresses: []string{"fe80::1/64"}}, false, likelyRadio, "+ nothing else uses it: it has no address\n+ it is an adapter on USB, as radios often have\n+ it has a carrier: something is connected\n+ its speed is 100 Mbit/s, as radios often have"},
		"a wired one":            {&linktrialv1.NodeInterface{Kind: kindWired, Up: true, Carrier: true, SpeedMbit: 1000}, false, likelyRadio, "+ it is wired"},
		"one without a cable":    {&linktrialv1.NodeInterface{Kind: kindWired, Up: true}, false, possible, "- it has no carrier: nothing is connected, or that is off\n+ nothing else uses it"},
		"one that is down":       {&linktrialv1.NodeInterface{Kind: kindWired}, false, possible, "- it is down, so nobody knows"},
		"the control network":    {&linktrialv1.NodeInterface{Kind: kindWired, Up: true, Carrier: true, Control: true, DefaultRoute: true, Addresses: []string{"10.20.0.1/24"}}, false, refused, "- the way to the orchestrator goes over it: it is the control network\n+ "},
		"of another program":     {&linktrialv1.NodeInterface{Kind: kindUSB, Up: true, Carrier: true, ConfiguredBy: "NetworkManager"}, false, refused, "- NetworkManager configures it"},
		"with a default route":   {&linktrialv1.NodeInterface{Kind: kindWired, Up: true, Carrier: true, DefaultRoute: true, Addresses: []string{"192.0.2.1/24"}}, false, possible, "- this machine's default route goes over it\n- it has the address 192.0.2.1/24\n+ "},
		"of an office":           {&linktrialv1.NodeInterface{Kind: kindWired, Up: true, Carrier: true, Neighbours: []string{"a", "b", "c", "d"}}, false, likelyRadio, "- 4 neighbours answered there, as in an office network"},
		"with one machine there": {&linktrialv1.NodeInterface{Kind: kindWired, Up: true, Carrier: true, Neighbours: []string{"10.77.0.3"}}, false, likelyRadio, "+ one neighbour answered there: 10.77.0.3"},
		"a wireless one":         {&linktrialv1.NodeInterface{Kind: kindWireless, Up: true, Carrier: true}, false, possible, "- it is wireless, and radios are attached by cable"},
		"a bridge":               {&linktrialv1.NodeInterface{Kind: kindVirtual, Up: true, Carrier: true}, false, possible, "- it is virtual: no cable ends there"},
		"one that is set up":     {&linktrialv1.NodeInterface{Kind: kindVirtual, Up: true, Carrier: true, Addresses: []string{"10.77.0.1/24"}}, true, likelyRadio, "+ it was set up as a radio"},
		"the loopback":           {&linktrialv1.NodeInterface{Kind: kindLoopback, Up: true, Carrier: true, Addresses: []string{"127.0.0.1/8"}}, false, refused, "- it is the loopback, which leads to this machine alone"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			Judge(c.of, c.radio)
			require.Equal(t, c.verdict, c.of.Verdict)
			require.Contains(t, words(c.of), c.says)
		})
	}
}

func TestOrder(t *testing.T) {
	t.Parallel()
	all := []*linktrialv1.NodeInterface{
		{Name: "lo", Kind: kindLoopback}, {Name: "eth0", Kind: kindWired, Up: true, Carrier: true, Control: true},
		{Name: "eth1", Kind: kindWired, Up: true, Carrier: true}, {Name: "usb1", Kind: kindUSB, Up: true, Carrier: true}, {Name: "usb0", Kind: kindUSB, Up: true, Carrier: true}, {Name: "wlan0", Kind: kindWireless, Up: true, Carrier: true},
	}
	weight := map[string]int{}
	for _, i := range all {
		weight[i.Name] = Judge(i, false)
	}
	order(all, weight)
	var names []string
	for _, i := range all {
		names = append(names, i.Name)
	}
	require.Equal(t, []string{"usb0", "usb1", "eth1", "wlan0", "eth0", "lo"}, names)
}

func TestOwner(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ file, text, owner string }{
		"networkd":                      {"run/systemd/netif/links/3", "ADMIN_STATE=configured\nOPER_STATE=routable\n", "systemd-networkd"},
		"networkd that leaves it alone": {"run/systemd/netif/links/3", "ADMIN_STATE=unmanaged\n", ""},
		"networkd of another interface": {"run/systemd/netif/links/4", "ADMIN_STATE=configured\n", ""},
		"NetworkManager":                {"run/NetworkManager/devices/3", "[device]\nmanaged=true\n", "NetworkManager"},
		"a connection of it":            {"run/NetworkManager/devices/3", "[device]\nconnection-uuid=4f0c\n", "NetworkManager"},
		"one that it leaves alone":      {"run/NetworkManager/devices/3", "[device]\nmanaged=false\n", ""},
		"ifupdown":                      {"etc/network/interfaces", "auto eth1\niface eth1 inet dhcp\n", "ifupdown"},
		"a part of its file":            {"etc/network/interfaces.d/radio", "iface eth1 inet static\n  address 10.0.0.1/24\n", "ifupdown"},
		"ifupdown by hand":              {"etc/network/interfaces", "iface eth1 inet manual\n", ""},
		"ifupdown of another interface": {"etc/network/interfaces", "iface eth10 inet dhcp\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			path := filepath.Join(root, c.file)
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
			require.NoError(t, os.WriteFile(path, []byte(c.text), 0o644))
			require.Equal(t, c.owner, owner(root, "eth1", 3))
		})
	}
}
