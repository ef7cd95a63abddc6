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

	"linktrial/agents/agent"
	"linktrial/cmd/linktrial/setting"
	"linktrial/cmd/linktrial/terminal"
	"linktrial/executor/journal"
	"linktrial/internal/stats"
	"linktrial/internal/unit"
	"linktrial/orchestrator/report"
)

// runnerPlan has nothing random in it, so that every difference is due to the runner.
const runnerPlan = `name: bench-runner
radio: reference-link
topology: point-to-point
size: 256 KiB
treatments:
  - {name: tcp-cubic, label: TCP CUBIC, protocol: tcp, options: {congestion: cubic}}
  - {name: sctp, label: SCTP, protocol: sctp, options: {stack: userland}}
  - {name: udt, label: UDT, protocol: udt}
groups:
  - {name: bench, sweep: [{name: rate, set: rate, values: [2 Mbit/s]}, {name: delay, set: processing_delay, values: [20ms]}], iterations: 12}
iterations: 1
order: fixed
seed: 1
`

// ran holds the times of the trials of one treatment with one runner.
type ran struct {
	throughput    []float64 // KB/s, of those that succeeded
	connect, dead []float64 // ms
}

// benchRunner runs the same plan with drivers as processes and as containers.
func benchRunner(ctx context.Context, s *setting.Settings) error {
	fmt.Println("\nDrivers as processes (exec) and as containers (docker): 256 KiB at 2 Mbit/s, 20 ms, the same plan by each")
	byRunner := map[string]map[string]*ran{}
	order := []string{"tcp-cubic", "sctp", "udt"}
	for _, runner := range []string{agent.RunnerExec, agent.RunnerDocker} {
		ds, dir, remove, err := rehearsed(ctx, s, runnerPlan, "--runner", runner)
		if err != nil {
			return err
		}
		byRunner[runner], err = ranOf(ds, dir, order)
		remove()
		if err != nil {
			return err
		}
	}
	if note := busy(); note != "" {
		fmt.Println(note)
	}
	if err := terminal.Columns("TREATMENT\tEXEC KB/s\tSD\tN\tDOCKER KB/s\tSD\tN\tDIFFERENCE OF MEANS\t95 % CI", func(w io.Writer) {
		for _, name := range order {
			e, d := byRunner[agent.RunnerExec][name].throughput, byRunner[agent.RunnerDocker][name].throughput
			if len(e) == 0 || len(d) == 0 {
				fmt.Fprintf(w, "%s\tno valid trials: %d with exec, %d with docker\n", name, len(e), len(d))
				continue
			}
			mean := stats.Mean(e)
			fmt.Fprintf(w, "%s\t%.2f\t%.2f\t%d\t%.2f\t%.2f\t%d\t%+.2f %%\t%s\n", name, mean, stats.StdDev(e), len(e),
				stats.Mean(d), stats.StdDev(d), len(d), 100*(stats.Mean(d)/mean-1), percent(welch(e, d), mean))
		}
	}); err != nil {
		return err
	}
	fmt.Println()
	return terminal.Columns("TREATMENT\tRUNNER\tCONNECT, MEDIAN\tDEAD TIME BEFORE A TRIAL, MEDIAN\t95TH PERCENTILE\tMAXIMUM", func(w io.Writer) {
		for _, name := range order {
			for _, runner := range []string{agent.RunnerExec, agent.RunnerDocker} {
				r := byRunner[runner][name]
				if len(r.dead) == 0 || len(r.connect) == 0 {
					fmt.Fprintf(w, "%s\t%s\tnot measured\n", name, runner)
					continue
				}
				fmt.Fprintf(w, "%s\t%s\t%.1f ms\t%.1f ms\t%.1f ms\t%.1f ms\n", name, runner, stats.Median(r.connect),
					stats.Median(r.dead), stats.Percentile(r.dead, 95), slices.Max(r.dead))
			}
		}
	})
}

// ranOf reads a rehearsal's results, and the dead times from its journal.
func ranOf(ds *report.Dataset, dir string, treatments []string) (map[string]*ran, error) {
	of := map[string]*ran{}
	for _, name := range treatments {
		of[name] = &ran{}
	}
	for _, run := range ds.Runs {
		for _, t := range run.Trials {
			r := of[t.Treatment]
			if len(t.Attempts) == 0 {
				continue
			}
			if a := &t.Attempts[len(t.Attempts)-1]; a.Verdict == journal.Succeeded {
				r.throughput = append(r.throughput, a.ThroughputBytesPerSecond()/unit.KB)
				r.connect = append(r.connect, float64(a.Connect)/float64(time.Millisecond))
			}
		}
	}
	f, err := os.Open(filepath.Join(dir, "journal.jsonl"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	_, err = journal.Scan(f, func(r journal.Record, _ int64) error {
		if r.Type != journal.TypeAttemptEnded {
			return nil
		}
		var e journal.AttemptEnded
		if err := json.Unmarshal(r.Body, &e); err != nil {
			return err
		}
		if e.Dead > 0 { // none before the first
			of[e.Treatment].dead = append(of[e.Treatment].dead, float64(e.Dead)/float64(time.Millisecond))
		}
		return nil
	})
	return of, err
}
