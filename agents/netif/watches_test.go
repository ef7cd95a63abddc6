package netif

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/executor"
	"linktrial/internal/namespace/namespacetest"
)

// relayRadios are those of a relay between two radios.
func relayRadios(t *testing.T) []Radio {
	t.Helper()
	near := []netip.Addr{netip.MustParseAddr("10.77.0.1"), netip.MustParseAddr("10.78.0.3")}
	plugFirst(t)
	plugSecond(t)
	return []Radio{
		{Device: "radio0", Address: netip.MustParseAddr("10.77.0.2"), Near: near},
		{Device: "other0", Address: netip.MustParseAddr("10.78.0.2"), Near: near},
	}
}

func plugFirst(t *testing.T) {
	t.Helper()
	plug(t, "radio0", "02:00:00:00:00:02")
	namespacetest.IP(t, "addr add 10.77.0.2/24 dev radio0")
}

func plugSecond(t *testing.T) {
	t.Helper()
	plug(t, "other0", "02:00:00:00:00:12")
	namespacetest.IP(t, "addr add 10.78.0.2/24 dev other0")
}

// What happens to a relay's second interface is told with its name, at once, and the first
// one stays in order.
func TestSecondInterface(t *testing.T) {
	t.Parallel()
	if !namespacetest.Alone(t) {
		return
	}
	w := startAll(t, relayRadios(t)...)
	w.Settled(t.Context())
	for _, c := range []struct {
		want         string // of what is wrong at some time
		break_, mend func()
	}{
		{"it is down", func() { namespacetest.IP(t, "link set other0 down") }, func() { namespacetest.IP(t, "link set other0 up") }},
		{"it has lost its address 10.78.0.2", func() { namespacetest.IP(t, "addr del 10.78.0.2/24 dev other0") }, func() { namespacetest.IP(t, "addr add 10.78.0.2/24 dev other0") }},
		{"its MTU is 576, expected 1500", func() { namespacetest.IP(t, "link set other0 mtu 576") }, func() { namespacetest.IP(t, "link set other0 mtu 1500") }},
		{"it does not exist", func() { namespacetest.IP(t, "link del other0") }, func() { plugSecond(t) }},
	} {
		awaitFaults(t, w, "")
		began := time.Now()
		c.break_()
		require.Equal(t, "other0", awaitFaults(t, w, c.want)[0].Device)
		c.mend()
		awaitFaults(t, w, "")
		faults, _ := w.Since(began)
		require.Len(t, faults, 1)
		require.Equal(t, "other0", faults[0].Device)
	}

	began := time.Now()
	namespacetest.IP(t, "link set other0 down")
	namespacetest.IP(t, "link set radio0 down")
	require.Eventually(t, func() bool { faults, _ := w.State(); return len(faults) == 2 }, 20*time.Second, time.Millisecond)
	faults, _ := w.Since(began)
	require.Equal(t, []executor.InterfaceFault{{Device: "radio0", Text: "it is down"}, {Device: "other0", Text: "it is down"}}, faults)
}

// awaitFaults waits until one interface has a fault that begins with text, or none where
// text is empty.
func awaitFaults(t *testing.T, w *Watches, text string) (faults []executor.InterfaceFault) {
	t.Helper()
	end := time.After(20 * time.Second)
	for {
		faults, changed := w.State()
		if text == "" && len(faults) == 0 || text != "" && len(faults) == 1 && strings.HasPrefix(faults[0].Text, text) {
			return faults
		}
		select {
		case <-changed:
		case <-end:
			t.Fatalf("faults %v, expected %q", faults, text)
		}
	}
}

// The radio that leads to another node is found by its network, also where it is down or
// was recorded before it went, and else by the route.
func TestToward(t *testing.T) {
	t.Parallel()
	if !namespacetest.Alone(t) {
		return
	}
	known := relayRadios(t)[:1]
	second := Radio{Device: "other0", Address: netip.MustParseAddr("10.78.0.2")}
	recorded := interfaces()
	find := func(to string, recorded []Recorded) Radio {
		r, found := Toward(netip.MustParseAddr(to), known, recorded)
		require.Equal(t, found, r.Device != "" && r.Device != "radio0", to)
		return r
	}
	find("10.77.0.1", nil)
	require.Equal(t, second, find("10.78.0.3", nil))
	namespacetest.IP(t, "route add 10.99.0.0/24 via 10.78.0.3 dev other0")
	require.Equal(t, second, find("10.99.0.3", nil))
	require.Empty(t, find("192.0.2.1", nil), "there is no route")
	require.Empty(t, find("fe80::1", nil))
	namespacetest.IP(t, "link set other0 down")
	require.Equal(t, second, find("10.78.0.3", nil))
	namespacetest.IP(t, "link del other0")
	require.Empty(t, find("10.78.0.3", nil))
	require.Equal(t, second, find("10.78.0.3", recorded))
}
