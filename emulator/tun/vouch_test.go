package tun

import (
	"crypto/ed25519"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol"
	"linktrial/internal/radiocontrol/client"
	"linktrial/internal/signature"
)

// The emulator vouches for whom it has a device in: the same namespace, interface, role
// and address. Whoever else knows its control socket gets no signature.
func TestVouch(t *testing.T) {
	needRoot(t)
	n := pair()
	socket := filepath.Join(t.TempDir(), "control")
	key, err := client.NewLabKey(socket)
	require.NoError(t, err)
	cfg := Config{Network: n, ControlSocket: socket, LabKey: key}
	at := map[radio.Role]string{}
	for _, node := range n.Nodes {
		at[node.Role] = namespace(t)
		cfg.Nodes = append(cfg.Nodes, NodeConfig{Role: node.Role, Address: node.Address, NetNS: at[node.Role]})
	}
	e, err := Start(cfg)
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Stop()) }()
	right := radiocontrol.Vouch{Statement: signature.LabStatement{Kind: signature.LabRun, Subject: "r-1", Detail: "hash", Role: "client", Address: n.AddressOf(radio.RoleClient)}}
	in(t, at[radio.RoleClient], func() (err error) {
		if right.Namespace, err = os.Readlink("/proc/thread-self/ns/net"); err != nil {
			return err
		}
		l, err := netlink.LinkByName("radio0")
		if err == nil {
			right.Interface = l.Attrs().Index
		}
		return err
	})
	c, err := client.Dial(socket)
	require.NoError(t, err)
	defer c.Close()
	p, err := c.Vouch(timeout(t), right)
	require.NoError(t, err)
	signed, err := signature.VerifyLab(right.Statement, p)
	require.NoError(t, err)
	public, err := client.LabKey(socket)
	require.NoError(t, err)
	require.Equal(t, public, signed)
	require.Equal(t, signature.PublicOf(key), signed)

	here, err := os.Readlink("/proc/self/ns/net")
	require.NoError(t, err)
	for name, c2 := range map[string]struct {
		change func(*radiocontrol.Vouch)
		want   string
	}{
		"outside of the lab":  {func(v *radiocontrol.Vouch) { v.Namespace = here }, "network namespace"},
		"another interface":   {func(v *radiocontrol.Vouch) { v.Interface++ }, "the agent uses interface"},
		"another node's name": {func(v *radiocontrol.Vouch) { v.Statement.Role = "server" }, "radio address"},
		"another address":     {func(v *radiocontrol.Vouch) { v.Statement.Address = "10.9.9.9" }, "radio address"},
		"a node it lacks":     {func(v *radiocontrol.Vouch) { v.Statement.Role = "relay" }, `no "relay"`},
	} {
		v := right
		c2.change(&v)
		_, err := c.Vouch(timeout(t), v)
		require.ErrorContains(t, err, c2.want, name)
	}
}

// Radios that no lab has started vouch for nobody.
func TestVouchWithoutALab(t *testing.T) {
	r := up(t, pair())
	_, err := r.dial(t).Vouch(timeout(t), radiocontrol.Vouch{Statement: signature.LabStatement{Role: "client"}})
	require.ErrorContains(t, err, "belong to no lab")
	_, err = (&Config{Network: pair(), LabKey: ed25519.PrivateKey{1}}).check()
	require.ErrorContains(t, err, "key of the lab")
}
