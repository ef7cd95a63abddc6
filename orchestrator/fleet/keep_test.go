package fleet_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/orchestrator/fleet"
	"linktrial/orchestrator/fleet/fleetdb"
)

// A preflight is deleted when each of its nodes has enough newer ones of the
// same topology; the newest of a single node stays, with its checks.
func TestOldPreflightsAreDeleted(t *testing.T) {
	r := newRig(t, fleet.Config{Self: 10 * time.Second, Pair: 10 * time.Second})
	began := time.Now().UTC()
	insert := func(id, topology string, ended bool, nodes ...string) {
		t.Helper()
		if nodes == nil {
			nodes = []string{}
		}
		require.NoError(t, fleetdb.New(r.store).InsertPreflight(t.Context(), fleetdb.InsertPreflightParams{ID: id, Topology: topology, Nodes: nodes, StartedAt: began}))
		_, err := fleetdb.New(r.store).InsertPreflightChecks(t.Context(), []fleetdb.InsertPreflightChecksParams{{PreflightID: id, Kind: "clock"}})
		require.NoError(t, err)
		if ended {
			require.NoError(t, fleetdb.New(r.store).EndPreflight(t.Context(), fleetdb.EndPreflightParams{ID: id, EndedAt: &began}))
		}
	}
	insert("elsewhere", "k-lot", true, "client")
	insert("with-relay", "", true, "client", "relay")
	insert("open", "", false, "client")
	insert("nobody", "vip-lot", true)
	for i := range fleet.Kept + 3 {
		insert(fmt.Sprintf("many-%02d", i), "", true, "client")
	}
	for i := range fleet.Kept {
		insert(fmt.Sprintf("nobody-%02d", i), "vip-lot", true)
	}
	r.agent("client", false)
	id, err := r.StartPreflight(t.Context(), fleet.Request{})
	require.NoError(t, err)
	r.ended(id)
	for _, stays := range []string{id, "elsewhere", "with-relay", "open", "many-22", "many-04", "nobody-00"} {
		_, err := fleetdb.New(r.store).Preflight(t.Context(), stays)
		require.NoError(t, err, stays)
		checks, err := fleetdb.New(r.store).PreflightChecks(t.Context(), stays)
		require.NoError(t, err)
		require.NotEmpty(t, checks, stays)
	}
	for _, gone := range []string{"many-00", "many-03", "nobody"} {
		_, err := r.Preflight(t.Context(), gone)
		require.ErrorIs(t, err, fleet.ErrNotFound, gone)
		checks, err := fleetdb.New(r.store).PreflightChecks(t.Context(), gone)
		require.NoError(t, err)
		require.Empty(t, checks, gone)
	}
}
