package faults

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/internal/faultlog"
)

// answers is what second orchestrators say.
type answers map[Share]struct {
	said  string
	ended bool
}

// duplicated runs a campaign in which second orchestrators answer so, beside a first one
// that is this process.
func duplicated(t *testing.T, a answers) (faultlog.Fault, error) {
	t.Helper()
	l := &Lab{Orchestrator: os.Getpid, Answers: func(context.Context) bool { return true },
		SecondOrchestrator: func(_ context.Context, share Share) (string, bool, error) { return a[share].said, a[share].ended, nil }}
	var list bytes.Buffer
	c := &Campaign{Schedule: &Schedule{Faults: []Injection{{Kind: faultlog.DuplicateOrchestrator, Target: faultlog.Orchestrator}}},
		Injector: l, Log: &list, Show: func(faultlog.Fault) {}}
	err := c.Run(t.Context())
	got, rerr := faultlog.Read(&list)
	require.NoError(t, rerr)
	require.Len(t, got, 1)
	return got[0], err
}

// A second orchestrator that is let in, or that is refused in words that do not say who
// has what it wanted, fails the campaign.
func TestSecondOrchestratorMustBeRefused(t *testing.T) {
	folder := fmt.Sprintf("data folder /d is in use by another orchestrator (process %d): stop that one", os.Getpid())
	base := fmt.Sprintf("the database is in use by another program (linktrial orchestrator, process %d on laptop): stop that one", os.Getpid())
	f, err := duplicated(t, answers{SameFolder: {folder, true}, SameDatabase: {base, true}})
	require.NoError(t, err)
	require.Equal(t, "on the same data folder: "+folder+"; on the same database: "+base, f.Detail)
	require.False(t, f.Touches)
	require.False(t, f.To.IsZero())

	f, err = duplicated(t, answers{SameFolder: {folder, true}, SameDatabase: {"orchestrator is ready", false}})
	require.EqualError(t, err, "fault 1 (duplicate-orchestrator orchestrator): a second orchestrator on the same database was not refused within 1m0s: orchestrator is ready")
	require.Contains(t, f.Detail, "on the same database: orchestrator is ready")

	_, err = duplicated(t, answers{SameFolder: {"exit status 1", true}, SameDatabase: {base, true}})
	require.EqualError(t, err, fmt.Sprintf("fault 1 (duplicate-orchestrator orchestrator): a second orchestrator on the same data folder ended without saying that process %d has it: exit status 1", os.Getpid()))
}

// While a second orchestrator is tried, database and first orchestrator are left alone:
// a claim that is lost with its connection refuses nobody.
func TestSecondOrchestratorHoldsTheDatabase(t *testing.T) {
	_, err := Parse("f.yaml", []byte("faults:\n- {at: 1s, kind: stop, target: database, for: 9s}\n- {at: 5s, kind: duplicate-orchestrator}"), threeNodes)
	require.EqualError(t, err, "f.yaml:3:3: faults[1]: begins at 5s, while the fault of line 2, which hits the same, lasts until 10s")
	r := NewRandom(3, time.Second, []Choice{{faultlog.DuplicateOrchestrator, faultlog.Orchestrator}, {faultlog.Stop, faultlog.Database}}, threeNodes)
	var last Injection
	for range 1000 {
		i, ok := r.Next()
		require.True(t, ok)
		require.GreaterOrEqual(t, i.At, last.At+last.For)
		last = i
	}
}
