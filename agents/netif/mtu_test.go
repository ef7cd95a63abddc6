package netif

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
)

// Nobody states the MTU of a real radio's interface: another one than at the begin is a
// fault, because a protocol that keeps to it has other results than before.
func TestOtherMTU(t *testing.T) {
	name, veth, peer := testInterface(t)
	require.NoError(t, netlink.LinkSetUp(peer))
	require.NoError(t, netlink.LinkSetUp(veth))
	radio := &Radio{Device: name, Address: netip.MustParseAddr("127.0.0.9")}
	require.Eventually(t, func() bool { return stateOf(t, radio).Carrier }, 10*time.Second, time.Millisecond)
	w := startAll(t, *radio).each[0]
	require.NoError(t, netlink.LinkSetMTU(veth, 576))
	require.Eventually(t, func() bool { f, _ := w.State(); return f == "its MTU is 576, expected 1400" }, 10*time.Second, time.Millisecond)
	require.NoError(t, netlink.LinkSetMTU(veth, 1400))
	require.Eventually(t, func() bool { f, _ := w.State(); return f == "" }, 10*time.Second, time.Millisecond)
}
