package radioset

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"linktrial/agents/netif"
	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/internal/namespace"
	"linktrial/internal/namespace/namespacetest"
	"linktrial/internal/process"
	"linktrial/internal/radiomark"
)

// other is another machine at the far end of a cable.
type other struct {
	h    *netlink.Handle
	ns   *os.File
	path string
}

func plug(t *testing.T, device string) *other {
	t.Helper()
	ns, err := namespace.Unnamed()
	require.NoError(t, err)
	t.Cleanup(func() { _ = ns.Close() })
	h, err := netlink.NewHandleAt(netns.NsHandle(ns.Fd()))
	require.NoError(t, err)
	t.Cleanup(h.Close)
	o := &other{h, ns, fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), ns.Fd())}
	o.cable(t, device)
	return o
}

// cable connects it, and leaves this end down, as the kernel makes it.
func (o *other) cable(t *testing.T, device string) {
	t.Helper()
	require.NoError(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: device}, PeerName: "far0", PeerNamespace: netlink.NsFd(int(o.ns.Fd()))}))
	far, err := o.h.LinkByName("far0")
	require.NoError(t, err)
	require.NoError(t, o.h.LinkSetUp(far))
}

func (o *other) has(t *testing.T, address string) {
	t.Helper()
	far, err := o.h.LinkByName("far0")
	require.NoError(t, err)
	a, err := netlink.ParseAddr(address)
	require.NoError(t, err)
	require.NoError(t, o.h.AddrAdd(far, a))
}

// echoes answers one datagram at an address of the other machine.
func (o *other) echoes(t *testing.T, address string) {
	t.Helper()
	var c net.PacketConn
	require.NoError(t, process.InNamespace(o.path, func() (err error) {
		c, err = net.ListenPacket("udp", address)
		return err
	}))
	t.Cleanup(func() { _ = c.Close() })
	go func() {
		b := make([]byte, 100)
		for {
			n, from, err := c.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = c.WriteTo(b[:n], from)
		}
	}()
}

// reaches exchanges a datagram with the other machine over the radio.
func reaches(t *testing.T, address string) error {
	t.Helper()
	c, err := net.Dial("udp", address)
	if err != nil {
		return err
	}
	defer c.Close()
	require.NoError(t, c.SetDeadline(time.Now().Add(3*time.Second)))
	if _, err := c.Write([]byte("there?")); err != nil {
		return err
	}
	b := make([]byte, 100)
	n, err := c.Read(b)
	if err == nil && string(b[:n]) != "there?" {
		err = fmt.Errorf("answer %q", b[:n])
	}
	return err
}

func link(t *testing.T, device string) netlink.Link {
	t.Helper()
	l, err := netlink.LinkByName(device)
	require.NoError(t, err)
	return l
}

// looks is all that can be seen of an interface.
func looks(t *testing.T, device string) string {
	t.Helper()
	l := link(t, device)
	addresses, err := netlink.AddrList(l, netlink.FAMILY_V4)
	require.NoError(t, err)
	routes, err := netlink.RouteList(l, netlink.FAMILY_V4)
	require.NoError(t, err)
	a := l.Attrs()
	return fmt.Sprintf("up %v mtu %d addresses %v routes %v alias %q passes on %v", a.Flags&net.FlagUp != 0, a.MTU, addresses, routes, a.Alias, netif.Forwards(device))
}

// marked reports whether other programs of the machine see that an interface is a radio.
func marked(t *testing.T, device string) bool {
	t.Helper()
	i, err := net.InterfaceByName(device)
	require.NoError(t, err)
	return radiomark.On(*i)
}

