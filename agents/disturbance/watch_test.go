package disturbance

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netns"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/namespace"
	"linktrial/internal/namespace/namespacetest"
)

// recorded is what a watch writes.
type recorded struct {
	mu   sync.Mutex
	all  []journal.Watched
	sync []bool
}

func (r *recorded) add(w journal.Watched, durable bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all, r.sync = append(r.all, w), append(r.sync, durable)
}

// node has clocks that a test sets.
type node struct {
	wall   time.Time
	steady time.Duration
	ticks  chan time.Time
}

func (n *node) pass(d time.Duration) {
	n.wall, n.steady = n.wall.Add(d), n.steady+d
}

// A step of the clock is in the record that it ends, whose times are by the clock
// before it; the next one begins by the clock after it. The clock of the machine is
// never stepped here: the test has one of its own.
func TestClockStep(t *testing.T) {
	begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, leading := range []bool{true, false} {
		for name, step := range map[string]time.Duration{"none": 0, "noise": 500 * time.Microsecond, "ahead": time.Hour, "back": -1500 * time.Millisecond, "a year": 365 * 24 * time.Hour} {
			t.Run(fmt.Sprintf("%s, leading %v", name, leading), func(t *testing.T) {
				n := &node{wall: begin, steady: time.Hour, ticks: make(chan time.Time)}
				r := &recorded{}
				w := &Watch{cfg: Config{Rules: &runsheet.Valid{ClockStep: time.Second}, Leading: leading, Record: r.add,
					Clocks: func() (time.Time, time.Duration) { return n.wall, n.steady }}, traffic: newTally()}
				w.stop = func() {}
				w.since, w.from = n.wall, n.steady
				w.looked = w.from
				look := func() {
					w.mu.Lock()
					w.look(false, !leading)
					w.mu.Unlock()
				}
				for range 3 {
					n.pass(time.Second)
					look()
				}
				n.pass(400 * time.Millisecond)
				n.wall = n.wall.Add(step)
				n.pass(600 * time.Millisecond)
				look()
				for range 6 {
					n.pass(time.Second)
					look()
				}
				w.Stop()
				stepped := slices.DeleteFunc(slices.Clone(r.all), func(x journal.Watched) bool { return x.ClockStep == 0 })
				if step < leastStep && step > -leastStep {
					require.Empty(t, stepped)
				} else {
					since := begin
					if !leading {
						since = begin.Add(spanLimit)
					}
					require.Equal(t, []journal.Watched{{Since: since, Until: begin.Add(4 * time.Second), ClockStep: step, ClockLook: time.Second}}, stepped)
				}
				// One record after the other, without gaps, and those that are due are durable.
				at, whole := begin, time.Duration(0)
				for _, x := range r.all {
					require.Equal(t, at, x.Since)
					whole += x.Until.Sub(x.Since)
					at = x.Until.Add(x.ClockStep)
				}
				require.Equal(t, 10*time.Second, whole)
				require.Equal(t, !leading, slices.Contains(r.sync, true))
			})
		}
	}
}

// The kernel's own clocks: no step is seen where none was made.
func TestClocksStandStill(t *testing.T) {
	r := &recorded{}
	ticks := make(chan time.Time)
	w := Start(t.Context(), Config{Rules: &runsheet.Valid{ClockStep: time.Second}, Record: r.add, Ticks: ticks})
	for range 200 {
		ticks <- time.Time{}
	}
	w.Stop()
	require.Len(t, r.all, 1)
	require.Zero(t, r.all[0].ClockStep)
}

