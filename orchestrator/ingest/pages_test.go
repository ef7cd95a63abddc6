package ingest_test

import (
	"crypto/sha256"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/orchestrator/ingest"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/storetest"
)

// kept reads a journal as it was delivered.
func kept(t *testing.T, s *store.Store, run, node string) []store.KeptRecord {
	t.Helper()
	var out []store.KeptRecord
	for r, err := range s.JournalRecords(t.Context(), run, node) {
		require.NoError(t, err)
		out = append(out, r)
	}
	return out
}

func sameRecords(t *testing.T, want [][]byte, got []store.KeptRecord) {
	t.Helper()
	require.Len(t, got, len(want))
	for i, r := range got {
		require.EqualValues(t, i+1, r.Seq)
		require.Equal(t, string(want[i]), string(r.JSON), "record %d", i+1)
		require.Equal(t, sha256.Sum256(want[i]), r.SHA256)
		require.Empty(t, r.Absent)
	}
}

func execute(t *testing.T, url, sql string, args ...any) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer conn.Close(t.Context())
	_, err = conn.Exec(t.Context(), sql, args...)
	require.NoError(t, err)
}

// However a journal is divided and repeated, with orchestrators that start anew in between,
// every record is kept as the node wrote it, up to the journal's end.
func TestRecordsAreKeptAsDelivered(t *testing.T) {
	s, url := open(t)
	sheet := storetest.Sheet(9)
	run := storetest.AddRun(t, s, "kept", sheet)
	j := storetest.Lead(run, sheet, 5)
	// What no encoder of this program writes: spaces, another order, escapes.
	last := len(j.Records) - 1
	j.Records[last] = []byte(strings.Replace(string(j.Records[last]), `"seq":`, "  \"\\u0073eq\" :\t", 1))
	end := len(j.Records)
	j.Start(sheet, 0, 7) // comes late
	rng := rand.New(rand.NewPCG(1, 2))
	in := ingest.New(ingest.Config{Store: s})
	for at := 0; at < len(j.Records); {
		first := max(1, at+1-rng.IntN(3))
		committed, err := in.Deliver(t.Context(), run, "client", batch(j, first, min(len(j.Records), at+1+rng.IntN(9))))
		require.NoError(t, err)
		at = int(committed)
		if rng.IntN(3) == 0 {
			in = ingest.New(ingest.Config{Store: s})
		}
	}
	sameRecords(t, j.Records[:end], kept(t, s, run, "client"))
	require.Empty(t, kept(t, s, run, "server"))

	// Pages have samples alone, or none.
	require.Zero(t, rows(t, url, `SELECT count(*) FROM journal_pages p WHERE EXISTS (SELECT FROM journal j
		WHERE j.run_id = p.run_id AND j.node = p.node AND j.seq BETWEEN p.first_seq AND p.last_seq AND (j.type = 'samples') <> p.samples)`))
	require.Positive(t, rows(t, url, `SELECT count(*) FROM journal_pages WHERE samples`))
}

func rows(t *testing.T, url, sql string) (n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer conn.Close(t.Context())
	require.NoError(t, conn.QueryRow(t.Context(), sql).Scan(&n))
	return n
}

// A whole journal in one delivery becomes several pages, and a record that is refused is kept
// as it was delivered all the same.
func TestRefusedAndManyRecordsAreKept(t *testing.T) {
	s, url := open(t)
	sheet := storetest.Sheet(1)
	run := storetest.AddRun(t, s, "whole", sheet)
	j := storetest.NewJournal(run, "client")
	j.Begin(sheet)
	j.Start(sheet, 0, 1)
	for range 400 {
		j.Samples(0, 1, 50)
	}
	refused := len(j.Records)
	j.Add(journal.TypeSamples, journal.Samples{Trial: 77, Attempt: 1, Side: "client"}) // no such trial
	j.Records = append(j.Records, []byte(`{"seq": "none"`))
	j.Samples(0, 1, 3)
	j.End(sheet, 0, 1, journal.Succeeded)
	j.EndTrial(0, 1, journal.Succeeded)
	j.Finish(journal.RunCompleted, "")
	in := ingest.New(ingest.Config{Store: s})
	_, err := in.Deliver(t.Context(), run, "client", batch(j, 1, refused)) // the samples among others
	require.NoError(t, err)
	_, err = in.Deliver(t.Context(), run, "client", batch(j, refused+1, len(j.Records)))
	require.NoError(t, err)
	require.Equal(t, 2, rows(t, url, `SELECT count(*) FROM journal WHERE type = 'refused'`))
	sameRecords(t, j.Records, kept(t, s, run, "client"))
	require.Greater(t, rows(t, url, `SELECT count(*) FROM journal_pages WHERE samples`), 2)
	require.Less(t, rows(t, url, `SELECT sum(length(content)) FROM journal_pages`), rows(t, url, `SELECT sum(journal_bytes) FROM run_nodes`)/3)
}

