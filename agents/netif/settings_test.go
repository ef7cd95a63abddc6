package netif

import (
	"log/slog"
	"net"
	"net/netip"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/safchain/ethtool"
	"github.com/stretchr/testify/require"

	"linktrial/internal/namespace/namespacetest"
)

// run runs a command of the network, and returns what it says.
func run(t *testing.T, command string) string {
	t.Helper()
	words := strings.Fields(command)
	out, err := exec.CommandContext(t.Context(), words[0], words[1:]...).CombinedOutput()
	require.NoError(t, err, "%s: %s", command, out)
	return string(out)
}

// counted is what htb counts, which tc prints even when asked for no statistics: packets of
// the kernel itself (multicast listener reports), whose moment it chooses, are among them.
var counted = regexp.MustCompile(` direct_packets_stat \d+`)

// configuration is what the commands say of a radio's interface, without what it counts.
func configuration(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	for _, c := range []string{"ip -4 route show dev radio0", "ip -6 route show dev radio0", "tc qdisc show dev radio0", "tc class show dev radio0", "tc filter show dev radio0", "ip -o link show radio0"} {
		out.WriteString(run(t, c))
	}
	return counted.ReplaceAllString(out.String(), "")
}

// told awaits what is noticed since a moment.
func told(t *testing.T, w *Watch, since time.Time) (fault string) {
	t.Helper()
	require.Eventually(t, func() bool {
		fault, _, _ = w.Since(since)
		return fault != ""
	}, 10*time.Second, time.Millisecond)
	return fault
}

// Who may configure the network can slow every driver after it down: what it changes of
// the radio is put back at once, and an attempt during which that happened does not count.
func TestSettingsArePutBack(t *testing.T) {
	t.Parallel()
	if !namespacetest.Alone(t) {
		return
	}
	for _, shaped := range []bool{false, true} {
		plug(t, "radio0", "02:00:00:00:00:01")
		for _, c := range []string{
			"ip addr add 10.77.0.1/24 dev radio0", "ip addr add fd77::1/64 dev radio0 nodad",
			"ip route replace 10.77.0.0/24 dev radio0 proto kernel scope link src 10.77.0.1 initcwnd 20", "ip link set radio0 txqueuelen 1000",
		} {
			run(t, c)
		}
		if shaped {
			for _, c := range []string{
				"tc qdisc add dev radio0 root handle 1: htb default 10", "tc class add dev radio0 parent 1: classid 1:10 htb rate 2mbit",
				"tc class add dev radio0 parent 1: classid 1:20 htb rate 1mbit", "tc qdisc add dev radio0 parent 1:20 handle 20: pfifo limit 9",
				"tc filter add dev radio0 parent 1: prio 3 protocol ip u32 match u32 0 0 classid 1:20",
			} {
				run(t, c)
			}
		}
		w := startAll(t,
			Radio{Device: "radio0", Address: netip.MustParseAddr("10.77.0.1"), Peers: []netip.Addr{netip.MustParseAddr("10.77.0.3")}},
			Radio{Device: "radio0", Address: netip.MustParseAddr("fd77::1"), Peers: []netip.Addr{netip.MustParseAddr("fd77::3")}})
		w.Settled(t.Context())
		await(t, w.each[0], "")
		changes := []struct{ change, text string }{
			{"ip route replace 10.77.0.0/24 dev radio0 proto kernel scope link src 10.77.0.1 initcwnd 1 rto_min 2s", `its route to 10.77.0.3 was changed to "initcwnd 1 rto_min 2000 lock" and was "initcwnd 20"; the agent has put it back`},
			{"ip route add 10.77.0.3/32 dev radio0 src 10.77.0.1 window 1000", `its route to 10.77.0.3 was changed to "window 1000"`},
			{"ip -6 route change fd77::/64 dev radio0 proto kernel metric 256 initcwnd 3", `its route to fd77::3 was changed to "initcwnd 3" and was "no attributes"`},
			{"ip -6 route add fd77::3/128 dev radio0 metric 1 window 1000", `its route to fd77::3 was changed to "window 1000"`},
			{"ip link set radio0 txqueuelen 3", `its transmit queue (txqueuelen) was changed to "3 packets" and was "1000 packets"`},
			{"ip link set radio0 gso_max_size 1500", `its segmentation offload was changed to "gso_max_size 1500`},
			{"tc qdisc replace dev radio0 root handle 7: tbf rate 1mbit burst 16kb latency 50ms", "its queueing discipline (tc qdisc) was changed to \"tbf 7: parent ffffffff"},
			{"tc qdisc add dev radio0 clsact", "clsact ffff: parent fffffff1"},
		}
		if shaped {
			changes = append(changes[:2], []struct{ change, text string }{
				{"tc class change dev radio0 parent 1: classid 1:20 htb rate 8kbit", "its classes of traffic (tc class) was changed to \"htb 1:10"},
				{"tc filter add dev radio0 parent 1: prio 1 protocol ip u32 match u8 17 0xff at 9 classid 1:10", "its filters of traffic (tc filter) was changed to \"u32 80000000: parent 10000, priority 3; u32 80000800: parent 10000, priority 3; u32 80100000: parent 10000, priority 1; u32 80100800: parent 10000, priority 1"},
				{"tc filter del dev radio0 parent 1: prio 3", `its filters of traffic (tc filter) was changed to "none"`},
				{"tc qdisc change dev radio0 parent 1:20 handle 20: pfifo limit 1", "its queueing discipline (tc qdisc) was changed"},
				{"tc qdisc replace dev radio0 root handle 7: pfifo limit 1", "its queueing discipline (tc qdisc) was changed to \"pfifo 7: parent ffffffff"},
				{"tc qdisc del dev radio0 root", "its queueing discipline (tc qdisc) was changed to \"noqueue 0: parent ffffffff"},
			}...)
		}
		before := configuration(t)
		for _, c := range changes {
			began := time.Now()
			run(t, c.change)
			of := w.each[0]
			if strings.Contains(c.text, "fd77") {
				of = w.each[1]
			}
			fault := told(t, of, began)
			require.Contains(t, fault, c.text, c.change)
			require.Contains(t, fault, "the agent has put it back")
			require.Equal(t, before, configuration(t), c.change)
			w.look()
			faults, _ := w.State()
			require.Empty(t, faults, c.change)
		}
		namespacetest.IP(t, "link del radio0")
	}
}

