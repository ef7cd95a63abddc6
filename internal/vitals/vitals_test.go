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