// Records with samples go with the samples; the others stay, and the reader tells why records
// are not there, those of an earlier version included.
func TestRecordsThatAreNotKept(t *testing.T) {
	s, url := open(t)
	sheet := storetest.Sheet(4)
	run := storetest.AddRun(t, s, "gone", sheet)
	j := storetest.Lead(run, sheet, 5)
	in := ingest.New(ingest.Config{Store: s})
	for first := 1; first <= len(j.Records); first += 3 {
		_, err := in.Deliver(t.Context(), run, "client", batch(j, first, min(len(j.Records), first+2)))
		require.NoError(t, err)
	}
	execute(t, url, "DELETE FROM journal_pages WHERE last_seq <= 6")
	absent := func() map[store.Absence][]int64 {
		out := map[store.Absence][]int64{}
		for i, r := range kept(t, s, run, "client") {
			require.EqualValues(t, i+1, r.Seq)
			require.Equal(t, r.JSON == nil, r.Absent != "")
			require.Equal(t, sha256.Sum256(j.Records[i]), r.SHA256)
			out[r.Absent] = append(out[r.Absent], r.Seq)
		}
		return out
	}
	require.Equal(t, []int64{1, 2, 3, 4, 5, 6}, absent()[store.NotKept])
	require.Empty(t, absent()[store.SamplesDeleted])

	execute(t, url, "UPDATE runs SET state = 'completed', ended_at = '2026-03-02'")
	d, err := s.DropSamples(t.Context(), time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC))
	require.NoError(t, err)
	require.Equal(t, 1, d.Runs)
	var samples []int64
	for i, b := range j.Records {
		if strings.Contains(string(b), `"type":"samples"`) {
			samples = append(samples, int64(i+1))
		}
	}
	require.Equal(t, samples, absent()[store.SamplesDeleted])
	require.Len(t, absent()[""], len(j.Records)-6-len(slices.DeleteFunc(samples, func(n int64) bool { return n <= 6 })))
}

// What is stored and is not what was delivered is an error that names the record.
func TestDamagedPages(t *testing.T) {
	sheet := storetest.Sheet(2)
	for name, c := range map[string]struct{ sql, want string }{
		"another record":    {"UPDATE journal SET digest = sha256('') WHERE seq = 5", "record 5 of client's journal of run damaged-1 is not the one that was delivered"},
		"no compressed one": {"UPDATE journal_pages SET content = 'x' WHERE first_seq = 1", "the page of records 1 to"},
		"a shorter page":    {"UPDATE journal_pages SET last_seq = last_seq + 1 WHERE first_seq = 1", "records, expected"},
		"a page elsewhere":  {"DELETE FROM journal WHERE seq = 1", "it begins with record 1, expected 2"},
	} {
		t.Run(name, func(t *testing.T) {
			s, url := open(t)
			run := storetest.AddRun(t, s, "damaged", sheet)
			j := storetest.Lead(run, sheet, 5)
			_, err := ingest.New(ingest.Config{Store: s}).Deliver(t.Context(), run, "client", batch(j, 1, len(j.Records)))
			require.NoError(t, err)
			execute(t, url, c.sql)
			var failed error
			for _, err := range s.JournalRecords(t.Context(), run, "client") {
				failed = err
			}
			require.ErrorIs(t, failed, store.ErrDamaged)
			require.ErrorContains(t, failed, c.want)
		})
	}
}

// A journal of many pages and more records than are read at once is read in order.
func TestManyPages(t *testing.T) {
	s, _ := open(t)
	sheet := storetest.Sheet(1)
	run := storetest.AddRun(t, s, "pages", sheet)
	j := storetest.NewJournal(run, "client")
	j.Begin(sheet)
	j.Start(sheet, 0, 1)
	for range 12_000 {
		j.Samples(0, 1, 1)
	}
	in := ingest.New(ingest.Config{Store: s})
	for first := 1; first <= len(j.Records); first += 20 {
		_, err := in.Deliver(t.Context(), run, "client", batch(j, first, min(len(j.Records), first+19)))
		require.NoError(t, err)
	}
	sameRecords(t, j.Records, kept(t, s, run, "client"))
	for r, err := range s.JournalRecords(t.Context(), run, "client") { // one that is left early
		require.NoError(t, err)
		if r.Seq == 3 {
			break
		}
	}
}