// Features of the device are settings as well.
func TestFeaturesArePutBack(t *testing.T) {
	t.Parallel()
	if !namespacetest.Alone(t) {
		return
	}
	plug(t, "radio0", "02:00:00:00:00:01")
	run(t, "ip addr add 10.77.0.1/24 dev radio0")
	device, err := ethtool.NewEthtool()
	require.NoError(t, err)
	defer device.Close()
	w := startAll(t, Radio{Device: "radio0", Address: netip.MustParseAddr("10.77.0.1")}).each[0]
	w.Settled(t.Context())
	await(t, w, "")
	began := time.Now()
	require.NoError(t, device.Change("radio0", map[string]bool{"tx-generic-segmentation": false}))
	fault := told(t, w, began)
	require.Equal(t, `its features (ethtool -k) was changed to "tx-generic-segmentation off" and was "tx-generic-segmentation on"; the agent has put it back`, fault)
	features, err := device.Features("radio0")
	require.NoError(t, err)
	require.True(t, features["tx-generic-segmentation"])
}

// What a discipline counts is no setting, and who changes settings again and again is not
// followed for ever; then a run waits.
func TestSettingsAreNotPutBackForEver(t *testing.T) {
	t.Parallel()
	if !namespacetest.Alone(t) {
		return
	}
	plug(t, "radio0", "02:00:00:00:00:01")
	run(t, "ip addr add 10.77.0.1/24 dev radio0")
	run(t, "tc qdisc add dev radio0 root handle 1: htb")
	cfg := Config{Radios: []Radio{{Device: "radio0", Address: netip.MustParseAddr("10.77.0.1"), Peers: []netip.Addr{netip.MustParseAddr("10.77.0.3")}}}, Logger: slog.New(slog.DiscardHandler)}
	cfg.May = func() []string { return []string{"evil", "tcp"} }
	all, stop, err := Start(t.Context(), cfg)
	require.NoError(t, err)
	defer stop()
	w := all.each[0]
	w.Settled(t.Context())
	await(t, w, "")
	direct := run(t, "tc qdisc show dev radio0")
	run(t, "ip neigh replace 10.77.0.3 lladdr 02:00:00:00:00:03 dev radio0")
	c, err := net.Dial("udp", "10.77.0.3:9")
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Write([]byte("x"))
	require.NoError(t, err)
	require.NotEqual(t, direct, run(t, "tc qdisc show dev radio0"), "no packet was counted")
	fault, _ := w.State()
	require.Empty(t, fault)
	for range undoAtMost {
		began := time.Now()
		run(t, "ip link set radio0 txqueuelen 3")
		fault = told(t, w, began)
		require.Contains(t, fault, "the agent has put it back (of the drivers that ran on this node, evil, tcp may do so)")
	}
	run(t, "ip link set radio0 txqueuelen 3")
	fault = await(t, w, "put it back (")
	require.Equal(t, `its transmit queue (txqueuelen) was changed to "3 packets" and was "1000 packets": put it back (of the drivers that ran on this node, evil, tcp may do so)`, fault)
	run(t, "ip link set radio0 txqueuelen 1000")
	await(t, w, "")
}
