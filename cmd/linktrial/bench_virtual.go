package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"text/tabwriter"

	"linktrial/internal/unit"
	"linktrial/lab/uml"
	"linktrial/orchestrator/plan"
	"linktrial/orchestrator/sheet"
)

// virtualPlan is five minutes of transfers over a relay at each rate.
const virtualPlan = `name: bench-virtual
radio: reference-link
topology: vip-lot
size: 1 MiB
treatments:
  - {name: tcp-cubic, label: TCP CUBIC, protocol: tcp, options: {congestion: cubic}}
groups:
  - {name: "16", sweep: [{name: rate, set: rate, values: [16 kbit/s]}], iterations: 1}
  - {name: "64", sweep: [{name: rate, set: rate, values: [64 kbit/s]}], iterations: 2}
  - {name: "256", sweep: [{name: rate, set: rate, values: [256 kbit/s]}], iterations: 8}
  - {name: "1000", sweep: [{name: rate, set: rate, values: [1 Mbit/s]}], iterations: 30}
  - {name: "2000", sweep: [{name: rate, set: rate, values: [2 Mbit/s]}], iterations: 60}
iterations: 1
order: fixed
seed: 1
limits: {connect: 1m, transfer: 2h, attempts: 1}
sample_interval: 1s
`

// benchVirtual times one guest at a time, so that guests do not compete.
func benchVirtual(ctx context.Context, s *settings) error {
	fmt.Println("\nVirtual time: TCP CUBIC over a relay, one guest")
	kernel, err := uml.CachedKernel("")
	if errors.Is(err, uml.ErrNoKernel) {
		fmt.Println("not measured:", err)
		return nil
	}
	if err != nil {
		return err
	}
	cat, err := loadCatalog(s)
	if err != nil {
		return err
	}
	p, err := plan.Parse("bench", []byte(virtualPlan), cat)
	if err != nil {
		return err
	}
	sheets, err := sheet.Compile(p)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "linktrial-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	cfg := uml.RunConfig{Kernel: kernel, Dir: filepath.Join(dir, "lab"), Drivers: s.drivers, Jobs: 1, Seed: p.Seed}
	if cfg.Executable, err = os.Executable(); err != nil {
		return err
	}
	for i, sh := range sheets {
		encoded, err := sh.Encode()
		if err != nil {
			return err
		}
		cfg.Sheets = append(cfg.Sheets, uml.Sheet{Run: fmt.Sprintf("bench-%d", i), Document: encoded, Network: sh.Network, Trials: len(sh.Trials)})
	}
	result, err := uml.Run(ctx, cfg)
	if err != nil {
		return err
	}
	return columns("RATE\tTRIALS\tVIRTUAL TIME\tWALL TIME\tTIMES AS FAST AS REAL\tSTART TO FIRST TRIAL", func(w *tabwriter.Writer) {
		for i, r := range result.Sheets {
			if r.Err != nil {
				fmt.Fprintf(w, "%s\t%v\n", sheets[i].Cell.Label, r.Err)
				continue
			}
			rate := sheets[i].Network.Links[0].RateBitsPerSecond
			fmt.Fprintf(w, "%s\t%d of %d\t%.0f s\t%.2f s\t%.0f\t%.2f s\n", unit.FormatRate(rate), r.Ended, r.Trials,
				r.Virtual.Seconds(), r.Wall.Seconds(), r.Virtual.Seconds()/r.Wall.Seconds(), r.ToBegin.Seconds())
		}
	})
}
