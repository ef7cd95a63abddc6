package telemetry_test

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/internal/telemetrysource"
	"linktrial/orchestrator/ingest"
	"linktrial/orchestrator/rpc/rpcdb"
	"linktrial/orchestrator/store/storetest"
	"linktrial/orchestrator/telemetry"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// noon is the start of the attempt by the orchestrator's clock.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// book is a journal whose records come at stated times of the node's clock.
type book struct {
	run     string
	role    radio.Role
	skew    time.Duration // the orchestrator's clock minus the node's
	records []ingest.Record
}

func (b *book) add(t *testing.T, at float64, typ journal.Type, body any) {
	t.Helper()
	raw, err := json.Marshal(body)
	require.NoError(t, err)
	seq := int64(len(b.records) + 1)
	when := noon.Add(time.Duration(at*1e9) - b.skew)
	rec, err := json.Marshal(journal.Record{Seq: seq, Run: b.run, Node: string(b.role), Role: b.role, At: when, Type: typ, Body: raw})
	require.NoError(t, err)
	b.records = append(b.records, ingest.Record{Seq: seq, JSON: rec})
}

func (b *book) tell(t *testing.T, at float64, source string, values ...journal.Reading) {
	t.Helper()
	b.add(t, at, journal.TypeTelemetry, journal.Telemetry{Source: source, Kind: telemetrysource.KindHTTP, Values: values})
}

func TestSeries(t *testing.T) {
	st := storetest.Open(t)
	sheet := storetest.Sheet(1)
	run := storetest.AddRun(t, st, "join", sheet)
	encoded, err := sheet.Encode()
	require.NoError(t, err)
	lead := &book{run: run, role: radio.RoleClient, skew: -90 * time.Second}
	// A year off.
	far := &book{run: run, role: radio.RoleRelay, skew: 365 * 24 * time.Hour}
	for _, b := range []*book{lead, far} {
		b.add(t, -100, journal.TypeRunStarted, journal.RunStarted{SheetHash: runsheet.Hash(encoded), Trials: 1})
		b.add(t, -100, journal.TypeClockOffset, journal.ClockOffset{When: "before", Offset: b.skew, Error: time.Millisecond})
	}
	snr := func(v float64) journal.Reading { return journal.Reading{Name: "snr", Value: v, Unit: "dB"} }
	in := func(v float64) journal.Reading {
		return journal.Reading{Name: "in_bytes", Value: v, Unit: "B", Counter: true}
	}
	lead.tell(t, -50, "radio", snr(1), in(1000))
	lead.tell(t, -1, "radio", snr(2), in(2000))
	lead.tell(t, 3, "radio", snr(3), in(6000))
	lead.add(t, 4, journal.TypeTelemetryFailed, journal.Telemetry{Source: "gps", Kind: telemetrysource.KindGPSD, Error: "nothing answers"})
	lead.tell(t, 12, "radio", snr(4), in(500)) // the radio was switched off and on
	lead.tell(t, 30, "radio", snr(5), in(900))
	far.tell(t, 6, "radio", snr(7))
	for _, b := range []*book{lead, far} {
		b.add(t, 100, journal.TypeClockOffset, journal.ClockOffset{When: "after", Unknown: "no control link"})
		_, err := ingest.New(ingest.Config{Store: st}).Deliver(t.Context(), run, string(b.role), b.records)
		require.NoError(t, err)
	}
	start := noon.Add(-lead.skew)
	got, err := telemetry.Series(t.Context(), st.Conn, telemetry.Attempt{Run: run, Start: start, End: start.Add(10 * time.Second)})
	require.NoError(t, err)
	require.Equal(t, []string{
		"client radio in_bytes B/s per second [-1 3] [1000 NaN]",
		"client radio snr dB [-1 3 12] [2 3 4]",
		"relay radio snr dB [6] [7]",
	}, words(got))

	// Of an attempt that goes on, all that has come.
	got, err = telemetry.Series(t.Context(), st.Conn, telemetry.Attempt{Run: run, Start: start, MaxPoints: 3})
	require.NoError(t, err)
	// Of what is shortened, the extremes stay.
	require.Equal(t, "client radio snr dB [-1 30] [2 5]", words(got)[1])
	require.Equal(t, "client radio in_bytes B/s per second [-1 30] [1000 22.22]", words(got)[0])
	got, err = telemetry.Series(t.Context(), st.Conn, telemetry.Attempt{Run: run, Start: start, MaxPoints: 4})
	require.NoError(t, err)
	require.Equal(t, "client radio snr dB [-1 3 12 30] [2 3 4 5]", words(got)[1])

	// Readings of long ago say nothing.
	got, err = telemetry.Series(t.Context(), st.Conn, telemetry.Attempt{Run: run, Start: start.Add(time.Hour), End: start.Add(2 * time.Hour)})
	require.NoError(t, err)
	require.Empty(t, got)
}

