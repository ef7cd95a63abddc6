package telemetry_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/internal/telemetrysource"
	"linktrial/orchestrator/ingest"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/store/storetest"
	"linktrial/orchestrator/telemetry"
)

// Each attempt has what was told during it, by one clock for all nodes.
func TestFill(t *testing.T) {
	st := storetest.Open(t)
	sheet := storetest.Sheet(1)
	run := storetest.AddRun(t, st, "fill", sheet)
	encoded, err := sheet.Encode()
	require.NoError(t, err)
	lead := &book{run: run, role: radio.RoleClient, skew: -90 * time.Second}
	far := &book{run: run, role: radio.RoleRelay, skew: 365 * 24 * time.Hour} // a year off
	for _, b := range []*book{lead, far} {
		b.add(t, -1000, journal.TypeRunStarted, journal.RunStarted{SheetHash: runsheet.Hash(encoded), Trials: 1})
		b.add(t, -1000, journal.TypeClockOffset, journal.ClockOffset{When: "before", Offset: b.skew, Error: time.Millisecond})
	}
	snr := func(v float64) journal.Reading { return journal.Reading{Name: "snr", Value: v, Unit: "dB"} }
	in := func(v float64) journal.Reading {
		return journal.Reading{Name: "in_bytes", Value: v, Unit: "B", Counter: true}
	}
	lead.tell(t, -900, "radio", snr(99), in(0)) // too long ago to say anything
	lead.tell(t, -2, "radio", snr(1), in(1000))
	lead.tell(t, 2, "radio", snr(2), in(5000)) // 1000 a second, for 2 of 10 seconds
	lead.tell(t, 6, "radio", snr(9), in(6000)) // 250 a second, for 4
	lead.tell(t, 12, "radio", snr(4), in(500)) // switched off and on: nothing is known
	lead.add(t, 13, journal.TypeTelemetryFailed, journal.Telemetry{Source: "gps", Kind: telemetrysource.KindGPSD, Error: "nothing\nanswers"})
	lead.tell(t, 30, "radio", snr(5), in(900))
	far.tell(t, 6, "radio", snr(7))
	for _, b := range []*book{lead, far} {
		_, err := ingest.New(ingest.Config{Store: st}).Deliver(t.Context(), run, string(b.role), b.records)
		require.NoError(t, err)
	}
	start := noon.Add(-lead.skew)
	at := func(from, seconds int) report.Attempt {
		return report.Attempt{Attempt: 1, Started: start.Add(time.Duration(from) * time.Second), Duration: time.Duration(seconds) * time.Second}
	}
	r := &report.Run{ID: run, Trials: []report.Trial{
		{Index: 0, Attempts: []report.Attempt{at(0, 10)}},
		{Index: 1, Attempts: []report.Attempt{at(15, 5)}},
		{Index: 2, Attempts: []report.Attempt{at(3000, 5)}},
		{Index: 3, Attempts: []report.Attempt{{Attempt: 1, Started: start.Add(3010 * time.Second)}}}, // it runs
	}}
	require.NoError(t, telemetry.Fill(t.Context(), st.Conn, r))
	told := func(trial int) (out []string) {
		for _, x := range r.Trials[trial].Attempts[0].Telemetry {
			out = append(out, fmt.Sprintf("%s %s %s %s: %d, %g %g %g", x.Node, x.Source, x.Metric, x.Unit, x.Readings, x.Minimum, x.Mean, x.Maximum))
		}
		return out
	}
	require.Equal(t, []string{
		"client radio in_bytes B/s: 2, 250 500 1000",
		"client radio snr dB: 2, 2 5.5 9",
		"relay radio snr dB: 1, 7 7 7",
	}, told(0))
	require.Equal(t, []string{
		"client radio in_bytes B/s: 0, 22.2222222 22.2222222 22.2222222",
		"client radio snr dB: 0, 4 4.5 5", // of the readings beside it
		"relay radio snr dB: 0, 7 7 7",
	}, told(1))
	require.Empty(t, told(2))
	require.Empty(t, told(3))

	var all []string
	require.NoError(t, telemetry.Readings(t.Context(), st.Conn, r, func(x *telemetry.Reading) error {
		line := fmt.Sprintf("%s %s %g %s %s", x.Node, x.Source, x.At.Sub(noon).Seconds(), x.Metric, x.Error)
		if x.Value != nil {
			line += fmt.Sprintf("=%g", *x.Value)
		}
		if x.Trial != nil {
			line += fmt.Sprintf(" in %d/%d after %s", x.Trial.Index, x.Attempt.Attempt, x.Since)
		}
		all = append(all, line)
		return nil
	}))
	require.Equal(t, []string{
		"client radio -900 in_bytes =0", "client radio -900 snr =99",
		"client radio -2 in_bytes =1000", "client radio -2 snr =1",
		"client radio 2 in_bytes =5000 in 0/1 after 2s", "client radio 2 snr =2 in 0/1 after 2s",
		"client radio 6 in_bytes =6000 in 0/1 after 6s", "client radio 6 snr =9 in 0/1 after 6s",
		"client radio 12 in_bytes =500", "client radio 12 snr =4",
		"client gps 13  nothing\nanswers",
		"client radio 30 in_bytes =900", "client radio 30 snr =5",
		"relay radio 6 snr =7 in 0/1 after 6s",
	}, all)
}