// Packets of listeners' ports are passed over, in fragments too, and errors about
// them; all others are counted.
func TestOtherTraffic(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes a network namespace")
	}
	ns := "disturbance-test"
	ip := func(args ...string) {
		t.Helper()
		out, err := exec.Command("ip", args...).CombinedOutput()
		require.NoError(t, err, "ip %v: %s", args, out)
	}
	ip("netns", "add", ns)
	t.Cleanup(func() { exec.Command("ip", "netns", "del", ns).Run() })
	// Neither end of the link sends anything by itself.
	ip("netns", "exec", ns, "sh", "-c", "echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6 && echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6")
	ip("-n", ns, "link", "add", "radio0", "type", "veth", "peer", "name", "other")
	ip("-n", ns, "address", "add", "10.77.0.1/24", "dev", "radio0")
	ip("-n", ns, "link", "set", "other", "up")
	ip("-n", ns, "link", "set", "radio0", "up")
	ip("-n", ns, "neighbour", "add", "10.77.0.2", "lladdr", "02:00:00:00:00:02", "dev", "radio0")

	runtime.LockOSThread() // the thread ends with the test
	handle, err := netns.GetFromPath(namespace.Path(ns))
	require.NoError(t, err)
	defer handle.Close()
	require.NoError(t, netns.Set(handle))
	{
		r := &recorded{}
		w := Start(context.Background(), Config{Rules: &runsheet.Valid{Interfering: &runsheet.Interfering{}}, Devices: []string{"radio0"}, Leading: true, Record: r.add})
		defer w.Stop()
		send := func(from, to string, size int) {
			laddr, err := net.ResolveUDPAddr("udp4", from)
			require.NoError(t, err)
			raddr, err := net.ResolveUDPAddr("udp4", to)
			require.NoError(t, err)
			c, err := net.DialUDP("udp4", laddr, raddr)
			require.NoError(t, err)
			defer c.Close()
			_, err = c.Write(make([]byte, size))
			require.NoError(t, err)
		}
		count := func() int64 {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.traffic.packets
		}
		send("10.77.0.1:40000", "10.77.0.2:5001", 100)  // to a listener
		send("10.77.0.1:5999", "10.77.0.2:40000", 100)  // from one
		send("10.77.0.1:40000", "10.77.0.2:5001", 4000) // in three fragments
		send("10.77.0.1:40000", "10.77.0.2:9", 72)      // 100 bytes
		send("10.77.0.1:40001", "10.77.0.2:6000", 4000) // three fragments: 4000 + 8 + 3·20 bytes
		require.Eventually(t, func() bool { return count() == 4 }, 5*time.Second, 5*time.Millisecond, "packets")
		w.Flush()
		require.Len(t, r.all, 1)
		o := r.all[0].Other
		require.NotNil(t, o)
		require.Empty(t, r.all[0].Unwatched)
		sum := int64(0)
		for _, b := range o.Bytes {
			sum += b.Bytes
		}
		require.EqualValues(t, 4, o.Packets)
		require.EqualValues(t, 100+4068, sum)
		require.Contains(t, o.Most, journal.Conversation{What: "UDP 10.77.0.1 → 10.77.0.2:9", Bytes: 100})

		// An interface that is gone is looked for, and the record says so.
		ip("-n", ns, "link", "del", "radio0")
		require.Eventually(t, func() bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			return len(w.traffic.unwatched) == 1
		}, 10*time.Second, 10*time.Millisecond)
		w.Flush()
		require.Contains(t, r.all[len(r.all)-1].Unwatched, "interface radio0")
	}
}

