package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"linktrial/cmd/linktrial/lab"
	"linktrial/cmd/linktrial/setting"
	"linktrial/cmd/linktrial/terminal"
	"linktrial/internal/radio"
	"linktrial/internal/stats"
	"linktrial/internal/vitals"
	"linktrial/lab/uml"
	"linktrial/lab/uml/guest"
)

// The virtual month of the section month, and how many trials it has.
var (
	monthDuration = 30 * 24 * time.Hour
	monthTrials   = 2880
)

// monthPlan is one run of trials with long pauses between them: its agents, listeners,
// watchers and journals live as long as the run does.
const monthPlan = `name: bench-month
radio: reference-link
topology: vip-lot
size: 32 KiB
treatments:
  - {name: tcp, protocol: tcp, options: {congestion: cubic}}
  - {name: quic, protocol: quic}
  - {name: udt, protocol: udt}
  - {name: haul, protocol: haul}
iterations: %d
order: random
seed: 1
limits: {pause: %s}
`

// monthLooks is how often the processes are looked at.
const monthLooks = 240

// benchMonth executes one run of a month in virtual time and looks at the guest's
// processes again and again: what they use must not grow with time.
func benchMonth(ctx context.Context, s *setting.Settings) error {
	pause := (monthDuration / time.Duration(max(1, monthTrials))).Round(time.Second)
	fmt.Printf("\nA virtual month: one run of %d trials of 32 KiB over a relay with pauses of %s\n", monthTrials, pause)
	b, remove, err := newVirtualBench(s)
	if errors.Is(err, uml.ErrNoKernel) {
		fmt.Println("not measured:", err)
		return nil
	}
	if err != nil {
		return err
	}
	defer remove()
	progress := lab.NewVirtualProgress(os.Stderr)
	r, err := b.plan(ctx, "month", fmt.Appendf(nil, monthPlan, monthTrials/4, pause), uml.RunConfig{
		Vitals: monthDuration / monthLooks, Progress: progress.Show,
	})
	if err != nil {
		return err
	}
	if r.Err != nil {
		return fmt.Errorf("bench of the virtual month: %w", r.Err)
	}
	looks, err := readLooks(r.Vitals)
	if err != nil {
		return err
	}
	if len(looks) < 4 {
		return fmt.Errorf("the virtual month was looked at %d times, at least 4 are needed", len(looks))
	}
	var journals float64
	for _, role := range slices.Sorted(maps.Keys(r.Journals)) {
		info, err := os.Stat(r.Journals[role])
		if err != nil {
			return err
		}
		journals += mebibytes(info.Size())
	}
	disk, err := diskUsed(filepath.Dir(r.Vitals))
	if err != nil {
		return err
	}
	fmt.Printf("%d of %d trials in %.1f days of virtual time, %s of wall time; medians of the second quarter of the time → of the last one\n",
		r.Ended, r.Trials, r.Virtual.Hours()/24, r.Wall.Round(time.Second))
	n := len(looks)
	early, late := looks[n/4:n/2], looks[n-n/4:]
	return terminal.Columns(useColumns, func(w io.Writer) {
		for _, part := range []string{guest.Emulator, string(radio.RoleClient), string(radio.RoleRelay), string(radio.RoleServer)} {
			fmt.Fprintf(w, "%s\t%s\n", part, grown(usesOf(early, part), usesOf(late, part)))
		}
		memory := func(looks []guest.Look) float64 {
			var xs []float64
			for _, l := range looks {
				xs = append(xs, mebibytes(l.MemoryBytes))
			}
			return stats.Median(xs)
		}
		fmt.Fprintf(w, "whole guest\t%.1f → %.1f\n", memory(early), memory(late))
		fmt.Fprintf(w, "disk\t%.1f MiB, of which journals %.1f MiB: %.1f KiB for each trial\n", disk, journals, 1024*disk/float64(max(1, r.Ended)))
	})
}

func usesOf(looks []guest.Look, part string) (list []vitals.Use) {
	for _, l := range looks {
		if u, ok := l.Processes[part]; ok {
			list = append(list, u)
		}
	}
	return list
}

// readLooks reads what a guest noted of its processes.
func readLooks(path string) (looks []guest.Look, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var l guest.Look
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", path, len(looks)+1, err)
		}
		looks = append(looks, l)
	}
	return looks, lines.Err()
}
