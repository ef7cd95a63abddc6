package nodes

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A registration that would fill the table of nodes is refused.
func TestDriversOfARegistration(t *testing.T) {
	r := Registration{Name: "client", Role: "client", Incarnation: "1", Emulated: true, Drivers: make([]Driver, maxDrivers)}
	require.NoError(t, r.check())
	r.Drivers = append(r.Drivers, Driver{})
	require.ErrorIs(t, r.check(), ErrBadNode)
	require.ErrorContains(t, r.check(), "201 drivers, at most 200")
}
