package netns

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/internal/process"
	"linktrial/internal/radio"
)

// controlPair is a socket on a node's control link, and one at its other end.
type controlPair struct {
	t             *testing.T
	node, central net.PacketConn
	number        uint32
}

func newControlPair(t *testing.T, l *Lab, role radio.Role, port int) *controlPair {
	p := &controlPair{t: t}
	open := func(namespace, address string, c *net.PacketConn) {
		require.NoError(t, process.InNamespace(NamespacePath(namespace), func() error {
			var err error
			*c, err = net.ListenPacket("udp4", net.JoinHostPort(address, strconv.Itoa(port)))
			return err
		}))
		t.Cleanup(func() { (*c).Close() })
	}
	open(nodeNamespace(l.State.Name, role), controlAddresses[role], &p.node)
	open(l.State.Control, controlGateway, &p.central)
	return p
}

// passes sends a datagram from one end to the other, and returns how long it took;
// false: it did not come within the limit.
func (p *controlPair) passes(from, to net.PacketConn, limit time.Duration) (time.Duration, bool) {
	p.number++
	began := time.Now()
	_, err := from.WriteTo(binary.BigEndian.AppendUint32(make([]byte, 996), p.number), to.LocalAddr())
	require.NoError(p.t, err)
	require.NoError(p.t, to.SetReadDeadline(began.Add(limit)))
	for b := make([]byte, 2000); ; {
		n, _, err := to.ReadFrom(b)
		if err != nil {
			return 0, false
		}
		if n == 1000 && binary.BigEndian.Uint32(b[996:]) == p.number {
			return time.Since(began), true
		}
	}
}

// An impaired control link delays or loses packets, in the direction in which it is to,
// and is as before when it is restored; the other nodes' links are never touched.
func TestImpairControlLink(t *testing.T) {
	cfg := testConfig(t, labName()+"i", "127.0.0.1:9")
	l, err := Up(t.Context(), cfg)
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Down(context.Background())) }()
	hit, other := newControlPair(t, l, radio.RoleServer, 7777), newControlPair(t, l, radio.RoleClient, 7779)
	const patience = 20 * time.Second // on a busy machine
	both := func(p *controlPair, least time.Duration) {
		t.Helper()
		for _, way := range [][2]net.PacketConn{{p.node, p.central}, {p.central, p.node}} {
			took, ok := p.passes(way[0], way[1], patience)
			require.True(t, ok)
			require.GreaterOrEqual(t, took, least)
		}
	}
	both(hit, 0)

	restore, err := l.ImpairControlLink(radio.RoleServer, Impairment{Delay: 300 * time.Millisecond})
	require.NoError(t, err)
	both(hit, 300*time.Millisecond)
	require.NoError(t, restore())
	both(hit, 0)

	restore, err = l.ImpairControlLink(radio.RoleServer, Impairment{Silent: true})
	require.NoError(t, err)
	_, ok := hit.passes(hit.node, hit.central, 300*time.Millisecond)
	require.False(t, ok)
	_, ok = hit.passes(hit.central, hit.node, patience)
	require.True(t, ok)
	both(other, 0)
	require.NoError(t, restore())
	both(hit, 0)

	restore, err = l.ImpairControlLink(radio.RoleServer, Impairment{Loss: 0.5, Seed: 1})
	require.NoError(t, err)
	came := 0
	for range 60 {
		if _, ok := hit.passes(hit.node, hit.central, 50*time.Millisecond); ok {
			came++
		}
	}
	require.InDelta(t, 30, came, 20)
	require.NoError(t, restore())
	both(hit, 0)

	_, err = l.ImpairControlLink("boat", Impairment{})
	require.EqualError(t, err, "the lab has no node boat")
}

// A transfer over TCP, whose segments the kernel hands over many at a time, comes
// through a slow link whole.
func TestImpairedControlLinkCarriesTCP(t *testing.T) {
	cfg := testConfig(t, labName()+"j", "127.0.0.1:9")
	l, err := Up(t.Context(), cfg)
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Down(context.Background())) }()
	restore, err := l.ImpairControlLink(radio.RoleClient, Impairment{Delay: 20 * time.Millisecond})
	require.NoError(t, err)
	var listener net.Listener
	require.NoError(t, process.InNamespace(NamespacePath(l.State.Control), func() (err error) {
		listener, err = net.Listen("tcp4", controlGateway+":7778")
		return err
	}))
	defer listener.Close()
	const size = 3 << 20
	echoed := make(chan error, 1)
	go func() {
		c, err := listener.Accept()
		if err == nil {
			_, err = io.Copy(c, io.LimitReader(c, size))
			c.Close()
		}
		echoed <- err
	}()
	var c net.Conn
	require.NoError(t, process.InNamespace(NamespacePath(nodeNamespace(cfg.Name, radio.RoleClient)), func() (err error) {
		c, err = net.DialTimeout("tcp4", controlGateway+":7778", 20*time.Second)
		return err
	}))
	defer c.Close()
	require.NoError(t, c.SetDeadline(time.Now().Add(time.Minute)))
	go c.Write(make([]byte, size))
	n, err := io.Copy(io.Discard, c)
	require.NoError(t, err)
	require.EqualValues(t, size, n)
	require.NoError(t, <-echoed)
	require.NoError(t, restore())
}
