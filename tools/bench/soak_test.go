package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The plan of a soak lasts longer than the soak, and is one that can be started.
func TestSoakRuns(t *testing.T) {
	for _, d := range []time.Duration{time.Second, 10 * time.Minute, 2 * time.Hour, 5 * time.Hour} {
		runs, err := soakRuns(d)
		require.NoError(t, err)
		require.Greater(t, time.Duration(runs)*soakRunLeast, d)
		require.LessOrEqual(t, runs, soakRunsMost)
	}
	_, err := soakRuns(6 * time.Hour)
	require.ErrorContains(t, err, "--soak: 6h0m0s, expected at most 5h33m0s")
}
