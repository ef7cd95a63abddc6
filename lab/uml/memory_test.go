package uml

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMemoryFor(t *testing.T) {
	for flows, want := range map[int]int64{0: 512 << 20, 24: 512 << 20, 25: 528 << 20, 50: 928 << 20, MostFlows: 4 << 30} {
		got, err := MemoryFor(flows)
		require.NoError(t, err)
		require.Equal(t, want, got, "%d flows", flows)
	}
	_, err := MemoryFor(MostFlows + 1)
	require.ErrorContains(t, err, "249 flows and probes at once; in virtual time there is room for the drivers of 248")
}
