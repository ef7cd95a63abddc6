package nodes

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRevisionFollowsFromContent(t *testing.T) {
	a := Assignment{Run: "r-1", SheetHash: "h", DesiredState: DesirePrepare}
	b := a
	b.DesiredState = DesireRun
	require.Equal(t, newAssignments([]Assignment{a}).revision, newAssignments([]Assignment{a}).revision)
	require.NotEqual(t, newAssignments([]Assignment{a}).revision, newAssignments([]Assignment{b}).revision)
	require.NotEqual(t, noAssignments.revision, newAssignments([]Assignment{a}).revision)
	require.Positive(t, noAssignments.revision)
}
