package server_test

import (
	"encoding/csv"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/executor/journal"
	"linktrial/internal/radio"
	"linktrial/internal/telemetrysource"
	"linktrial/orchestrator/ingest"
	"linktrial/orchestrator/measure"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/storetest"
)

// A series is found by the measurement that its plans name, by that or by a point of it, so
// that a page has it after a reload: positions, distance and files are those of its points.
func TestSeries(t *testing.T) {
	url := storetest.URL(t)
	st, err := store.Open(t.Context(), url, nil)
	require.NoError(t, err)
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	in := ingest.New(ingest.Config{Store: st})
	add := func(campaign, plan, search string, latitude float64, ended bool) {
		t.Helper()
		sheet := storetest.Sheet(1)
		run := storetest.AddRunOf(t, st, campaign, plan, measure.SearchLine(search)+"name: "+plan+"\n", sheet)
		for _, at := range []struct {
			role     radio.Role
			latitude float64
		}{{radio.RoleServer, 39.03}, {radio.RoleClient, latitude}} {
			j := storetest.NewJournal(run, at.role)
			j.Begin(sheet)
			if at.role == radio.RoleClient {
				j.Start(sheet, 0, 1)
			}
			if latitude != 0 {
				j.Add(journal.TypeTelemetry, journal.Telemetry{Source: "gps", Kind: telemetrysource.KindGPSD, Values: []journal.Reading{
					{Name: "latitude", Value: at.latitude, Unit: "°"}, {Name: "longitude", Value: -76.96, Unit: "°"}}})
			}
			if at.role == radio.RoleClient && ended {
				j.End(sheet, 0, 1, journal.Succeeded)
				j.EndTrial(0, 1, journal.Succeeded)
				j.Finish(journal.RunCompleted, "")
			}
			deliverAll(t, in, j)
		}
		if ended {
			_, err := conn.Exec(t.Context(), "UPDATE runs SET state = 'completed', ended_at = now() WHERE id = $1", run)
			require.NoError(t, err)
		}
	}
	add("base0", "measure", "", 0, true)
	add("walk1", "measure-track", "base0", 39.0308993, true)
	add("walk2", "measure-track", "base0", 39.0317986, true)
	add("other", "measure-track", "base1", 39.1, true)
	add("walk3", "measure-track", "base0", 39.0326979, false)
	st.Close()
	require.NoError(t, conn.Close(t.Context()))

	s := serveAll(t, url, t.TempDir(), nil)
	client := linktrialv1connect.NewMeasureServiceClient(s.http, s.base, connect.WithGRPC())
	get := func(m *linktrialv1.GetSeriesRequest) (*linktrialv1.GetSeriesResponse, error) {
		res, err := client.GetSeries(t.Context(), connect.NewRequest(m))
		if err != nil {
			return nil, err
		}
		return res.Msg, nil
	}
	for _, of := range []string{"base0", "walk2", "base"} {
		got, err := get(&linktrialv1.GetSeriesRequest{CampaignId: of})
		require.NoError(t, err, of)
		require.Equal(t, "base0", got.CampaignId)
		var ids []string
		for _, p := range got.Points {
			ids = append(ids, p.CampaignId)
		}
		require.Equal(t, []string{"walk1", "walk2", "walk3"}, ids)
		require.True(t, got.Points[0].Ended)
		require.False(t, got.Points[2].Ended)
		require.InDelta(t, 100, *got.Points[0].DistanceMetres, 0.1)
		require.Equal(t, "client", got.Moving)
		require.Equal(t, "undecided", got.Points[0].Outcome, "nothing was measured")
		require.False(t, got.Cut)
	}
	got, err := get(&linktrialv1.GetSeriesRequest{CampaignId: "base0", First: "walk2"})
	require.NoError(t, err)
	require.Len(t, got.Points, 2)
	rows, err := csv.NewReader(strings.NewReader(got.Csv)).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 2, "the point that is being measured is in no file")
	require.Equal(t, []string{"walk2", "39.0317986", "200.0"}, []string{rows[1][0], rows[1][3], rows[1][5]})
	require.Contains(t, got.Kml, "-76.9600000,39.0317986")
	require.NotContains(t, got.Kml, "39.0326979")

	_, err = get(&linktrialv1.GetSeriesRequest{CampaignId: "base0", First: "other"})
	fails(t, err, connect.CodeFailedPrecondition, "campaign other is no point of the series of base0")
	share := 5.0
	_, err = get(&linktrialv1.GetSeriesRequest{CampaignId: "base0", Thresholds: &linktrialv1.MeasureThresholds{ChatLoss: &share}})
	fails(t, err, connect.CodeInvalidArgument, "chat_loss: expected 0 % to 100 %")
	_, err = get(&linktrialv1.GetSeriesRequest{CampaignId: "nope"})
	fails(t, err, connect.CodeNotFound, "nope")

	// After a point of a series, the next one is by the capacities of the same measurement.
	_, err = client.StartMeasurement(t.Context(), connect.NewRequest(&linktrialv1.StartMeasurementRequest{Link: &linktrialv1.LinkChoice{Search: "walk1", Track: true}}))
	fails(t, err, connect.CodeFailedPrecondition, "campaign base0 found no capacity")

	// Lists have no points of series: a walk would leave nothing else.
	list, err := client.ListMeasurements(t.Context(), connect.NewRequest(&linktrialv1.ListMeasurementsRequest{}))
	require.NoError(t, err)
	require.Len(t, list.Msg.Measurements, 1)
	require.Equal(t, "base0", list.Msg.Measurements[0].CampaignId)
	require.Len(t, list.Msg.Thresholds, 8)
	require.Equal(t, "1 MOS to 4.41 MOS", list.Msg.Thresholds[0].Bounds)

	// What differs from the defaults is said.
	mos := 3.1
	one, err := client.GetMeasurement(t.Context(), connect.NewRequest(&linktrialv1.GetMeasurementRequest{CampaignId: "walk1", Thresholds: &linktrialv1.MeasureThresholds{VoiceMos: &mos}}))
	require.NoError(t, err)
	require.Equal(t, []string{"Voice: quality each way, at least 3.1 MOS (default 3.6 MOS)"}, one.Msg.ChangedThresholds)
	require.InDelta(t, 100, *one.Msg.DistanceMetres, 0.1)
}

// deliverAll stores all records of a journal.
func deliverAll(t *testing.T, in *ingest.Ingester, j *storetest.Journal) {
	t.Helper()
	var records []ingest.Record
	for i, r := range j.Records {
		records = append(records, ingest.Record{Seq: int64(i + 1), JSON: r})
	}
	_, err := in.Deliver(t.Context(), j.Run, string(j.Role), records)
	require.NoError(t, err)
}
