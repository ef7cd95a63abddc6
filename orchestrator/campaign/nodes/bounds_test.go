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

// Only a node on which no radio is set up may have no role.
func TestRoleOfARegistration(t *testing.T) {
	for _, c := range []struct {
		r       Registration
		without bool
		want    string
	}{
		{Registration{}, true, ""},
		{Registration{Role: "client"}, true, ""},
		{Registration{Role: "captain"}, true, `role "captain", expected client`},
		{Registration{Role: "client", RadioAddress: "10.0.0.1"}, false, ""},
		{Registration{RadioAddress: "10.0.0.1"}, false, `role "", expected client`},
		{Registration{Radio: "mpu5"}, false, `role "", expected client`},
		{Registration{LabProblem: "no proof"}, false, `role "", expected client`},
		{Registration{Emulated: true}, false, `role "", expected client`},
	} {
		c.r.Name, c.r.Incarnation = "alpha", "1"
		require.Equal(t, c.without, c.r.WithoutRadio(), "%+v", c.r)
		err := c.r.check()
		if c.want == "" {
			require.NoError(t, err, "%+v", c.r)
			continue
		}
		require.ErrorIs(t, err, ErrBadNode)
		require.ErrorContains(t, err, c.want)
	}
}
