package radiomark

import (
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"linktrial/internal/namespace/namespacetest"
)

func TestMark(t *testing.T) {
	if !namespacetest.Alone(t) {
		return
	}
	namespacetest.IP(t, "link add eth1 type veth peer name eth2")
	look := func(name string) netlink.Link {
		l, err := netlink.LinkByName(name)
		require.NoError(t, err)
		return l
	}
	on := func(name string) bool { return On(net.Interface{Index: look(name).Attrs().Index}) }
	for _, own := range []string{"", "mast, north", "ends in a blank ", strings.Repeat("x", maxAlias-len(mark)-1)} {
		require.NoError(t, netlink.LinkSetAlias(look("eth1"), own))
		require.False(t, on("eth1"))
		for range 2 {
			require.NoError(t, Set(look("eth1"), true))
			require.True(t, on("eth1"))
		}
		require.False(t, on("eth2"))
		for range 2 {
			require.NoError(t, Set(look("eth1"), false))
			require.False(t, on("eth1"))
			require.Equal(t, own, look("eth1").Attrs().Alias)
		}
	}
	require.NoError(t, netlink.LinkSetAlias(look("eth1"), strings.Repeat("x", maxAlias)))
	require.ErrorContains(t, Set(look("eth1"), true), "eth1 has an alias of 255 bytes, expected at most 234")
	require.False(t, On(net.Interface{Index: 4711}), "there is none")
}
