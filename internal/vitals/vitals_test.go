package vitals_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/internal/vitals"
)

func TestVitals(t *testing.T) {
	dir, err := os.MkdirTemp("", "v") // a socket's path is short
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	_, err = vitals.Of(dir, os.Getpid())
	require.Error(t, err, "nobody serves yet")

	t.Setenv(vitals.FolderVariable, dir)
	vitals.Serve()
	before, err := vitals.Of(dir, os.Getpid())
	require.NoError(t, err)

	const more, bytes = 20, 32 << 20
	hold := make([]byte, bytes)
	stop := make(chan struct{})
	for range more {
		go func() { <-stop }()
	}
	after, err := vitals.Of(dir, os.Getpid())
	close(stop)
	require.NoError(t, err)
	require.Equal(t, before.Goroutines+more, after.Goroutines)
	require.GreaterOrEqual(t, after.HeapBytes, before.HeapBytes+bytes-1<<20)
	hold[0] = 1
}

func TestUse(t *testing.T) {
	before, err := vitals.UseOf("", os.Getpid())
	require.NoError(t, err)
	require.Greater(t, before.MemoryBytes, int64(1<<20))
	require.Greater(t, before.Threads, 1)
	// What tests before have left open may be closed meanwhile.
	const more = 64
	var open []*os.File
	for range more {
		f, err := os.Open(os.DevNull)
		require.NoError(t, err)
		open = append(open, f)
	}
	after, err := vitals.UseOf("", os.Getpid())
	require.NoError(t, err)
	for _, f := range open {
		require.NoError(t, f.Close())
	}
	require.InDelta(t, before.Files+more, after.Files, more/4)

	sum := before.Add(after)
	require.Equal(t, before.Files+after.Files, sum.Files)
	require.Equal(t, before.MemoryBytes+after.MemoryBytes, sum.MemoryBytes)
	_, err = vitals.UseOf(t.TempDir(), os.Getpid())
	require.Error(t, err, "it does not answer there")
}
