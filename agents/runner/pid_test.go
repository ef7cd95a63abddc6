package runner

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"linktrial/internal/process"
)

// What is no pid file does not keep the agent from starting.
func TestSweepSetsAside(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, unix.Mkfifo(filepath.Join(dir, "1.json"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "2.json"), []byte(strings.Repeat("x", maxPIDRecord+1)), 0o600))
	r := New(Config{PIDDir: dir, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, r.Sweep(t.Context()))
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(dir, "1.json.damaged"), filepath.Join(dir, "2.json.damaged")}, left)
}

// FuzzParsePIDRecord: a process that is ended is never every process, or init.
func FuzzParsePIDRecord(f *testing.F) {
	b, err := json.Marshal(pidRecord{Identity: process.Identity{PID: 4711, StartTicks: 99}, Command: []string{"/opt/tcp", "-x"}})
	require.NoError(f, err)
	f.Add(b)
	f.Add(b[:len(b)/2])
	f.Add([]byte(`{"pid":-1,"start_ticks":1}`))
	f.Add([]byte(`{"pid":0}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := parsePIDRecord(b)
		if err != nil {
			require.Zero(t, l)
			return
		}
		require.Greater(t, l.PID, 1)
		written, err := json.Marshal(l)
		require.NoError(t, err)
		again, err := parsePIDRecord(written)
		require.NoError(t, err)
		require.Equal(t, l.Identity, again.Identity)
	})
}
