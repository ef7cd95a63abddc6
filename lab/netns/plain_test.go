package netns

import (
	"context"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"linktrial/internal/process"
	"linktrial/internal/radio"
)

// Faults of plain radios begin, have the effect that they are for, and leave nothing
// behind when they have ended.
func TestPlainRadios(t *testing.T) {
	cfg := testConfig(t, labName()+"p", "127.0.0.1:9")
	cfg.Plain = &Plain{BitsPerSecond: 20e6}
	l, err := Up(t.Context(), cfg)
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Down(context.Background())) }()
	require.True(t, l.Plain())
	require.Nil(t, l.Ended())
	again, err := Load(cfg.StateDir, cfg.Name)
	require.NoError(t, err)
	require.Equal(t, l.State.Air, again.Air)

	client, server := radio.RoleClient, radio.RoleServer
	at := net.JoinHostPort(radio.Addresses[server], "7777")
	var accepted net.Listener
	require.NoError(t, process.InNamespace(NamespacePath(nodeNamespace(cfg.Name, server)), func() error {
		var err error
		accepted, err = net.Listen("tcp4", ":7777")
		return err
	}))
	defer accepted.Close()
	go echo(accepted)
	// passes sends bytes there and back, from the address of the client's radio.
	passes := func(bytes int) bool {
		ok := false
		require.NoError(t, process.InNamespace(NamespacePath(nodeNamespace(cfg.Name, client)), func() error {
			d := net.Dialer{Timeout: 1500 * time.Millisecond, LocalAddr: &net.TCPAddr{IP: net.ParseIP(radio.Addresses[client])}}
			c, err := d.Dial("tcp4", at)
			if err != nil {
				return nil
			}
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(1500 * time.Millisecond))
			sent, got := make([]byte, bytes), make([]byte, bytes)
			if _, err := c.Write(sent); err != nil {
				return nil
			}
			n := 0
			for n < bytes && err == nil {
				var k int
				k, err = c.Read(got[n:])
				n += k
			}
			ok = n == bytes
			return nil
		}))
		return ok
	}
	until := func(what string, ok func() bool) {
		t.Helper()
		for deadline := time.Now().Add(30 * time.Second); !ok(); time.Sleep(20 * time.Millisecond) {
			require.True(t, time.Now().Before(deadline), what)
		}
	}
	index := func() (i int) {
		require.NoError(t, onRadio(&l.State, server, func(_ *netlink.Handle, link netlink.Link) error {
			i = link.Attrs().Index
			return nil
		}))
		return i
	}
	until("packets pass", func() bool { return passes(4000) })
	first := index()

	gone := func(same bool) func() (func() error, error) {
		return func() (func() error, error) {
			restore, err := l.RemoveRadio(server)
			return func() error { return restore(same) }, err
		}
	}
	for _, c := range []struct {
		name  string
		begin func() (func() error, error)
		small bool // small packets pass meanwhile
		index int  // afterwards: 0: as at first, 1: another one
	}{
		{"gone", gone(true), false, 0},
		{"no carrier", func() (func() error, error) { return l.CutAir(server) }, false, 0},
		{"narrow", func() (func() error, error) { return l.NarrowAir(server, 600) }, true, 0},
		{"no address", func() (func() error, error) { return l.DropAddress(server) }, false, 0},
		{"second host", func() (func() error, error) { return l.TakeAddress(server) }, false, 0},
		{"new index", gone(false), false, 1},
		{"new index again", gone(false), false, 1},
	} {
		end, err := c.begin()
		require.NoError(t, err, c.name)
		until(c.name+": packets do not pass", func() bool { return !passes(4000) })
		if c.small {
			until(c.name+": small packets pass", func() bool { return passes(100) })
		}
		require.NoError(t, end(), c.name)
		until(c.name+": packets pass again", func() bool { return passes(4000) })
		require.Equal(t, c.index == 1, index() != first, c.name)
	}

	// The kernel does not mind another name; who looks for the interface by its name does.
	end, err := l.RenameRadio(server)
	require.NoError(t, err)
	require.ErrorAs(t, SetRadio(&l.State, server, true), &netlink.LinkNotFoundError{})
	require.NoError(t, end())
	until("packets pass under the old name", func() bool { return passes(4000) })

	// Around the radio packets pass, and the radio's interface counts none of them.
	sent := func() (n uint64) {
		require.NoError(t, onRadio(&l.State, client, func(_ *netlink.Handle, link netlink.Link) error {
			n = link.Attrs().Statistics.TxBytes
			return nil
		}))
		return n
	}
	end, err = l.RouteAround(client)
	require.NoError(t, err)
	before := sent()
	require.True(t, passes(20_000))
	require.Less(t, sent()-before, uint64(20_000))
	require.NoError(t, end())
	require.True(t, passes(20_000))
	require.Greater(t, sent()-before, uint64(20_000))

	// A power cut while the interface is gone: it comes back when both have ended.
	restore, err := l.RemoveRadio(server)
	require.NoError(t, err)
	power, err := l.PowerCut(server)
	require.NoError(t, err)
	require.NoError(t, restore(true))
	require.False(t, passes(100))
	require.NoError(t, power())
	until("packets pass after both", func() bool { return passes(4000) })
}

// echo sends back what connections bring, until the listener is closed.
func echo(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			b := make([]byte, 4096)
			for {
				n, err := c.Read(b)
				if err != nil {
					return
				}
				if _, err := c.Write(b[:n]); err != nil {
					return
				}
			}
		}()
	}
}

// A suspended node's processes stand still, and go on afterwards.
func TestSuspend(t *testing.T) {
	cfg := testConfig(t, labName()+"s", "127.0.0.1:9")
	cfg.Plain = &Plain{BitsPerSecond: 20e6}
	l, err := Up(t.Context(), cfg)
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Down(context.Background())) }()
	cmd := exec.Command("sh", "-c", "sleep 600 & wait")
	require.NoError(t, l.Start(radio.RoleServer, cmd))
	defer func() {
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait() // it was killed
	}()
	states := func() string {
		all, err := processesIn(l.State.Nodes[2].Namespace)
		require.NoError(t, err)
		var out strings.Builder
		for _, id := range all {
			b, err := os.ReadFile("/proc/" + strconv.Itoa(id.PID) + "/stat")
			require.NoError(t, err)
			s := string(b)
			out.WriteString(s[strings.LastIndexByte(s, ')')+2:][:1])
		}
		return out.String()
	}
	await := func(want string) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); states() != want; time.Sleep(5 * time.Millisecond) {
			require.True(t, time.Now().Before(deadline), "states %q, expected %q", states(), want)
		}
	}
	await("SS")
	resume, err := l.Suspend(radio.RoleServer)
	require.NoError(t, err)
	await("TT")
	require.NoError(t, resume())
	await("SS")
}
