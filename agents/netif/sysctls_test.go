package netif

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/internal/namespace/namespacetest"
	"linktrial/internal/sysctl"
)

// A setting of the kernel that was changed is put back before the next driver starts, and
// who asks about the time meanwhile is told.
func TestKernelSettingIsPutBack(t *testing.T) {
	t.Parallel()
	if !namespacetest.Alone(t) {
		return
	}
	const path = sysctl.Root + "/net/ipv4/tcp_rmem"
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	plug(t, "radio0", "02:00:00:00:00:01")
	namespacetest.IP(t, "addr add 10.77.0.1/24 dev radio0")
	w := startAll(t, Radio{Device: "radio0", Address: netip.MustParseAddr("10.77.0.1")})
	w.Settled(t.Context())
	awaitFaults(t, w, "")
	began := time.Now()
	require.NoError(t, os.WriteFile(path, []byte("4096 4096 4096"), 0))
	faults, _ := w.State() // as before the next attempt
	require.Empty(t, faults)
	now, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(before), string(now))
	faults, _ = w.Since(began)
	require.Len(t, faults, 1)
	was := strings.Join(strings.Fields(string(before)), " ")
	require.Equal(t, fmt.Sprintf("the kernel's setting net.ipv4.tcp_rmem was changed to \"4096 4096 4096\" and was %q; the agent has put it back", was), faults[0].Text)
	faults, _ = w.Since(time.Now())
	require.Empty(t, faults)
}

// Where the agent may not, as in its service, a run waits until somebody puts it back.
func TestKernelSettingIsToBePutBack(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	path := filepath.Join(root, "net/ipv4/tcp_sack")
	require.NoError(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("1\n"), 0o600)))
	kept, err := sysctl.Keep(root)
	require.NoError(t, err)
	first := watching(&State{There: true, Up: true, Carrier: true, MTU: 1500, Index: 1}, 1500)
	w := &Watches{each: []*Watch{first}, changed: first.changed, settings: &kernelSettings{log: slog.New(slog.DiscardHandler), may: new(Config).mayHave, kept: kept}}
	defer w.settings.close()
	fault := func() string {
		faults, _ := w.State()
		if len(faults) == 0 {
			return ""
		}
		return faults[0].Text
	}
	require.Empty(t, fault())
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, os.Remove(path)) // so that nobody else can write it
	began := time.Now()
	_, err = f.WriteAt([]byte("0\n"), 0)
	require.NoError(t, err)
	want := `the kernel's setting net.ipv4.tcp_sack was changed to "0" and was "1": put it back with "sysctl -w net.ipv4.tcp_sack='1'"`
	require.Equal(t, want, fault())
	require.Equal(t, want, fault())
	_, err = f.WriteAt([]byte("1\n"), 0)
	require.NoError(t, err)
	require.Empty(t, fault())
	faults, _ := w.Since(began)
	require.Len(t, faults, 1)
	require.Equal(t, want, faults[0].Text)
}
