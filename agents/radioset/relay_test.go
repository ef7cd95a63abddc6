package radioset

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/agents/netif"
	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/internal/namespace/namespacetest"
	"linktrial/internal/process"
)

// sides are the machines to either side of a relay.
type sides struct{ left, right *other }

func plugSides(t *testing.T) sides {
	s := sides{plug(t, "radio0"), plug(t, "radio1")}
	for i, o := range []*other{s.left, s.right} {
		o.has(t, fmt.Sprintf("10.77.%d.1/24", i))
		require.NoError(t, process.InNamespace(o.path, func() error {
			namespacetest.IP(t, "route add default via 10.77.%d.2", i)
			return nil
		}))
	}
	s.right.echoes(t, "10.77.1.1:7")
	return s
}

// passes reports whether a datagram of the left machine reaches the right one, and its answer
// comes back, within a time.
func (s sides) passes(t *testing.T, within time.Duration) bool {
	var c net.Conn
	require.NoError(t, process.InNamespace(s.left.path, func() (err error) {
		c, err = net.Dial("udp", "10.77.1.1:7")
		return err
	}))
	defer c.Close()
	for end := time.Now().Add(within); time.Now().Before(end); {
		_, err := c.Write([]byte("there?"))
		if err == nil {
			require.NoError(t, c.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
			if _, err = c.Read(make([]byte, 100)); err == nil {
				return true
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}

func relay(t *testing.T, k *Keeper, n int) string {
	t.Helper()
	done, text := carry(t, k, &linktrialv1.RadioOrder{Radio: &linktrialv1.NodeRadio{Interface: fmt.Sprintf("radio%d", n), Address: fmt.Sprintf("10.77.%d.2/24", n), Role: "relay"}})
	require.True(t, done, text)
	return text
}

const long, short = 10 * time.Second, 300 * time.Millisecond

// A relay passes packets on while it has two radios, over restarts and where an adapter was
// pulled, and its interfaces do so no longer when one of the radios is given back.
func TestRelayPassesPacketsOn(t *testing.T) {
	t.Parallel()
	if !namespacetest.Alone(t) {
		return
	}
	s := plugSides(t)
	dir := t.TempDir()
	k := open(t, dir)
	require.NotContains(t, relay(t, k, 0), "packets are passed on")
	namespacetest.IP(t, "addr add 10.77.1.2/24 dev radio1")
	namespacetest.IP(t, "link set radio1 up")
	require.False(t, s.passes(t, short), "a relay with one radio")
	namespacetest.IP(t, "addr del 10.77.1.2/24 dev radio1")

	require.Contains(t, relay(t, k, 1), "; packets are passed on between radio0 and radio1")
	require.True(t, s.passes(t, long))
	require.True(t, netif.Forwards("radio0", "radio1"))
	require.False(t, netif.Forwards(), "the node as a whole")

	k = open(t, dir)
	k.Restore(t.Context())
	require.True(t, s.passes(t, long), "the agent is started again")

	namespacetest.IP(t, "link del radio0")
	k.Restore(t.Context())
	s.left.cable(t, "radio0")
	s.left.has(t, "10.77.0.1/24")
	require.NoError(t, process.InNamespace(s.left.path, func() error {
		namespacetest.IP(t, "route add default via 10.77.0.2")
		return nil
	}))
	k.Restore(t.Context())
	require.True(t, s.passes(t, long), "the adapter is another one")

	done, text := carry(t, k, &linktrialv1.RadioOrder{Remove: true, Radio: &linktrialv1.NodeRadio{Interface: "radio1"}})
	require.True(t, done, text)
	require.False(t, netif.Forwards("radio0"))
	require.False(t, netif.Forwards("radio1"))
	relay(t, k, 1)
	require.True(t, s.passes(t, long))

	// An order of which the power was lost after it had taken the radio for another role.
	k = open(t, dir)
	k.kept.Radios[1].Trying = true
	require.NoError(t, k.save())
	k = open(t, dir)
	k.Restore(t.Context())
	require.False(t, netif.Forwards("radio0"))
	require.False(t, netif.Forwards("radio1"))
}

// A node whose people have it pass packets on goes on with it when its radios are removed.
func TestForwardingOfPeopleStays(t *testing.T) {
	t.Parallel()
	if !namespacetest.Alone(t) {
		return
	}
	s := plugSides(t)
	for n := range 2 {
		l := fmt.Sprintf("radio%d", n)
		require.NoError(t, setForwarding(link(t, l), true))
	}
	k := open(t, t.TempDir())
	relay(t, k, 0)
	relay(t, k, 1)
	require.True(t, s.passes(t, long))
	done, text := carry(t, k, &linktrialv1.RadioOrder{Remove: true, Radio: &linktrialv1.NodeRadio{}})
	require.True(t, done, text)
	require.True(t, netif.Forwards("radio0", "radio1"))
	require.False(t, netif.Forwards("radio0", "lo"))
}
