package rpc

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor/runsheet"
	"linktrial/orchestrator/ingest"
	"linktrial/orchestrator/rpc/rpcdb"
	"linktrial/orchestrator/store"
)

var errCounted = errors.New("counted")

// queryCounter counts queries and answers none.
type queryCounter struct {
	store.DB
	args [][]any
}

func (c *queryCounter) Query(_ context.Context, _ string, args ...any) (pgx.Rows, error) {
	c.args = append(c.args, args)
	return nil, errCounted
}

// Who opens a run with thousands of attempts costs one query for their flows, not
// one for each.
func TestFlowsOfManyAttempts(t *testing.T) {
	var attempts []rpcdb.AttemptsAfterRow
	for trial := range int32(1000) {
		for attempt := range int32(2) {
			attempts = append(attempts, rpcdb.AttemptsAfterRow{Attempt: rpcdb.Attempt{Trial: 999 - trial, Attempt: attempt + 1}})
		}
	}
	c := &queryCounter{}
	_, err := flowsOf(t.Context(), store.NewConn(c), "r-1", attempts)
	require.ErrorIs(t, err, errCounted)
	require.Len(t, c.args, 1)
	require.Len(t, c.args[0][1], 1000, "each trial once")

	c = &queryCounter{}
	flows, err := flowsOf(t.Context(), store.NewConn(c), "r-1", nil)
	require.NoError(t, err)
	require.Empty(t, flows)
	require.Empty(t, c.args, "nothing has ended since, which is so most of the time")
}

// Who watches is told what a run waits for and since when, once, and that it goes on.
func TestWaitIsSent(t *testing.T) {
	var told []string
	w := &watcher{send: func(m *linktrialv1.WatchResponse) error {
		told = append(told, m.GetNote().Text)
		return nil
	}}
	x := &watched{}
	at := time.Date(2026, 11, 26, 8, 42, 1, 0, time.UTC)
	for _, wait := range []*ingest.Wait{
		nil, {Trial: 4, Fault: "the agent of the server does not answer", Since: at}, {Trial: 4, Fault: "the agent of the server does not answer", Since: at.Add(time.Second)},
		{Trial: 4, Fault: "no packet passes", Since: at.Add(time.Minute)}, {Trial: 4}, {Trial: 4},
	} {
		require.NoError(t, w.sendWait("r-1", x, wait))
	}
	require.Equal(t, []string{
		"run r-1 waits with trial 4 since 08:42:01 UTC: the agent of the server does not answer",
		"run r-1 waits with trial 4 since 08:43:01 UTC: no packet passes",
		"run r-1 goes on with trial 4",
	}, told)
}

// Who watches is told why a node's statement was refused, once, and again where another is.
func TestRefusedStatementIsSent(t *testing.T) {
	var told []string
	w := &watcher{send: func(m *linktrialv1.WatchResponse) error {
		told = append(told, m.GetNote().Kind.String()+" "+m.GetNote().Text)
		return nil
	}}
	x := &watched{refused: map[string]string{}}
	for _, why := range []string{"it is of another run", "it is of another run", "it has 3 records"} {
		require.NoError(t, w.sendRefused("r-1", x, []rpcdb.RefusedStatementsRow{{Node: "n-1", Unsigned: why}}))
	}
	require.Equal(t, []string{"KIND_MISBEHAVIOUR n-1: it is of another run", "KIND_MISBEHAVIOUR n-1: it has 3 records"}, told)
}

// Live samples of a probe are of the probe's treatment.
func TestCarriedBy(t *testing.T) {
	s := &runsheet.Sheet{Trials: []runsheet.Trial{
		{Flows: []runsheet.Flow{{Treatment: "tcp"}}, Probes: []runsheet.Flow{{Treatment: "voice"}}},
		{Probes: []runsheet.Flow{{Treatment: "alone"}}},
	}}
	for place, want := range map[[2]int]string{{0, 0}: "tcp", {0, 1}: "voice", {0, 2}: "", {1, 0}: "alone"} {
		if got := carriedBy(s, place[0], place[1]); got != want {
			t.Errorf("flow %d of trial %d is carried by %q, expected %q", place[1], place[0], got, want)
		}
	}
}
