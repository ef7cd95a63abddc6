package ingest_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"linktrial/internal/radio"
	"linktrial/orchestrator/ingest"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/storetest"
)

// BenchmarkDeliver stores the 10 000 records of 1764 trials, one in six of them
// a batch of ten samples, in deliveries of 200. It says what processor time that takes, here
// and in the database.
func BenchmarkDeliver(b *testing.B) {
	sheet := storetest.Sheet(1764)
	url := storetest.URL(b)
	s, err := store.Open(b.Context(), url, nil)
	require.NoError(b, err)
	b.Cleanup(s.Close)
	in := ingest.New(ingest.Config{Store: s})
	records, samples := 0, 0
	var used time.Duration
	for i := range b.N {
		b.StopTimer()
		run := storetest.AddRun(b, s, fmt.Sprintf("bench%d", i), sheet)
		j := storetest.Lead(run, sheet, 10)
		used -= processorTime(b, "self") + backendsTime(b, url)
		b.StartTimer()
		for first := 1; first <= len(j.Records); first += 200 {
			if _, err := in.Deliver(b.Context(), run, "client", batch(j, first, min(len(j.Records), first+199))); err != nil {
				b.Fatal(err)
			}
		}
		b.StopTimer()
		used += processorTime(b, "self") + backendsTime(b, url)
		b.StartTimer()
		records += len(j.Records)
		samples += 10 * len(sheet.Trials)
	}
	b.ReportMetric(float64(records)/b.Elapsed().Seconds(), "records/s")
	b.ReportMetric(float64(samples)/b.Elapsed().Seconds(), "samples/s")
	b.ReportMetric(float64(used.Microseconds())/float64(records), "cpu-µs/record")
}

// BenchmarkSamples stores batches of ten samples and little else, as one long transfer does.
func BenchmarkSamples(b *testing.B) {
	sheet := storetest.Sheet(1)
	s := storetest.Open(b)
	in := ingest.New(ingest.Config{Store: s})
	samples := 0
	for i := range b.N {
		b.StopTimer()
		run := storetest.AddRun(b, s, fmt.Sprintf("bench%d", i), sheet)
		j := storetest.NewJournal(run, radio.RoleClient)
		j.Begin(sheet)
		j.Start(sheet, 0, 1)
		for range 1000 {
			j.Samples(0, 1, 10)
		}
		samples += 10_000
		b.StartTimer()
		for first := 1; first <= len(j.Records); first += 200 {
			if _, err := in.Deliver(b.Context(), run, "client", batch(j, first, min(len(j.Records), first+199))); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(samples)/b.Elapsed().Seconds(), "samples/s")
}

// BenchmarkBatches stores deliveries of some records of ten samples each: one,
// as a node tells every second of a transfer, and more, as it catches up. It
// says what processor time that takes here and in the database.
func BenchmarkBatches(b *testing.B) {
	for _, records := range []int{1, 10, 200} {
		b.Run(fmt.Sprintf("records=%d", records), func(b *testing.B) {
			sheet := storetest.Sheet(1)
			url := storetest.URL(b)
			s, err := store.Open(b.Context(), url, nil)
			require.NoError(b, err)
			b.Cleanup(s.Close)
			in := ingest.New(ingest.Config{Store: s})
			run := storetest.AddRun(b, s, "bench", sheet)
			j := storetest.NewJournal(run, radio.RoleClient)
			j.Begin(sheet)
			j.Start(sheet, 0, 1)
			next := len(j.Records) + 1
			for range b.N * records {
				j.Samples(0, 1, 10)
			}
			_, err = in.Deliver(b.Context(), run, "client", batch(j, 1, next-1))
			require.NoError(b, err)
			b.ResetTimer()
			here, there := processorTime(b, "self"), backendsTime(b, url)
			for range b.N {
				if _, err := in.Deliver(b.Context(), run, "client", batch(j, next, next+records-1)); err != nil {
					b.Fatal(err)
				}
				next += records
			}
			b.ReportMetric(float64((processorTime(b, "self")-here).Microseconds())/float64(b.N), "cpu-µs/op")
			b.ReportMetric(float64((backendsTime(b, url)-there).Microseconds())/float64(b.N), "postgres-µs/op")
		})
	}
}

// processorTime is what a process has used so far (proc_pid_stat(5)).
func processorTime(b *testing.B, pid string) time.Duration {
	raw, err := os.ReadFile("/proc/" + pid + "/stat")
	require.NoError(b, err)
	fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
	user, err := strconv.Atoi(fields[11])
	require.NoError(b, err)
	system, err := strconv.Atoi(fields[12])
	require.NoError(b, err)
	return time.Duration(user+system) * time.Second / 100 // USER_HZ
}

func backendsTime(b *testing.B, url string) (sum time.Duration) {
	conn, err := pgx.Connect(b.Context(), url)
	require.NoError(b, err)
	defer conn.Close(context.WithoutCancel(b.Context()))
	rows, err := conn.Query(b.Context(), "SELECT pid::text FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
	require.NoError(b, err)
	pids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(b, err)
	for _, p := range pids {
		sum += processorTime(b, p)
	}
	return sum
}
