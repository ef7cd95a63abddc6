package ingest_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/internal/quota"
	"linktrial/internal/radio"
	"linktrial/orchestrator/ingest"
	"linktrial/orchestrator/store/storetest"
	"linktrial/protocols/contract"
)

// derived are the tables that results are made from.
var derived = []string{"trials", "attempts", "flows", "receptions", "listeners", "clock_offsets", "samples"}

// What a node sends after the end of its journal is kept in the journal's table as
// what it is, and changes nothing that results are made from: neither attempts, trials
// and commands nor samples, whether they come alone or among other records.
func TestNothingChangesAJournalThatHasEnded(t *testing.T) {
	s, url := open(t)
	sheet := storetest.Sheet(3)
	run := storetest.AddRun(t, s, "seal", sheet)
	in := ingest.New(ingest.Config{Store: s})
	client, server := storetest.Lead(run, sheet, 4), storetest.Serve(run, sheet)
	n := len(client.Records)
	for _, j := range []*storetest.Journal{client, server} {
		_, err := in.Deliver(t.Context(), run, string(j.Role), batch(j, 1, len(j.Records)))
		require.NoError(t, err)
	}
	before := tables(t, url)

	repeated := 0
	client.Add(journal.TypeCommand, journal.Command{ID: "a", Kind: journal.CommandRepeat, Trial: &repeated})
	client.Start(sheet, 0, 3)
	client.Samples(0, 3, 2)
	client.End(sheet, 0, 3, journal.Succeeded)
	client.EndTrial(0, 3, journal.Succeeded)
	client.Finish(journal.RunAborted, "rewritten")
	client.Samples(0, 2, 2)
	server.Received("one", 1, 1)
	for seq := n + 1; seq <= len(client.Records); seq++ { // the last one by itself: samples alone take another way
		committed, err := in.Deliver(t.Context(), run, "client", batch(client, seq, seq))
		require.NoError(t, err)
		require.EqualValues(t, seq, committed, "an honest node's delivery is not kept waiting")
	}
	_, err := in.Deliver(t.Context(), run, "server", batch(server, len(server.Records), len(server.Records)))
	require.NoError(t, err)

	after := tables(t, url)
	for _, table := range derived {
		if diff := cmp.Diff(before[table], after[table]); diff != "" {
			t.Errorf("%s: %s", table, diff)
		}
	}
	require.Equal(t, 8, strings.Count(after["journal"], `"type": "late"`))
	o, err := s.RunOverview(t.Context(), run)
	require.NoError(t, err)
	require.EqualValues(t, 8, o.LateRecords)
	require.Contains(t, after["journal"], "after the end of the node's journal")

	// The same again is known, and something else in its place is another journal.
	_, err = in.Deliver(t.Context(), run, "client", batch(client, n+1, len(client.Records)))
	require.NoError(t, err)
	other := storetest.NewJournal(run, radio.RoleClient)
	other.Records = append(other.Records, client.Records[:n]...)
	other.Start(sheet, 0, 4)
	var conflict *ingest.ConflictError
	_, err = in.Deliver(t.Context(), run, "client", batch(other, n+1, n+1))
	require.ErrorAs(t, err, &conflict)
}

// A delivery that has the end of the journal in its middle is cut there.
func TestEndInTheMiddleOfADelivery(t *testing.T) {
	s, url := open(t)
	sheet := storetest.Sheet(2)
	run := storetest.AddRun(t, s, "midst", sheet)
	in := ingest.New(ingest.Config{Store: s})
	j := storetest.Lead(run, sheet, 2)
	j.Start(sheet, 1, 2)
	committed, err := in.Deliver(t.Context(), run, "client", batch(j, 1, len(j.Records)))
	require.NoError(t, err)
	require.EqualValues(t, len(j.Records), committed)
	after := tables(t, url)
	require.Equal(t, 3, strings.Count(after["attempts"], "\n")+1)
	require.Equal(t, 1, strings.Count(after["journal"], `"type": "late"`))
}