func open(t *testing.T, dir string) *Keeper {
	t.Helper()
	k, err := Open(Config{Dir: dir, Orchestrator: "https://10.20.0.10:7700", Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	return k
}

// carry carries an order out, and returns what the node says of it.
func carry(t *testing.T, k *Keeper, o *linktrialv1.RadioOrder) (done bool, text string) {
	t.Helper()
	o.Id = t.Name() + time.Now().String()
	k.Carry(t.Context(), o, "")
	s := k.State("")
	require.Equal(t, o.Id, s.OrderId)
	return s.Done, s.Text
}

func client(device string) *linktrialv1.NodeRadio {
	return &linktrialv1.NodeRadio{Interface: device, Address: "10.77.0.1/24", MtuBytes: 1400, Role: "client", Routes: []*linktrialv1.RadioRoute{{To: "10.77.1.0/24", Via: "10.77.0.2"}}}
}

// A radio is set up and reaches the other machine, is kept over a restart of the agent, set
// up again when its adapter comes back, and given back as it was.
func TestRadio(t *testing.T) {
	t.Parallel()
	if !namespacetest.Alone(t) {
		return
	}
	dir := t.TempDir()
	far := plug(t, "radio0")
	far.has(t, "10.77.0.3/24")
	far.echoes(t, "10.77.0.3:7")
	before := looks(t, "radio0")
	k := open(t, dir)
	require.Error(t, reaches(t, "10.77.0.3:7"))
	done, text := carry(t, k, &linktrialv1.RadioOrder{Radio: client("radio0")})
	require.True(t, done, text)
	require.Equal(t, "radio0 has the address 10.77.0.1/24, an MTU of 1400 bytes, a route to 10.77.1.0/24 over 10.77.0.2, and is the radio of this client", text)
	require.NoError(t, reaches(t, "10.77.0.3:7"))
	require.True(t, k.Look(t.Context()))
	require.Equal(t, "radio0", k.All().Interfaces[0].Name)
	require.Contains(t, words(k.All().Interfaces[0]), "+ it was set up as a radio")
	set := looks(t, "radio0")
	require.True(t, marked(t, "radio0"))

	// The agent is started again, and nothing changes.
	k = open(t, dir)
	k.Restore(t.Context())
	require.Equal(t, set, looks(t, "radio0"))
	require.Len(t, k.Radios(), 1)

	// The adapter is pulled, and comes back as another interface with its name.
	namespacetest.IP(t, "link del radio0")
	k.Restore(t.Context())
	far.cable(t, "radio0")
	far.has(t, "10.77.0.3/24")
	k.Restore(t.Context())
	require.Eventually(t, func() bool { return reaches(t, "10.77.0.3:7") == nil }, 10*time.Second, 10*time.Millisecond)
	require.True(t, marked(t, "radio0"))

	// It is given back by an agent that was started in between.
	k = open(t, dir)
	done, text = carry(t, k, &linktrialv1.RadioOrder{Remove: true, Radio: &linktrialv1.NodeRadio{}})
	require.True(t, done, text)
	require.Equal(t, "radio0 is as it was before", text)
	require.Equal(t, before, looks(t, "radio0"))
	require.Empty(t, open(t, dir).Radios())
	done, text = carry(t, k, &linktrialv1.RadioOrder{Remove: true, Radio: &linktrialv1.NodeRadio{}})
	require.False(t, done)
	require.Equal(t, "no radio was set up here", text)
}

// What an interface had before stays when the radio is removed, and a radio that is set
// otherwise leaves nothing of the earlier one.
func TestRadioBesideSettings(t *testing.T) {
	t.Parallel()
	if !namespacetest.Alone(t) {
		return
	}
	plug(t, "radio0")
	plug(t, "radio1")
	namespacetest.IP(t, "addr add 10.77.0.1/24 dev radio0")
	namespacetest.IP(t, "link set radio0 mtu 1300 up alias mast-north")
	first, second := looks(t, "radio0"), looks(t, "radio1")
	k := open(t, t.TempDir())
	done, text := carry(t, k, &linktrialv1.RadioOrder{Radio: client("radio0")})
	require.True(t, done, text)
	done, text = carry(t, k, &linktrialv1.RadioOrder{Radio: &linktrialv1.NodeRadio{Interface: "radio1", Address: "10.77.5.1/24", Role: "client"}})
	require.True(t, done, text)
	require.Equal(t, first, looks(t, "radio0"))
	require.Len(t, k.Radios(), 1)
	done, text = carry(t, k, &linktrialv1.RadioOrder{Remove: true, Radio: &linktrialv1.NodeRadio{Interface: "radio1"}})
	require.True(t, done, text)
	require.Equal(t, second, looks(t, "radio1"))
}

// A setting that cannot be is refused in one sentence, and nothing of it stays.
func TestRadioRefused(t *testing.T) {
	t.Parallel()
	if !namespacetest.Alone(t) {
		return
	}
	plug(t, "wired0")
	namespacetest.IP(t, "addr add 10.20.0.1/24 dev wired0")
	namespacetest.IP(t, "link set wired0 up")
	far := plug(t, "radio0")
	far.has(t, "10.77.0.1/24")
	dir := t.TempDir()
	k := open(t, dir)
	before, wired := looks(t, "radio0"), looks(t, "wired0")
	for name, c := range map[string]struct {
		change func(*linktrialv1.NodeRadio)
		says   string
	}{
		"another machine has the address": {func(*linktrialv1.NodeRadio) {}, "another machine on the link of radio0 has the address 10.77.0.1 ("},
		"the way to the orchestrator":     {func(r *linktrialv1.NodeRadio) { r.Interface = "wired0" }, "the way to the orchestrator goes over wired0"},
		"no interface":                    {func(r *linktrialv1.NodeRadio) { r.Interface = "eth7" }, "this machine has no interface eth7"},
	} {
		r := client("radio0")
		c.change(r)
		done, text := carry(t, k, &linktrialv1.RadioOrder{Radio: r})
		require.False(t, done, name)
		require.Contains(t, text, c.says, name)
		require.Equal(t, before, looks(t, "radio0"), name)
		require.Equal(t, wired, looks(t, "wired0"), name)
		require.Empty(t, open(t, dir).Radios(), name)
	}
	s, err := parse(client("radio0"))
	require.NoError(t, err)
	s.MTU = maxMTU + 1 // more than any cable of the kernel takes
	_, err = k.try(t.Context(), s)
	require.ErrorContains(t, err, "radio0 does not take an MTU of 65536 bytes (it has 1500): ")
	require.Equal(t, before, looks(t, "radio0"))
}

// An order that the power interrupted is taken back at the next start, and the radio that
// was to be replaced by it is there again.
func TestRadioInterrupted(t *testing.T) {
	t.Parallel()
	if !namespacetest.Alone(t) {
		return
	}
	plug(t, "radio0")
	dir := t.TempDir()
	k := open(t, dir)
	done, text := carry(t, k, &linktrialv1.RadioOrder{Radio: client("radio0")})
	require.True(t, done, text)
	set := looks(t, "radio0")
	s, err := parse(&linktrialv1.NodeRadio{Interface: "radio0", Address: "10.77.9.1/24", Role: "client"})
	require.NoError(t, err)
	h := &held{Setting: s, Trying: true}
	require.NoError(t, k.note(h))
	k.kept.Radios = append(k.kept.Radios, h)
	require.NoError(t, k.save())
	require.NoError(t, h.apply(context.Background(), false))
	require.NotEqual(t, set, looks(t, "radio0"))

	k = open(t, dir)
	k.Restore(t.Context())
	require.Equal(t, set, looks(t, "radio0"))
	require.Equal(t, netip.MustParsePrefix("10.77.0.1/24"), k.Radios()[0].Address)
	require.Len(t, k.kept.Radios, 1)
}

// An interface that the agent's configuration names is marked while it does, and changed in no
// other way.
func TestNamedRadio(t *testing.T) {
	t.Parallel()
	if !namespacetest.Alone(t) {
		return
	}
	far := plug(t, "radio0")
	plug(t, "radio1")
	before := looks(t, "radio0")
	dir := t.TempDir()
	open(t, dir).Name(nil)
	require.NoFileExists(t, filepath.Join(dir, file))
	open(t, dir).Name([]string{"radio0", "", "radio7"})
	require.True(t, marked(t, "radio0"))
	require.False(t, marked(t, "radio1"))
	namespacetest.IP(t, "link del radio0")
	far.cable(t, "radio0")
	k := open(t, dir)
	k.Name([]string{"radio0", "radio7"})
	require.True(t, marked(t, "radio0"), "the adapter is another one")
	open(t, dir).Name([]string{"radio1"})
	require.Equal(t, before, looks(t, "radio0"))
	require.True(t, marked(t, "radio1"))
	// One that is set up afterwards is a radio still.
	k = open(t, dir)
	done, text := carry(t, k, &linktrialv1.RadioOrder{Radio: client("radio1")})
	require.True(t, done, text)
	k.Name(nil)
	require.True(t, marked(t, "radio1"))
}

// A relay has a radio to either side, and not a third.
func TestRelay(t *testing.T) {
	t.Parallel()
	if !namespacetest.Alone(t) {
		return
	}
	k := open(t, t.TempDir())
	for i, device := range []string{"radio0", "radio1", "radio2"} {
		plug(t, device)
		done, text := carry(t, k, &linktrialv1.RadioOrder{Radio: &linktrialv1.NodeRadio{Interface: device, Address: fmt.Sprintf("10.77.%d.2/24", i), Role: "relay"}})
		require.Equal(t, i < 2, done, text)
	}
	require.Equal(t, "this relay has two radios, radio0 and radio1: remove one of them", k.State("").Text)
	require.Len(t, k.Radios(), 2)
}

// On the orchestrator's own machine the control network is the one over which other
// machines are connected to it: the agent itself calls by the loopback.
func TestControlNetworkOfOrchestrator(t *testing.T) {
	t.Parallel()
	if !namespacetest.Alone(t) {
		return
	}
	namespacetest.IP(t, "link set lo up")
	far := plug(t, "wired0")
	far.has(t, "10.20.0.2/24")
	namespacetest.IP(t, "addr add 10.20.0.1/24 dev wired0")
	namespacetest.IP(t, "link set wired0 up")
	listener, err := net.Listen("tcp", "10.20.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	l, err := newLister("/", fmt.Sprintf("https://127.0.0.1:%d", listener.Addr().(*net.TCPAddr).Port))
	require.NoError(t, err)
	control := func() bool {
		all, err := l.list(t.Context(), nil)
		require.NoError(t, err)
		for _, i := range all.Interfaces {
			if i.Name == "wired0" {
				return i.Control
			}
		}
		t.Fatal("wired0 is not listed")
		return false
	}
	require.False(t, control())
	var c net.Conn
	require.Eventually(t, func() bool { // the cable's other end comes up meanwhile
		err = process.InNamespace(far.path, func() (err error) {
			c, err = net.Dial("tcp", listener.Addr().String())
			return err
		})
		return err == nil
	}, 10*time.Second, 10*time.Millisecond)
	t.Cleanup(func() { _ = c.Close() })
	require.True(t, control())
}
