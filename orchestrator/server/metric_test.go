package server_test

import (
	"encoding/csv"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/executor/journal"
	"linktrial/internal/radio"
	"linktrial/orchestrator/ingest"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/storetest"
	"linktrial/protocols/contract"
)

// A new metric of a protocol is one more row of contract.Metrics and one column
// of that name in the database: both ways into the database, samples.csv and
// series carry it. The row is of a field that samples have already, under
// another name.
func TestMetricAdded(t *testing.T) {
	before := contract.Metrics
	t.Cleanup(func() { contract.Metrics = before })
	added := before[slices.IndexFunc(before, func(f contract.Metric) bool { return f.Name == "rto_us" })]
	added.Name, added.Unit, added.Kind, added.Meaning = "ecn_marks", "count", contract.Counter, "packets marked by the network"
	contract.Metrics = append(slices.Clone(before), added)

	url := storetest.URL(t)
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), "ALTER TABLE samples ADD COLUMN ecn_marks bigint CHECK (ecn_marks >= 0)") // the migration
	require.NoError(t, err)
	require.NoError(t, conn.Close(t.Context()))

	st, err := store.Open(t.Context(), url, nil)
	require.NoError(t, err)
	sheet := storetest.Sheet(1)
	run := storetest.AddRun(t, st, "metrics", sheet)
	j := storetest.NewJournal(run, radio.RoleClient)
	j.Begin(sheet)
	j.Start(sheet, 0, 1)
	for i := range int64(2) {
		j.Add(journal.TypeSamples, journal.Samples{Attempt: 1, Side: "client", Samples: []contract.Sample{{ElapsedNS: (i + 1) * int64(time.Second), SentBytes: i, RTOUS: new(40 + i)}}})
	}
	in := ingest.New(ingest.Config{Store: st})
	for _, last := range []int{len(j.Records) - 1, len(j.Records)} { // among other records, and alone
		var records []ingest.Record
		for i, r := range j.Records[:last] {
			records = append(records, ingest.Record{Seq: int64(i + 1), JSON: r})
		}
		if last == len(j.Records) {
			records = records[last-1:]
		}
		_, err := in.Deliver(t.Context(), run, "client", records)
		require.NoError(t, err)
	}
	st.Close()

	s := startOn(t, url)
	defer stop(t, s)
	c := connectTo(t, s.Addr())
	results := linktrialv1connect.NewResultServiceClient(c.http, "http://"+s.Addr(), connect.WithGRPC())
	series, err := results.Series(t.Context(), req(&linktrialv1.SeriesRequest{RunId: run}))
	require.NoError(t, err)
	columns := series.Msg.Flows[0].Columns
	got := columns[len(columns)-1]
	require.Equal(t, []string{"ecn_marks", "count", "counter"}, []string{got.Name, got.Unit, got.Kind})
	require.Equal(t, []float64{40, 41}, got.Values)

	file, err := c.results(t.Context(), &linktrialv1.ResultsRequest{RunId: run, Format: "samples-csv"})
	require.NoError(t, err)
	rows, err := csv.NewReader(strings.NewReader(string(file.Content))).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 3)
	at := slices.Index(rows[0], "ecn_marks")
	require.Equal(t, len(rows[0])-2, at, "before more")
	require.Equal(t, []string{"40", "41"}, []string{rows[1][at], rows[2][at]})
}