// What may come after the end of a journal is bounded.
func TestBoundOfLateRecords(t *testing.T) {
	s, url := open(t)
	sheet := storetest.Sheet(1)
	run := storetest.AddRun(t, s, "much", sheet)
	in := ingest.New(ingest.Config{Store: s, LateBytes: 3000})
	j := storetest.Lead(run, sheet, 2)
	_, err := in.Deliver(t.Context(), run, "client", batch(j, 1, len(j.Records)))
	require.NoError(t, err)
	var bound *ingest.BoundError
	for range 100 {
		j.Samples(0, 2, 2)
		if _, err = in.Deliver(t.Context(), run, "client", batch(j, len(j.Records), len(j.Records))); err != nil {
			break
		}
	}
	require.ErrorAs(t, err, &bound)
	require.ErrorContains(t, err, "after the end")
	kept := strings.Count(tables(t, url)["journal"], `"type": "late"`)
	require.Greater(t, kept, 2)
	require.Less(t, kept, 20)
}

// One node's journal of one run is bounded, also where samples come alone.
func TestBoundOfAJournal(t *testing.T) {
	s, url := open(t)
	sheet := storetest.Sheet(1)
	run := storetest.AddRun(t, s, "large", sheet)
	in := ingest.New(ingest.Config{Store: s, JournalBytes: 8000})
	j := storetest.NewJournal(run, radio.RoleClient)
	j.Begin(sheet)
	j.Start(sheet, 0, 1)
	committed, err := in.Deliver(t.Context(), run, "client", batch(j, 1, len(j.Records)))
	require.NoError(t, err)
	var bound *ingest.BoundError
	for range 100 {
		j.Samples(0, 1, 2)
		var c int64
		if c, err = in.Deliver(t.Context(), run, "client", batch(j, len(j.Records), len(j.Records))); err != nil {
			break
		}
		committed = c
	}
	require.ErrorAs(t, err, &bound)
	require.NotContains(t, err.Error(), "after the end")
	counted, _ := quota.Of(err)
	require.Equal(t, quota.Journal, counted)
	require.Greater(t, committed, int64(10))
	require.EqualValues(t, committed, strings.Count(tables(t, url)["journal"], "\n")+1)
	// The end is small and is taken: the run must not wait for it.
	j.Records = j.Records[:committed]
	j.Finish(journal.RunStopped, "the journal is full")
	_, err = in.Deliver(t.Context(), run, "client", batch(j, len(j.Records), len(j.Records)))
	require.NoError(t, err)
}

// Samples of one end of a flow come from the node at that end.
func TestSamplesOfTheOtherSide(t *testing.T) {
	s, url := open(t)
	sheet := storetest.Sheet(2)
	run := storetest.AddRun(t, s, "sides", sheet)
	in := ingest.New(ingest.Config{Store: s})
	for role, side := range map[radio.Role]string{radio.RoleClient: "server", radio.RoleServer: "client", radio.RoleRelay: "server"} {
		j := storetest.NewJournal(run, role)
		j.Begin(sheet)
		j.Add(journal.TypeSamples, journal.Samples{Trial: 1, Attempt: 1, Side: side, Samples: []contract.Sample{{ElapsedNS: 1, SentBytes: 1}}})
		n := len(j.Records)
		_, err := in.Deliver(t.Context(), run, string(role), batch(j, 1, n-1))
		require.NoError(t, err)
		committed, err := in.Deliver(t.Context(), run, string(role), batch(j, n, n))
		require.NoError(t, err)
		require.EqualValues(t, n, committed)
	}
	after := tables(t, url)
	require.Empty(t, after["samples"])
	require.Equal(t, 3, strings.Count(after["journal"], `"type": "refused"`))
	require.Contains(t, after["journal"], "samples of the server of flow 0 from the run's client; that end of the flow is at the server")
}
