package netns

import (
	"context"
	"encoding/binary"
	"net"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"linktrial/internal/process"
	"linktrial/internal/radio"
)

// Faults of a node's radio interface and of its power begin, keep packets from passing,
// and leave nothing behind when they have ended.
func TestFaults(t *testing.T) {
	cfg := testConfig(t, labName()+"f", "127.0.0.1:9")
	l, err := Up(t.Context(), cfg)
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Down(context.Background())) }()
	var listener, sender net.PacketConn
	open := func(role radio.Role, c *net.PacketConn) {
		require.NoError(t, process.InNamespace(NamespacePath(nodeNamespace(cfg.Name, role)), func() error {
			var err error
			*c, err = net.ListenPacket("udp4", "0.0.0.0:7777") // of any address: one is going to change
			return err
		}))
		t.Cleanup(func() { (*c).Close() })
	}
	open(radio.RoleServer, &listener)
	open(radio.RoleClient, &sender)
	raw, err := sender.(*net.UDPConn).SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE) // never in fragments
	}))
	require.NoError(t, err)
	number := 0
	passes := func(bytes int) bool {
		number++
		_, err := sender.WriteTo(binary.BigEndian.AppendUint64(make([]byte, bytes-8), uint64(number)), &net.UDPAddr{IP: net.ParseIP(radio.Addresses[radio.RoleServer]), Port: 7777})
		if err != nil {
			return false
		}
		require.NoError(t, listener.SetReadDeadline(time.Now().Add(500*time.Millisecond)))
		for b := make([]byte, 2000); ; {
			n, _, err := listener.ReadFrom(b)
			if err != nil {
				return false
			}
			if n == bytes && binary.BigEndian.Uint64(b[n-8:]) == uint64(number) {
				return true
			}
		}
	}
	until := func(what string, ok func() bool) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(20 * time.Millisecond) {
			require.True(t, time.Now().Before(deadline), what)
		}
	}
	whole := func() bool { return passes(1400) }
	require.True(t, whole())

	for _, role := range []radio.Role{radio.RoleClient, radio.RoleServer} {
		up, err := l.RadioDown(role)
		require.NoError(t, err)
		require.False(t, passes(64))
		require.NoError(t, up())
		until("the interface is up again", whole)
	}
	// A node whose power is back while its interface is down still has it down, and the
	// other way round.
	for _, powerFirst := range []bool{true, false} {
		up, err := l.RadioDown(radio.RoleClient)
		require.NoError(t, err)
		restore, err := l.PowerCut(radio.RoleClient)
		require.NoError(t, err)
		if powerFirst {
			up, restore = restore, up
		}
		require.NoError(t, up())
		require.False(t, passes(64))
		require.NoError(t, restore())
		until("the interface is up again", whole)
	}
	before, err := SetRadioMTU(&l.State, radio.RoleClient, 300)
	require.NoError(t, err)
	require.Equal(t, cfg.Network.MTUBytes, before)
	require.True(t, passes(64))
	require.False(t, whole())
	before, err = SetRadioMTU(&l.State, radio.RoleClient, before)
	require.NoError(t, err)
	require.Equal(t, 300, before)
	until("packets of the old size pass again", whole)

	require.NoError(t, SetRadioAddress(&l.State, radio.RoleServer, false))
	require.False(t, passes(64))
	require.NoError(t, SetRadioAddress(&l.State, radio.RoleServer, true))
	until("the address is the node's own again", whole)

	require.ErrorContains(t, SetRadio(&l.State, "boat", false), "the lab has no node boat")
}

func TestPowerCut(t *testing.T) {
	cfg := testConfig(t, labName()+"p", "127.0.0.1:9")
	l, err := Up(t.Context(), cfg)
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Down(context.Background())) }()
	started := func(role radio.Role) (*exec.Cmd, process.Identity) {
		cmd := exec.Command("sleep", "300")
		require.NoError(t, l.Start(role, cmd))
		id, err := process.Identify(cmd.Process.Pid)
		require.NoError(t, err)
		t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
		return cmd, id
	}
	hit, hitID := started(radio.RoleServer)
	_, otherID := started(radio.RoleClient)
	go hit.Wait()

	require.NoError(t, l.AwaitPower(t.Context(), radio.RoleServer))
	restore, err := l.PowerCut(radio.RoleServer)
	require.NoError(t, err)
	require.False(t, hitID.Alive())
	require.True(t, otherID.Alive())
	_, err = l.PowerCut(radio.RoleServer)
	require.EqualError(t, err, "node server has no power already")
	brief, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, l.AwaitPower(brief, radio.RoleServer), context.DeadlineExceeded)
	require.NoError(t, l.AwaitPower(t.Context(), radio.RoleClient))

	powered := make(chan error, 1)
	go func() { powered <- l.AwaitPower(context.Background(), radio.RoleServer) }()
	require.NoError(t, restore())
	require.NoError(t, <-powered)
	require.NotZero(t, l.EmulatorPID())
}
