package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"linktrial/cmd/linktrial/setting"
	"linktrial/cmd/linktrial/terminal"
	"linktrial/executor/journal"
	"linktrial/internal/stats"
)

const deadTimePlan = `name: bench-dead-time
radio: reference-link
topology: point-to-point
size: 16 KiB
treatments:
  - {name: tcp-cubic, label: TCP CUBIC, protocol: tcp, options: {congestion: cubic}}
  - {name: sctp, label: SCTP, protocol: sctp}
iterations: 100
seed: 1
`

func benchDeadTime(ctx context.Context, s *setting.Settings) error {
	fmt.Println("\nTrials of 16 KiB on a perfect link of 100 Mbit/s")
	ds, dir, remove, err := rehearsed(ctx, s, deadTimePlan)
	if err != nil {
		return err
	}
	defer remove()
	f, err := os.Open(filepath.Join(dir, "journal.jsonl"))
	if err != nil {
		return err
	}
	defer f.Close()
	dead := map[string][]time.Duration{}
	whole := map[string][]time.Duration{}
	if _, err := journal.Scan(f, func(r journal.Record, _ int64) error {
		if r.Type != journal.TypeAttemptEnded {
			return nil
		}
		var e journal.AttemptEnded
		if err := json.Unmarshal(r.Body, &e); err != nil {
			return err
		}
		if e.Dead > 0 {
			dead[e.Treatment] = append(dead[e.Treatment], e.Dead)
		}
		whole[e.Treatment] = append(whole[e.Treatment], e.Duration)
		return nil
	}); err != nil {
		return err
	}
	trials := ds.Runs[0].Trials
	first, last := trials[0].Attempts[0].Started, trials[len(trials)-1].Attempts[0].Started
	fmt.Printf("%.0f trials a minute\n", float64(len(trials)-1)/last.Sub(first).Minutes())
	return terminal.Columns("TREATMENT\tTRIAL, MEDIAN\tDEAD TIME BEFORE IT, MEDIAN\t95TH PERCENTILE\tMAXIMUM", func(w io.Writer) {
		for _, name := range []string{"tcp-cubic", "sctp"} {
			d := milliseconds(dead[name])
			if len(d) == 0 {
				continue
			}
			fmt.Fprintf(w, "%s\t%.1f ms\t%.1f ms\t%.1f ms\t%.1f ms\n", name, stats.Median(milliseconds(whole[name])), stats.Median(d), stats.Percentile(d, 95), slices.Max(d))
		}
	})
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func milliseconds(ds []time.Duration) []float64 {
	out := make([]float64, len(ds))
	for i, d := range ds {
		out[i] = ms(d)
	}
	return out
}
