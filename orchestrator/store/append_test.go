package store_test

import (
	"crypto/sha256"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/storetest"
	"linktrial/protocols/contract"
)

// appended stores samples over several days in one statement, with metrics that
// some have and others have not, and nothing where they do not follow on.
func appended(t *testing.T, url string) {
	t.Helper()
	s, err := store.Open(t.Context(), url, nil)
	require.NoError(t, err)
	defer s.Close()
	conn := connect(t, url)
	run := storetest.AddRun(t, s, "appended", storetest.Sheet(2))
	batch := func(first, records int64, trial int32) *store.Batch {
		b := &store.Batch{Run: run, Node: "client", Role: "client", First: first, Page: []byte{1}}
		for i := range records {
			digest := sha256.Sum256([]byte{byte(i)})
			at := noon.AddDate(0, 0, int(i))
			b.Journal = append(b.Journal, store.InsertJournalParams{RunID: run, Node: "client", Seq: first + i, Type: "samples", At: at, Body: []byte(`{}`), Digest: digest[:]})
			x := store.Sample{At: at, RunID: run, Trial: trial, Attempt: 1, Side: "client", Metrics: contract.Sample{ElapsedNS: i, SentBytes: 1}}
			if i == 1 {
				x.Metrics.SRTTUS, x.Metrics.PacingBPS, x.More = new(int64(7)), new(0.5), []byte(`{"x": 1}`)
			}
			b.Samples = append(b.Samples, x)
		}
		return b
	}
	for _, c := range []struct {
		what   string
		b      *store.Batch
		stored bool
	}{
		{"a gap", batch(2, 1, 0), false},
		{"a trial that is not", batch(1, 1, 2), false},
		{"the first", batch(1, 3, 1), true},
		{"the same again", batch(1, 3, 1), false},
		{"the next", batch(4, 1, 0), true},
	} {
		stored, err := s.AppendSamples(t.Context(), c.b)
		require.NoError(t, err, c.what)
		require.Equal(t, c.stored, stored, c.what)
	}
	other := batch(5, 1, 0)
	other.Role = "relay"
	stored, err := s.AppendSamples(t.Context(), other)
	require.NoError(t, err)
	require.False(t, stored, "another role")

	got, err := s.SamplesOfTrial(t.Context(), run, 1)
	require.NoError(t, err)
	require.Len(t, got, 3)
	require.Equal(t, 1, count(t, conn, "SELECT count(*) FROM samples WHERE srtt_us = 7 AND pacing_bps = 0.5 AND more = '{\"x\": 1}' AND elapsed_ns = 1"))
	require.Equal(t, 3, count(t, conn, "SELECT count(*) FROM samples WHERE srtt_us IS NULL AND more IS NULL AND acked_bytes IS NULL"))
	require.Equal(t, 4, count(t, conn, "SELECT count(*) FROM journal"))
	require.Equal(t, 2, count(t, conn, "SELECT count(*) FROM journal_pages WHERE samples AND content = '\\x01' AND (first_seq, last_seq) IN ((1, 3), (4, 4))"))
	require.Equal(t, 1, count(t, conn, "SELECT count(*) FROM run_nodes WHERE node = 'client' AND committed_seq = 4 AND delivered_at IS NOT NULL"))
	require.Equal(t, 1, count(t, conn, "SELECT count(*) FROM sample_spans WHERE first_at = $1 AND last_at = $2", noon, noon.Add(2*24*time.Hour)))
}

func TestAppendSamples(t *testing.T) { appended(t, storetest.URL(t)) }
