package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"linktrial/cmd/linktrial/setting"
	"linktrial/cmd/linktrial/terminal"
	"linktrial/executor/journal"
	"linktrial/internal/unit"
)

const reportedPlan = `name: bench-reported
radio: prc-117g-anw2c
topology: vip-lot
size: 512 KiB
treatments:
  - {name: tcp-cubic, label: TCP CUBIC, protocol: tcp, options: {congestion: cubic}}
  - {name: tcp-reno, label: TCP Reno, protocol: tcp, options: {congestion: reno}}
iterations: 3
seed: 1
capture: true
`

func benchReported(ctx context.Context, s *setting.Settings) error {
	fmt.Println("\nReported throughput against the packet log's (first data packet on the air to the last acknowledgement byte)")
	ds, dir, remove, err := rehearsed(ctx, s, reportedPlan)
	if err != nil {
		return err
	}
	defer remove()
	return terminal.Columns("TREATMENT\tITERATION\tREPORTED KB/s\tPACKET LOG KB/s\tDIFFERENCE", func(w io.Writer) {
		for _, t := range ds.Runs[0].Trials {
			a := &t.Attempts[len(t.Attempts)-1]
			if a.Verdict != journal.Succeeded {
				fmt.Fprintf(w, "%s\t%d\t%s\t\t\n", t.Treatment, t.Iteration, a.Verdict)
				continue
			}
			seen, err := capturedTransfer(filepath.Join(dir, fmt.Sprintf("trial-%04d-%d.pcapng", t.Index, a.Attempt)), ds.Runs[0].Sheet.Network)
			if err != nil {
				fmt.Fprintf(w, "%s\t%d\t%v\t\t\n", t.Treatment, t.Iteration, err)
				continue
			}
			reported := a.ThroughputBytesPerSecond() / unit.KB
			logged := float64(a.SizeBytes) / seen.Seconds() / unit.KB
			fmt.Fprintf(w, "%s\t%d\t%.2f\t%.2f\t%+.2f %%\n", t.Treatment, t.Iteration, reported, logged, 100*(reported/logged-1))
		}
	})
}
