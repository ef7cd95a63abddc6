package signing_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/orchestrator/campaign/nodes"
	"linktrial/orchestrator/catalog"
	"linktrial/orchestrator/signing"
	"linktrial/orchestrator/store/dbsqlc"
	"linktrial/orchestrator/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// A request can be confirmed until its time is over, by one of two who do so at once.
func TestRequestExpires(t *testing.T) {
	ctx := t.Context()
	store := storetest.Open(t)
	for _, name := range []string{"anna", "otto", "olga"} {
		_, err := store.InsertUser(ctx, dbsqlc.InsertUserParams{Name: name, Role: "admin", Password: "$argon2id$", CreatedAt: time.Now()})
		require.NoError(t, err)
	}
	cat, err := catalog.Load(catalog.Config{})
	require.NoError(t, err)
	keys, err := signing.Ephemeral()
	require.NoError(t, err)
	now := time.Date(2026, 5, 1, 8, 0, 0, 123_456_789, time.UTC)
	trust := signing.New(signing.Config{Keys: keys, Store: store, Catalog: cat, Nodes: func() []nodes.Node { return nil }, SecondApproval: time.Hour, Now: func() time.Time { return now }})

	late, err := trust.RequestRotation(ctx, "anna")
	require.NoError(t, err)
	now = now.Add(time.Hour)
	_, err = trust.Confirm(ctx, late.ID, late.Hash, "otto")
	require.ErrorIs(t, err, signing.ErrNotNow)
	require.ErrorContains(t, err, "expired at 2026-05-01 09:00:00 UTC: anna can request it again")
	all, err := trust.Changes(ctx)
	require.NoError(t, err)
	require.Equal(t, signing.Expired, all[0].State)

	soon, err := trust.RequestRotation(ctx, "anna")
	require.NoError(t, err, "what has expired stands in nobody's way")
	now = now.Add(time.Hour - time.Second)
	_, err = trust.Confirm(ctx, soon.ID, soon.Hash, "")
	require.ErrorIs(t, err, signing.ErrNotAllowed)
	var wg sync.WaitGroup
	var confirmed atomic.Int32
	for _, by := range []string{"otto", "olga", "otto", "olga"} {
		wg.Go(func() {
			if _, err := trust.Confirm(context.WithoutCancel(ctx), soon.ID, soon.Hash, by); err == nil {
				confirmed.Add(1)
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 1, confirmed.Load())
	require.Len(t, trust.Keys(), 2)

	// A key that was rotated meanwhile is not rotated again.
	stale, err := trust.RequestRotation(ctx, "anna")
	require.NoError(t, err)
	require.NoError(t, keys.Rotate())
	_, err = trust.Confirm(ctx, stale.ID, stale.Hash, "otto")
	require.ErrorContains(t, err, "does not sign any more")
	require.Len(t, trust.Keys(), 3)
}
