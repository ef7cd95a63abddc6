package store_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/storetest"
)

// The newest words of a campaign hold, in each of its datasets; earlier ones stay.
func TestWords(t *testing.T) {
	url := storetest.URL(t)
	s, err := store.Open(t.Context(), url, nil)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	run := storetest.AddRun(t, s, "wordy", storetest.Sheet(4))
	storetest.AddRun(t, s, "other", storetest.Sheet(4))
	scope := store.Scope{Campaign: "wordy"}
	words := func(run string) []report.Words {
		ds, err := s.Dataset(t.Context(), store.Scope{Campaign: "wordy", Run: run}, nil)
		require.NoError(t, err)
		return ds.Words
	}
	w, version, err := s.Words(t.Context(), scope)
	require.NoError(t, err)
	require.Zero(t, version)
	require.True(t, w.Empty())
	require.Nil(t, words(""))

	first := report.Words{Campaign: "wordy", Title: "a <b>", Author: "Ada", Summary: "one\n\ntwo \\u0041", Remarks: map[string]string{"results": "\"x\" 中"}, By: "ada"}
	stored, version, err := s.SetWords(t.Context(), first, 0)
	require.NoError(t, err)
	require.Equal(t, 1, version)
	require.NotZero(t, stored.At)
	first.At = stored.At
	require.Equal(t, first, stored)
	require.Equal(t, []report.Words{first}, words(""))
	require.Equal(t, words(""), words(run), "a run's report has those of its campaign")
	ds, err := s.Dataset(t.Context(), store.Scope{Campaign: "other"}, nil)
	require.NoError(t, err)
	require.Nil(t, ds.Words)

	for _, after := range []int{0, 2, 1 << 31, 1 << 40} {
		now, version, err := s.SetWords(t.Context(), report.Words{Campaign: "wordy", Title: "late", By: "bob"}, after)
		require.ErrorIs(t, err, store.ErrWordsChanged, after)
		require.ErrorContains(t, err, "its words are in version 1, saved by ada ")
		require.Equal(t, 1, version)
		require.Equal(t, first, now)
	}
	_, _, err = s.SetWords(t.Context(), report.Words{Campaign: "other"}, 3)
	require.ErrorContains(t, err, "it has no words, and version 3 was edited")

	// Without text they are removed, which is a version.
	_, version, err = s.SetWords(t.Context(), report.Words{Campaign: "wordy", By: "bob"}, 1)
	require.NoError(t, err)
	require.Equal(t, 2, version)
	require.Nil(t, words(""))
	w, version, err = s.Words(t.Context(), scope)
	require.NoError(t, err)
	require.Equal(t, 2, version)
	require.Equal(t, "bob", w.By)

	// Bounds and history are the database's, too.
	_, _, err = s.SetWords(t.Context(), report.Words{Campaign: "wordy", Title: strings.Repeat("x", 201)}, 2)
	require.ErrorContains(t, err, "report_words_title_check")
	_, _, err = s.SetWords(t.Context(), report.Words{Campaign: "nosuch"}, 0)
	require.ErrorContains(t, err, "report_words_campaign_id_fkey")
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer conn.Close(t.Context())
	for _, sql := range []string{"UPDATE report_words SET title = 'x'", "DELETE FROM report_words"} {
		_, err := conn.Exec(t.Context(), sql)
		require.ErrorContains(t, err, "never changed or removed", sql)
	}
}

// Of several who save at a time, one does.
func TestWordsAtOneTime(t *testing.T) {
	s := storetest.Open(t)
	storetest.AddRun(t, s, "wordy", storetest.Sheet(4))
	var all sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		all.Go(func() { _, _, errs[i] = s.SetWords(t.Context(), report.Words{Campaign: "wordy", Title: "x"}, 0) })
	}
	all.Wait()
	saved := 0
	for _, err := range errs {
		if err == nil {
			saved++
		} else {
			require.ErrorIs(t, err, store.ErrWordsChanged)
		}
	}
	require.Equal(t, 1, saved)
}
