package rpc

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"linktrial/orchestrator/store/dbsqlc"
)

var errCounted = errors.New("counted")

// queryCounter counts queries and answers none.
type queryCounter struct {
	dbsqlc.DBTX
	args [][]any
}

func (c *queryCounter) Query(_ context.Context, _ string, args ...any) (pgx.Rows, error) {
	c.args = append(c.args, args)
	return nil, errCounted
}

// Who opens a run with thousands of attempts costs one query for their flows, not
// one for each.
func TestFlowsOfManyAttempts(t *testing.T) {
	var attempts []dbsqlc.AttemptsAfterRow
	for trial := range int32(1000) {
		for attempt := range int32(2) {
			attempts = append(attempts, dbsqlc.AttemptsAfterRow{Attempt: dbsqlc.Attempt{Trial: 999 - trial, Attempt: attempt + 1}})
		}
	}
	c := &queryCounter{}
	_, err := flowsOf(t.Context(), dbsqlc.New(c), "r-1", attempts)
	require.ErrorIs(t, err, errCounted)
	require.Len(t, c.args, 1)
	require.Len(t, c.args[0][1], 1000, "each trial once")

	c = &queryCounter{}
	flows, err := flowsOf(t.Context(), dbsqlc.New(c), "r-1", nil)
	require.NoError(t, err)
	require.Empty(t, flows)
	require.Empty(t, c.args, "nothing has ended since, which is so most of the time")
}
