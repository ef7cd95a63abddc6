package protocoltest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"linktrial/protocols/contract"
)

// The suite's drivers have the capabilities of their manifest, as an agent's have: one that
// works because its user is root does not conform.
func TestOnlyNamedCapabilities(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: other users' processes have no capabilities")
	}
	for _, c := range []struct {
		named []string
		uid   uint32
		has   []int
		lacks []int
	}{
		{nil, 0, nil, []int{unix.CAP_DAC_OVERRIDE, unix.CAP_NET_ADMIN, unix.CAP_NET_RAW, unix.CAP_SYS_ADMIN, unix.CAP_SETUID, unix.CAP_KILL}},
		{[]string{"CAP_NET_ADMIN", "CAP_SETUID"}, 0, []int{unix.CAP_NET_ADMIN}, []int{unix.CAP_NET_RAW, unix.CAP_SYS_ADMIN, unix.CAP_SETUID}},
		// Of an image that does not run as root.
		{[]string{"CAP_NET_ADMIN"}, 12345, nil, []int{unix.CAP_NET_ADMIN, unix.CAP_DAC_OVERRIDE}},
	} {
		have := effective(t, c.named, c.uid)
		for _, n := range c.has {
			require.NotZero(t, have&(1<<n), "%v as %d: capability %d", c.named, c.uid, n)
		}
		for _, n := range c.lacks {
			require.Zero(t, have&(1<<n), "%v as %d: capability %d", c.named, c.uid, n)
		}
	}
}

// effective are the capabilities of a driver whose manifest names some, in an image of a
// user, where that is not 0.
func effective(t *testing.T, named []string, uid uint32) uint64 {
	t.Helper()
	target := Target{Dir: "/", Manifest: &contract.Manifest{Name: "shows", Command: []string{"/bin/sh"}, Capabilities: named}}
	if uid != 0 {
		target.Root, target.UID, target.GID = "/", uid, uid
	}
	s := &suite{target: target, o: Options{Patience: contract.LimitPatience}, command: []string{"/bin/sh", "-c", "grep CapEff /proc/self/status >&2"}, ends: &ends{}, net: &network{loopback: "nothing is sent"}}
	defer s.ends.close()
	p, err := s.startReading(contract.RoleQuery, bytes.NewReader(nil))
	require.NoError(t, err)
	require.NoError(t, p.wait(context.Background(), contract.QueryPatience))
	var text string
	_, err = fmt.Sscanf(strings.TrimSpace(string(p.log)), "CapEff: %s", &text)
	require.NoError(t, err, "%s", p.log)
	have, err := strconv.ParseUint(text, 16, 64)
	require.NoError(t, err)
	return have
}