// An ICMP error belongs to what it is about.
// An interface that another one has replaced is watched on, also where the old one is still
// there under another name.
func TestReplacedInterface(t *testing.T) {
	if !namespacetest.Alone(t) {
		return
	}
	n := 0
	comes := func() {
		n++
		namespacetest.IP(t, "link add radio0 type veth peer name far%d", n)
		namespacetest.IP(t, "link set far%d up", n)
		namespacetest.IP(t, "addr add 10.77.0.1/24 dev radio0")
		namespacetest.IP(t, "link set radio0 up")
		namespacetest.IP(t, "neigh add 10.77.0.2 lladdr 02:00:00:00:00:02 dev radio0")
	}
	comes()
	r := &recorded{}
	w := Start(t.Context(), Config{Rules: &runsheet.Valid{Interfering: &runsheet.Interfering{}}, Devices: []string{"radio0"}, Leading: true, Record: r.add})
	defer w.Stop()
	// seen reports whether a datagram to a port of its own is recorded.
	seen := func(port int) bool {
		c, err := net.Dial("udp", fmt.Sprintf("10.77.0.2:%d", port))
		if err != nil {
			return false
		}
		_, _ = c.Write([]byte("other traffic")) // it is asked again
		_ = c.Close()
		time.Sleep(time.Millisecond)
		w.Flush()
		r.mu.Lock()
		defer r.mu.Unlock()
		return slices.ContainsFunc(r.all, func(x journal.Watched) bool {
			return x.Other != nil && slices.ContainsFunc(x.Other.Most, func(c journal.Conversation) bool { return strings.Contains(c.What, fmt.Sprint(":", port)) })
		})
	}
	is := func(port int) {
		t.Helper()
		require.Eventually(t, func() bool { return seen(port) }, 20*time.Second, 10*time.Millisecond)
	}
	is(700)
	namespacetest.IP(t, "link del radio0")
	comes()
	is(701)
	namespacetest.IP(t, "link set radio0 down")
	namespacetest.IP(t, "link set radio0 name old0")
	comes()
	is(702)
}

func TestICMPErrors(t *testing.T) {
	header := func(protocol byte) []byte {
		return []byte{0x45, 0, 0, 60, 0, 7, 0, 0, 64, protocol, 0, 0, 10, 77, 0, 1, 10, 77, 0, 2}
	}
	packetOf := func(kind byte, port uint16) []byte {
		b := append(header(1), kind, 3, 0, 0, 0, 0, 0, 0)
		b = append(b, header(17)...)
		return append(b, 0x9c, 0x40, byte(port>>8), byte(port))
	}
	for _, c := range []struct {
		b    []byte
		want bool
	}{{packetOf(3, 5001), true}, {packetOf(3, 6000), false}, {packetOf(8, 5001), false}, {header(1), false}, {nil, false}, {[]byte("xx"), false}} {
		p := parse(c.b)
		require.Equal(t, c.want, p.own(), "%x", c.b)
	}
	p := parse(packetOf(8, 1))
	require.Equal(t, "ICMP 10.77.0.1 → 10.77.0.2", p.String())
}

func FuzzParse(f *testing.F) {
	f.Add([]byte{0x45, 0, 0, 60, 0, 7, 0, 0, 64, 17, 0, 0, 10, 77, 0, 1, 10, 77, 0, 2, 0, 9, 0, 9})
	f.Add([]byte{0x60})
	f.Fuzz(func(t *testing.T, b []byte) {
		p := parse(b)
		p.own()
		if s := p.String(); s == "" || strings.ContainsAny(s, "\n\x00") {
			t.Errorf("%q", s)
		}
	})
}

// Each record has what the processors kept from programs in its time, and the next
// measurement begins at once.
func TestHost(t *testing.T) {
	n := &node{wall: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), steady: time.Hour}
	r, begun, open := &recorded{}, 0, 0
	w := Start(t.Context(), Config{Rules: &runsheet.Valid{HostShare: 0.05}, Leading: true, Virtual: true, Record: r.add,
		Clocks: func() (time.Time, time.Duration) { return n.wall, n.steady },
		Host: func() (end func() journal.HostWatched) {
			begun++
			open++
			missed := time.Duration(begun)
			return func() journal.HostWatched {
				open--
				return journal.HostWatched{HostLoad: journal.HostLoad{Missed: missed}}
			}
		}})
	n.pass(time.Second)
	w.Flush()
	n.pass(time.Second)
	w.Stop()
	require.Len(t, r.all, 2)
	for i, x := range r.all {
		require.Equal(t, time.Duration(i+1), x.Host.Missed)
	}
	require.Equal(t, 1, open)
}
