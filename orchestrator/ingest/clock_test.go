package ingest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/internal/radio"
	"linktrial/internal/telemetrysource"
	"linktrial/orchestrator/ingest"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/storetest"
)

const year = 365 * 24 * time.Hour

// times is every time that tables have of a run, but the records' own.
func times(t *testing.T, url, run string) map[string][]time.Time {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer conn.Close(t.Context())
	out := map[string][]time.Time{}
	for name, query := range map[string]string{
		"attempts":   "SELECT started_at FROM attempts WHERE run_id = $1 ORDER BY trial, attempt",
		"ends":       "SELECT ended_at FROM attempts WHERE run_id = $1 ORDER BY trial, attempt",
		"samples":    "SELECT at FROM samples WHERE run_id = $1 ORDER BY trial, attempt, flow, side, elapsed_ns",
		"receptions": "SELECT at FROM receptions WHERE run_id = $1 ORDER BY seq",
		"listeners":  "SELECT at FROM listeners WHERE run_id = $1 ORDER BY node, treatment",
		"telemetry":  "SELECT at FROM telemetry WHERE run_id = $1 ORDER BY node, seq",
	} {
		rows, err := conn.Query(t.Context(), query, run)
		require.NoError(t, err)
		out[name], err = pgx.CollectRows(rows, pgx.RowTo[time.Time])
		require.NoError(t, err)
		require.NotEmpty(t, out[name], name)
	}
	return out
}

// A node's clock that steps by a year changes no time in the tables: they are by the
// clock as it was when the run began, in whatever pieces the journal arrives, and also
// where the orchestrator was started again in between.
func TestSteppedClock(t *testing.T) {
	s, url := open(t)
	sheet := storetest.Sheet(7)
	of := func(campaign string, stepped bool) (run string) {
		run = storetest.AddRun(t, s, campaign, sheet)
		lead, serve := storetest.Lead(run, sheet, 12), storetest.Serve(run, sheet)
		relay := storetest.NewJournal(run, radio.RoleRelay)
		relay.Begin(sheet)
		for range 9 {
			relay.Add(journal.TypeTelemetry, journal.Telemetry{Source: "x", Kind: telemetrysource.KindHost, Values: []journal.Reading{{Name: "charge", Value: 1}}})
		}
		in := ingest.New(ingest.Config{Store: s})
		for _, j := range []*storetest.Journal{lead, serve, relay} {
			if stepped {
				n := len(j.Records)
				j.Stepped(3*n/4, -time.Hour)
				j.Stepped(n/2, -2*year)
				j.Stepped(n/3, year)
				j.Stepped(1, time.Second)
			}
			for at, size := 1, 1; at <= len(j.Records); at, size = at+size, size%7+1 {
				if at%3 == 0 {
					in = ingest.New(ingest.Config{Store: s})
				}
				_, err := in.Deliver(t.Context(), run, string(j.Role), batch(j, at, min(len(j.Records), at+size-1)))
				require.NoError(t, err)
			}
		}
		return run
	}
	want, got := times(t, url, of("steady", false)), times(t, url, of("stepped", true))
	require.Equal(t, want, got)

	rows, err := s.ClockOffsets(t.Context(), "stepped-1")
	require.NoError(t, err)
	clocks := store.NodeClocks(rows)
	require.Len(t, clocks, 3)
	for node, c := range clocks {
		require.Equal(t, time.Second-year-time.Hour, c.Stepped(1000), node)
		require.Equal(t, store.Clock{Offset: 2*time.Millisecond + time.Second, Bound: time.Millisecond}, c.Stored(1000), node)
		require.Equal(t, store.Clock{Offset: 2*time.Millisecond + year + time.Hour, Bound: time.Millisecond}, c.Recorded(1000), node)
	}
}

// Steps that no clock can have made are refused, or change nothing.
func TestImpossibleSteps(t *testing.T) {
	s, url := open(t)
	sheet := storetest.Sheet(1)
	run := storetest.AddRun(t, s, "steps", sheet)
	j := storetest.NewJournal(run, radio.RoleClient)
	j.Begin(sheet)
	for range 4 {
		j.Add(journal.TypeClockStepped, journal.ClockStepped{By: 200 * year})
	}
	j.Add(journal.TypeClockStepped, journal.ClockStepped{By: 240 * year})
	j.Start(sheet, 0, 1)
	_, err := ingest.New(ingest.Config{Store: s}).Deliver(t.Context(), run, "client", batch(j, 1, len(j.Records)))
	require.NoError(t, err)
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer conn.Close(t.Context())
	var at time.Time
	require.NoError(t, conn.QueryRow(t.Context(), "SELECT started_at FROM attempts WHERE run_id = $1", run).Scan(&at))
	require.Equal(t, 2026, at.Year())
	refused := 0
	require.NoError(t, conn.QueryRow(t.Context(), "SELECT count(*) FROM journal WHERE run_id = $1 AND type = 'refused'", run).Scan(&refused))
	require.Equal(t, 1, refused, fmt.Sprintf("of %d records", len(j.Records)))
}
