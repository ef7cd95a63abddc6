package tun

import (
	"context"
	"net"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"linktrial/internal/radio"
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
