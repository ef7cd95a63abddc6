package tun

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol/client"
)

// Who listens at the radio's interface still does when the radios have been made
// anew, as after an emulator's or another node's crash.
func TestListenerOutlastsTheRadio(t *testing.T) {
	needRoot(t)
	n := pair()
	cfg := Config{Network: n}
	at := map[radio.Role]string{}
	for _, node := range n.Nodes {
		at[node.Role] = namespace(t)
		cfg.Nodes = append(cfg.Nodes, NodeConfig{Role: node.Role, Address: node.Address, NetNS: at[node.Role]})
	}
	bound := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		if cerr := c.Control(func(fd uintptr) { err = unix.BindToDevice(int(fd), "radio0") }); cerr != nil {
			return cerr
		}
		return err
	}}
	var l net.Listener
	for i := range 2 {
		e, err := Start(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if l == nil {
			in(t, at[radio.RoleServer], func() (err error) {
				l, err = bound.Listen(context.Background(), "tcp", radio.Addresses[radio.RoleServer]+":7003")
				return err
			})
			defer l.Close()
		}
		in(t, at[radio.RoleClient], func() error {
			c, err := net.DialTimeout("tcp", l.Addr().String(), 20*time.Second)
			if err != nil {
				t.Errorf("with radios made %d times: %v", i+1, err)
				return nil
			}
			return c.Close()
		})
		if err := e.Stop(); err != nil {
			t.Fatal(err)
		}
	}
}

// What happens to an interface does not end with the emulator: the next one leaves the
// interface down, and with the address and MTU that somebody has given it, until a
// network is configured that has another MTU.
func TestChangesOutlastTheEmulator(t *testing.T) {
	needRoot(t)
	n := pair()
	cfg := Config{Network: n, Keep: true, ControlSocket: filepath.Join(t.TempDir(), "control")}
	at := map[radio.Role]string{}
	for _, node := range n.Nodes {
		at[node.Role] = namespace(t)
		cfg.Nodes = append(cfg.Nodes, NodeConfig{Role: node.Role, Address: node.Address, NetNS: at[node.Role]})
	}
	e, err := Start(cfg)
	require.NoError(t, err)
	other, err := netlink.ParseAddr("10.99.0.77/24")
	require.NoError(t, err)
	link := func() (l netlink.Link) {
		in(t, at[radio.RoleServer], func() (err error) {
			l, err = netlink.LinkByName("radio0")
			return err
		})
		return l
	}
	addresses := func() (out []string) {
		in(t, at[radio.RoleServer], func() error {
			l, err := netlink.LinkByName("radio0")
			if err != nil {
				return err
			}
			all, err := netlink.AddrList(l, netlink.FAMILY_V4)
			for _, a := range all {
				out = append(out, a.IP.String())
			}
			return err
		})
		return out
	}
	require.Equal(t, n.MTUBytes, link().Attrs().MTU)
	require.NotZero(t, link().Attrs().Flags&net.FlagUp)
	require.Len(t, addresses(), 1)
	in(t, at[radio.RoleServer], func() error {
		l, err := netlink.LinkByName("radio0")
		if err != nil {
			return err
		}
		all, err := netlink.AddrList(l, netlink.FAMILY_V4)
		if err != nil {
			return err
		}
		return errors.Join(netlink.AddrDel(l, &all[0]), netlink.AddrAdd(l, other), netlink.LinkSetMTU(l, 576), netlink.LinkSetDown(l))
	})
	for range 2 {
		require.NoError(t, e.Stop())
		e, err = Start(cfg)
		require.NoError(t, err)
		require.Equal(t, []string{"10.99.0.77"}, addresses())
		require.Zero(t, link().Attrs().Flags&net.FlagUp)
		require.Equal(t, 576, link().Attrs().MTU)
	}
	c, err := client.Dial(cfg.ControlSocket)
	require.NoError(t, err)
	require.NoError(t, c.Configure(timeout(t), n))
	require.Equal(t, 576, link().Attrs().MTU)
	n.MTUBytes -= 100
	require.NoError(t, c.Configure(timeout(t), n))
	require.Equal(t, n.MTUBytes, link().Attrs().MTU)
	require.NoError(t, c.Close())
	require.NoError(t, e.Stop())
}
