package server

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"linktrial/internal/namespace/namespacetest"
	"linktrial/internal/radiomark"
)

// An orchestrator is announced neither on the radio that its configuration names, nor on
// those that the machine's agent has set up.
func TestNotAnnouncedOnRadios(t *testing.T) {
	if !namespacetest.Alone(t) {
		return
	}
	namespacetest.IP(t, "link add control type veth peer name radio0")
	interfaces := map[string]net.Interface{}
	for _, name := range []string{"control", "radio0"} {
		i, err := net.InterfaceByName(name)
		require.NoError(t, err)
		interfaces[name] = *i
	}
	named := Config{NotAnnouncedOn: func(i net.Interface) bool { return i.Name == "radio0" }}
	require.True(t, named.notAnnouncedOn(interfaces["radio0"]))
	require.False(t, named.notAnnouncedOn(interfaces["control"]))
	var c Config
	require.False(t, c.notAnnouncedOn(interfaces["radio0"]))
	l, err := netlink.LinkByName("radio0")
	require.NoError(t, err)
	require.NoError(t, radiomark.Set(l, true))
	require.True(t, c.notAnnouncedOn(interfaces["radio0"]))
	require.False(t, c.notAnnouncedOn(interfaces["control"]))
}
