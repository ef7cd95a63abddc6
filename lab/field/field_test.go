package field_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/internal/process"
	"linktrial/internal/radio"
	"linktrial/lab/field"
	"linktrial/lab/netns"
)

// rig is a lab of plain radios for a test.
func rig(t *testing.T) *netns.Lab {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: the lab makes network namespaces")
	}
	n := &radio.Network{}
	for _, r := range []radio.Role{radio.RoleClient, radio.RoleServer} {
		n.Nodes = append(n.Nodes, radio.Node{Role: r, Address: radio.Addresses[r]})
	}
	l, err := netns.Up(t.Context(), netns.Config{
		Name: fmt.Sprintf("field%d", os.Getpid()), StateDir: t.TempDir(), Network: n, Forward: "127.0.0.1:9",
		Plain: &netns.Plain{BitsPerSecond: 20e6}, Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Down(context.Background())) })
	return l
}

// on runs f in a node's namespace.
func on(t *testing.T, l *netns.Lab, role radio.Role, f func() error) {
	t.Helper()
	n, err := l.State.Node(role)
	require.NoError(t, err)
	require.NoError(t, process.InNamespace(netns.NamespacePath(n.Namespace), f))
}

// exchange sends datagrams from the client's radio to the server's and back.
type exchange struct {
	t              *testing.T
	client, server net.PacketConn
	seen           net.Addr // of the client, at the server
}

func newExchange(t *testing.T, l *netns.Lab) *exchange {
	t.Helper()
	x := &exchange{t: t}
	open := func(role radio.Role, address string, c *net.PacketConn) {
		on(t, l, role, func() (err error) {
			*c, err = net.ListenPacket("udp4", address)
			return err
		})
		t.Cleanup(func() { (*c).Close() })
	}
	open(radio.RoleServer, ":7777", &x.server)
	open(radio.RoleClient, radio.Addresses[radio.RoleClient]+":0", &x.client)
	return x
}

// passes reports how far a datagram came: "" nowhere, "there" to the server, or "back".
func (x *exchange) passes(bytes int) (far string) {
	receive := func(c net.PacketConn) (net.Addr, bool) {
		require.NoError(x.t, c.SetReadDeadline(time.Now().Add(400*time.Millisecond)))
		_, from, err := c.ReadFrom(make([]byte, 9000))
		return from, err == nil
	}
	b := make([]byte, bytes)
	if _, err := x.client.WriteTo(b, &net.UDPAddr{IP: net.ParseIP(radio.Addresses[radio.RoleServer]), Port: 7777}); err != nil {
		return ""
	}
	from, ok := receive(x.server)
	if !ok {
		return ""
	}
	x.seen = from
	if _, err := x.server.WriteTo(b, from); err != nil {
		return "there"
	}
	if _, ok = receive(x.client); !ok {
		return "there"
	}
	return "back"
}

func (x *exchange) until(far string, bytes int, what string) {
	x.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); x.passes(bytes) != far; {
		require.True(x.t, time.Now().Before(deadline), what)
	}
}

// A filter drops what it names, in the direction that it names, and nothing else.
func TestFilter(t *testing.T) {
	l := rig(t)
	x := newExchange(t, l)
	x.until("back", 100, "packets pass")
	for _, c := range []struct {
		block field.Block
		role  radio.Role
		small string
		large string // more than a packet: in fragments
	}{
		{"udp", radio.RoleServer, "", ""},
		{"udp-in", radio.RoleServer, "", ""},
		{"udp-out", radio.RoleServer, "there", "there"},
		{"udp-in", radio.RoleClient, "there", "there"},
		{"udp-out", radio.RoleClient, "", ""},
		{"fragments", radio.RoleServer, "back", ""},
		{"fragments", radio.RoleClient, "back", "there"},
		{"tcp", radio.RoleServer, "back", "back"},
		{"sctp", radio.RoleServer, "back", "back"},
		{"icmp", radio.RoleClient, "back", "back"},
	} {
		end, err := field.Filter(l, c.role, c.block)
		require.NoError(t, err, c.block)
		x.until(c.small, 100, fmt.Sprintf("%s at the %s: small ones come %q", c.block, c.role, c.small))
		x.until(c.large, 4000, fmt.Sprintf("%s at the %s: large ones come %q", c.block, c.role, c.large))
		require.NoError(t, end(), c.block)
		x.until("back", 4000, "packets pass again")
	}
	_, err := field.Filter(l, radio.RoleServer, "tpc")
	require.ErrorContains(t, err, `filter "tpc", expected one of [tcp tcp-in`)
}

// Behind a NAT the server sees another address, and answers reach the client.
func TestTranslate(t *testing.T) {
	l := rig(t)
	x := newExchange(t, l)
	x.until("back", 100, "packets pass")
	require.Equal(t, radio.Addresses[radio.RoleClient], x.seen.(*net.UDPAddr).IP.String())
	end, err := field.Translate(l, radio.RoleClient)
	require.NoError(t, err)
	y := &exchange{t: t, server: x.server}
	on(t, l, radio.RoleClient, func() (err error) { // a new flow: those that were there keep their addresses
		y.client, err = net.ListenPacket("udp4", radio.Addresses[radio.RoleClient]+":0")
		return err
	})
	defer y.client.Close()
	y.until("back", 100, "packets pass behind the NAT")
	require.Equal(t, "10.77.0.88", y.seen.(*net.UDPAddr).IP.String())
	require.NoError(t, end())
}

// What a process listens at is found, and a port that it gives back is taken.
func TestPorts(t *testing.T) {
	l := rig(t)
	var tcp net.Listener
	var udp net.PacketConn
	on(t, l, radio.RoleServer, func() (err error) {
		if tcp, err = net.Listen("tcp4", ":5001"); err == nil {
			udp, err = net.ListenPacket("udp4", ":5002")
		}
		return err
	})
	defer udp.Close()
	// This process is not in the namespace, and the kernel's tables of a process are those
	// of its namespace; so its own ports are looked for.
	own, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer own.Close()
	self, err := process.Identify(os.Getpid())
	require.NoError(t, err)
	ports, err := field.Listening(self)
	require.NoError(t, err)
	require.Equal(t, []field.Port{{Network: "tcp", Number: own.Addr().(*net.TCPAddr).Port}}, ports)

	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	for _, p := range []field.Port{{Network: "tcp", Number: 5001}, {Network: "udp", Number: 5002}} {
		_, err = field.Take(short, l, radio.RoleServer, p)
		require.ErrorContains(t, err, "address already in use", p)
	}
	require.NoError(t, tcp.Close())
	end, err := field.Take(t.Context(), l, radio.RoleServer, field.Port{Network: "tcp", Number: 5001})
	require.NoError(t, err)
	// A connection is accepted, and nothing comes.
	on(t, l, radio.RoleClient, func() error {
		c, err := net.DialTimeout("tcp4", net.JoinHostPort(radio.Addresses[radio.RoleServer], "5001"), 10*time.Second)
		if err != nil {
			return err
		}
		defer c.Close()
		require.NoError(t, c.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
		_, err = io.ReadAll(c)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		return nil
	})
	require.NoError(t, end())
}
