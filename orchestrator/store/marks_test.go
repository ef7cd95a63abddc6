package store_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/orchestrator/campaign/campaigndb"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/storetest"
)

// A marked attempt is invalid wherever it is read, what the journal says of it
// stays visible, and a mark that is taken back leaves no trace in the values.
func TestMarks(t *testing.T) {
	url := storetest.URL(t)
	s, err := store.Open(t.Context(), url, nil)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	sheet := storetest.Sheet(4)
	run := storetest.AddRun(t, s, "mark", sheet)
	deliver(t, s, storetest.Lead(run, sheet, 3))
	deliver(t, s, storetest.Serve(run, sheet))
	mark := func(id string, trial, attempt int32, invalid bool, reason string) error {
		return campaigndb.New(s).InsertMark(t.Context(), campaigndb.InsertMarkParams{ID: id, RunID: run, Trial: trial, Attempt: attempt, Invalid: invalid, Reason: reason, GivenBy: "ada"})
	}
	counted := func() (n int) {
		ds, err := s.Dataset(t.Context(), store.Scope{Campaign: "mark"}, nil)
		require.NoError(t, err)
		for i := range ds.Runs[0].Trials {
			if ds.Runs[0].Trials[i].Counted() != nil {
				n++
			}
		}
		return n
	}
	require.Equal(t, 4, counted())

	require.NoError(t, mark("m1", 0, 1, true, "a lorry stood between"), "an attempt that does not count anyway")
	require.Equal(t, 4, counted())
	require.NoError(t, mark("m2", 0, 2, true, "a lorry stood between"))
	require.Equal(t, 3, counted())
	r, _, err := s.Run(t.Context(), run)
	require.NoError(t, err)
	first := r.Trials[0]
	require.Equal(t, journal.Invalid, first.Verdict)
	require.Equal(t, journal.Invalid, first.Attempts[1].Verdict)
	require.Equal(t, "marked: a lorry stood between", first.Attempts[1].Reason)
	require.Equal(t, "marked invalid by ada: a lorry stood between; the journal says: succeeded", first.Attempts[1].Message)
	require.Contains(t, first.Attempts[0].Message, "the journal says: failed (reset)")
	require.Zero(t, first.Attempts[1].ThroughputBytesPerSecond())
	require.Positive(t, first.Attempts[1].MeasuredBytesPerSecond(), "what it measured stays")
	require.Zero(t, first.Attempts[0].MeasuredBytesPerSecond(), "what failed measured nothing, marked or not")
	m := first.Attempts[0].Mark
	require.Equal(t, []any{"a lorry stood between", "ada", journal.Failed, "reset"}, []any{m.Reason, m.By, m.Verdict, m.JournalReason})
	require.Nil(t, r.Trials[1].Attempts[0].Mark)
	require.Equal(t, journal.Succeeded, r.Trials[1].Verdict)

	require.NoError(t, mark("m3", 0, 2, false, ""))
	require.Equal(t, 4, counted())
	require.NoError(t, mark("m4", 0, 2, true, "it did"))
	require.Equal(t, 3, counted())

	require.Error(t, mark("m5", 0, 2, true, ""), "a mark without a reason")
	require.Error(t, mark("m5", 0, 3, true, "x"), "an attempt that does not exist")
	require.Error(t, mark("m4", 1, 1, true, "x"), "the same mark twice")

	// What was said stays said.
	require.NoError(t, campaigndb.New(s).InsertCommand(t.Context(), campaigndb.InsertCommandParams{ID: "o", RunID: run, Kind: "pause"}))
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer conn.Close(t.Context())
	for _, sql := range []string{"UPDATE attempt_marks SET reason = 'x'", "DELETE FROM attempt_marks", "UPDATE run_commands SET kind = 'resume'", "DELETE FROM run_commands"} {
		_, err := conn.Exec(t.Context(), sql)
		require.ErrorContains(t, err, "never changed or removed", sql)
	}
}

func TestMarkOfWhatHasNoVerdict(t *testing.T) {
	m := &store.Mark{Reason: "r"}
	v, reason, message := m.Verdict("", "", "")
	require.Empty(t, string(v)+reason+message)
	v, reason, message = (*store.Mark)(nil).Verdict(journal.Failed, "reset", "m")
	require.Equal(t, "failed reset m", string(v)+" "+reason+" "+message)
}