func words(all []*linktrialv1.TelemetrySeries) []string {
	var out []string
	for _, s := range all {
		line := fmt.Sprintf("%s %s %s %s", s.Node, s.Source, s.Name, s.Unit)
		if s.PerSecond {
			line += " per second"
		}
		for i := range s.At {
			s.At[i] = math.Round(s.At[i]*1e6) / 1e6
			s.Value[i] = math.Round(s.Value[i]*100) / 100
		}
		out = append(out, line+fmt.Sprint(" ", s.At, " ", s.Value))
	}
	return out
}

// A clock that drifts between its two measurements is corrected by the share of
// the time that has passed.
func TestDrift(t *testing.T) {
	st := storetest.Open(t)
	sheet := storetest.Sheet(1)
	run := storetest.AddRun(t, st, "drift", sheet)
	encoded, err := sheet.Encode()
	require.NoError(t, err)
	b := &book{run: run, role: radio.RoleServer}
	b.add(t, -100, journal.TypeRunStarted, journal.RunStarted{SheetHash: runsheet.Hash(encoded), Trials: 1})
	b.add(t, -100, journal.TypeClockOffset, journal.ClockOffset{When: "before", Offset: 0})
	b.tell(t, 0, "radio", journal.Reading{Name: "snr", Value: 1})
	b.add(t, 100, journal.TypeClockOffset, journal.ClockOffset{When: "after", Offset: 4 * time.Second})
	_, err = ingest.New(ingest.Config{Store: st}).Deliver(t.Context(), run, "server", b.records)
	require.NoError(t, err)
	got, err := telemetry.Series(t.Context(), st.Conn, telemetry.Attempt{Run: run, Start: noon, End: noon.Add(10 * time.Second)})
	require.NoError(t, err)
	require.Equal(t, []string{"server radio snr  [2] [1]"}, words(got))
}

func TestRefusedTelemetry(t *testing.T) {
	st := storetest.Open(t)
	sheet := storetest.Sheet(1)
	run := storetest.AddRun(t, st, "refused", sheet)
	encoded, err := sheet.Encode()
	require.NoError(t, err)
	for _, body := range []journal.Telemetry{
		{},
		{Source: "radio"},
		{Source: "radio", Error: "x"},
		{Source: "other", Error: "x", Values: []journal.Reading{{Name: "a"}}},
		{Source: "radio", Error: "x", Values: []journal.Reading{{Name: "a"}}},
		{Source: "radio", Values: []journal.Reading{{Name: "a"}, {Name: "a"}}},
		{Source: "radio", Values: []journal.Reading{{}}},
		{Source: "radio", Values: []journal.Reading{{Name: "a\x00"}, {Name: "a\uFFFD"}}}, // the same once they are stored
	} {
		b := &book{run: run, role: radio.RoleClient}
		b.add(t, 0, journal.TypeRunStarted, journal.RunStarted{SheetHash: runsheet.Hash(encoded), Trials: 1})
		typ := journal.TypeTelemetry
		if body.Error != "" && body.Source == "other" {
			typ = journal.TypeTelemetryFailed
		}
		b.add(t, 0, typ, body)
		st := storetest.Open(t)
		run := storetest.AddRun(t, st, "refused", sheet)
		_, err := ingest.New(ingest.Config{Store: st}).Deliver(t.Context(), run, "client", b.records)
		require.NoError(t, err)
		rows, err := rpcdb.New(st).Misbehaviours(t.Context(), run)
		require.NoError(t, err)
		require.Len(t, rows, 1, "%+v", body)
		require.Equal(t, int64(2), rows[0].Seq)
		require.Equal(t, string(ingest.TypeRefused), rows[0].Type)
	}
}
