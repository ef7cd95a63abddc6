package inside

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/protocols/protocoltest"
)

// The tests inside an emulated machine run seldom; that the suite has their checks is
// known at once.
func TestChecksExist(t *testing.T) {
	require.Subset(t, protocoltest.Names(), slices.Concat(carries, carriesFew))
}
