package store_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"linktrial/orchestrator/campaign/campaigndb"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/render"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/storetest"
	"linktrial/orchestrator/store/synthetic"
)

// What [Store.Measured] reads gives the same tables and the same trials as what is
// read for exports, marked attempts and open runs among them.
func TestValuesAreThoseOfTheDataset(t *testing.T) {
	url := storetest.URL(t)
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer func() { _ = conn.Close(t.Context()) }()
	shape := synthetic.Shape{ID: "small", Runs: 3, Iterations: 20, Treatments: 3, Samples: 1}
	require.NoError(t, synthetic.Fill(t.Context(), conn, shape))
	s, err := store.Open(t.Context(), url, nil)
	require.NoError(t, err)
	defer s.Close()
	sheet := storetest.Sheet(8)
	open := storetest.AddRun(t, s, "open", sheet)
	deliver(t, s, storetest.Lead(open, sheet, 3))
	for i, m := range []campaigndb.InsertMarkParams{{RunID: "small-2", Trial: 4, Attempt: 1}, {RunID: "small-2", Trial: 5, Attempt: 1}, {RunID: open, Trial: 1, Attempt: 1}} {
		m.ID, m.Invalid, m.Reason, m.GivenBy = string(rune('a'+i)), true, "a truck drove by", "somebody"
		require.NoError(t, campaigndb.New(s).InsertMark(t.Context(), m))
	}
	require.NoError(t, campaigndb.New(s).InsertMark(t.Context(), campaigndb.InsertMarkParams{ID: "z", RunID: "small-2", Trial: 5, Attempt: 1}))

	scopes := []store.Scope{{Campaign: "small"}, {Campaign: "open"}, {Campaign: "small", Run: "small-3"}}
	for range 2 { // from the store, then with what is known of sheets and runs that have ended
		all, err := s.Measured(t.Context(), scopes)
		require.NoError(t, err)
		require.Len(t, all, len(scopes))
		for i, x := range scopes {
			want, err := s.Dataset(t.Context(), x, nil)
			require.NoError(t, err)
			got := &all[i].Dataset
			require.Equal(t, report.Summarize(want), report.Summarize(got))
			require.Equal(t, want.Complete, got.Complete)
			require.Equal(t, want.Plan, got.Plan)
			for k := range want.Runs {
				require.Equal(t, want.Runs[k].ID, all[i].Heads[k].ID)
				require.Equal(t, want.Runs[k].Sheet, got.Runs[k].Sheet)
				for _, r := range [][]report.Trial{want.Runs[k].Trials, got.Runs[k].Trials} {
					for j := range r {
						for n := range r[j].Attempts { // what [Store.Measured] leaves out
							r[j].Attempts[n].Log, r[j].Attempts[n].Radio = "", nil
						}
					}
				}
				require.EqualValues(t, want.Runs[k].Trials, got.Runs[k].Trials)
			}
			for _, format := range []string{"table", "svg", "against", "sweep"} {
				a, err := render.As(want, format, report.Options{})
				require.NoError(t, err)
				got.Created = want.Created
				b, err := render.As(got, format, report.Options{})
				require.NoError(t, err)
				first, err := a.Content()
				require.NoError(t, err)
				second, err := b.Content()
				require.NoError(t, err)
				require.Equal(t, string(first), string(second))
			}
		}
		marked := all[0].Dataset.Runs[1].Trials[4]
		require.Equal(t, "invalid", string(marked.Verdict))
		require.Equal(t, "marked: a truck drove by", marked.Attempts[len(marked.Attempts)-1].Reason)
	}
	// What came to a run that has ended shows at once: marks, and journals that
	// come late.
	third := func() *report.Run {
		all, err := s.Measured(t.Context(), scopes[2:])
		require.NoError(t, err)
		require.EqualValues(t, 60, all[0].Heads[0].TrialsEnded)
		return &all[0].Dataset.Runs[0]
	}
	require.NoError(t, campaigndb.New(s).InsertMark(t.Context(), campaigndb.InsertMarkParams{ID: "late", RunID: "small-3", Trial: 9, Attempt: int32(len(third().Trials[9].Attempts)), Invalid: true, Reason: "late"}))
	require.Equal(t, "invalid", string(third().Trials[9].Verdict))
	require.NoError(t, campaigndb.New(s).InsertMark(t.Context(), campaigndb.InsertMarkParams{ID: "taken back", RunID: "small-3", Trial: 9, Attempt: int32(len(third().Trials[9].Attempts))}))
	require.NotEqual(t, "invalid", string(third().Trials[9].Verdict))
	require.NotNil(t, third().Trials[9].Counted())
	_, err = conn.Exec(t.Context(), `DELETE FROM receptions WHERE run_id = 'small-3'`)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), `UPDATE run_nodes SET committed_seq = committed_seq + 1 WHERE run_id = 'small-3' AND role = 'server'`)
	require.NoError(t, err)
	require.Nil(t, third().Trials[9].Counted(), "the server's word is gone")

	_, err = s.Measured(t.Context(), []store.Scope{{Campaign: "small", Run: "small-9"}})
	require.ErrorIs(t, err, store.ErrNotFound)
}
