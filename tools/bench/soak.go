package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"connectrpc.com/connect"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/setting"
	"linktrial/cmd/linktrial/terminal"
	"linktrial/internal/backoff"
	"linktrial/internal/stats"
	"linktrial/internal/unit"
	"linktrial/internal/vitals"
)

// How long the soak is, and how often it looks.
var (
	soakDuration = 10 * time.Minute
	soakInterval = time.Minute
)

// soakPlan is many short runs of many short trials, of which each ends: what a run
// takes is to be given back after it. The values of the sweep are the numbers of runs.
const soakPlan = `name: bench-soak
radio: reference-link
topology: vip-lot
size: 32 KiB
treatments:
  - {name: tcp, protocol: tcp, options: {congestion: cubic}}
  - {name: quic, protocol: quic}
  - {name: udt, protocol: udt}
  - {name: haul, protocol: haul}
sweep: [{name: run, set: processing_delay, values: [%s]}]
iterations: 5
order: random
seed: 1
limits: {pause: 1s}
`

// A run of the soak has 20 trials of more than a second, and a plan at most 1000 runs.
const (
	soakRunLeast = 20 * time.Second
	soakRunsMost = 1000
)

// soakRuns is how many runs a soak needs at most.
func soakRuns(d time.Duration) (int, error) {
	runs := int(d/soakRunLeast) + 1
	if runs > soakRunsMost {
		return 0, fmt.Errorf("--soak: %s, expected at most %s, which is what one plan holds", d, (soakRunsMost-1)*soakRunLeast)
	}
	return runs, nil
}

// benchSoak rehearses short trials in real time and looks at the processes again
// and again: what they use must not grow with the number of trials.
func benchSoak(ctx context.Context, s *setting.Settings) error {
	runs, err := soakRuns(soakDuration)
	if err != nil {
		return err
	}
	dir, remove, err := folder("soak")
	if err != nil {
		return err
	}
	defer remove()
	b := &soak{dir: dir, runs: runs}
	if err := b.start(s); err != nil {
		return err
	}
	defer b.stop()
	if err := b.up(ctx); err != nil {
		return err
	}
	b.began = time.Now()
	fmt.Printf("\nSoak: trials of 32 KiB over a relay with a pause of 1 s, for %s, looked at every %s from %s on\n", soakDuration, soakInterval, unit.Moment(b.began))
	tick := time.NewTicker(soakInterval)
	defer tick.Stop()
	end := time.After(soakDuration)
	for {
		select {
		case <-tick.C:
			if err := b.look(ctx); err != nil {
				return err
			}
		case <-end:
			return b.print()
		case err := <-b.ended:
			return errors.Join(fmt.Errorf("the rehearsal of the soak has ended: %w", cmp.Or(err, errors.New("its plan is too short"))), b.print())
		case <-ctx.Done():
			return errors.Join(ctx.Err(), b.print())
		}
	}
}

// soak is one soak and what it has seen.
type soak struct {
	runs  int // of the plan
	dir   string
	began time.Time
	cmd   *exec.Cmd
	ended chan error
	looks []soakLook
}

// soakLook is all processes at one moment.
type soakLook struct {
	after  time.Duration
	trials int
	disk   float64 // MiB below the data folder
	of     map[string]soakProcess
}

// soakProcess is what a process uses now; of the database, all of its processes.
type soakProcess struct {
	vitals.Use
	pid int
}

// soakParts are the processes, in the order of the table.
var soakParts = []string{"orchestrator", "database", "emulator", "client", "relay", "server"}

func (b *soak) start(s *setting.Settings) error {
	values := make([]string, b.runs)
	for i := range values {
		values[i] = strconv.Itoa(i+1) + "us"
	}
	plan := filepath.Join(b.dir, "plan.yaml")
	if err := os.WriteFile(plan, fmt.Appendf(nil, soakPlan, strings.Join(values, ", ")), 0o644); err != nil {
		return err
	}
	sockets := filepath.Join(b.dir, "vitals")
	if err := os.MkdirAll(sockets, 0o700); err != nil {
		return err
	}
	out, err := os.Create(filepath.Join(b.dir, "rehearse.log"))
	if err != nil {
		return err
	}
	defer out.Close()
	b.cmd = exec.Command(s.Program, "rehearse", plan, "--out", filepath.Join(b.dir, "out"), "--data", filepath.Join(b.dir, "data"), "--drivers", s.Drivers,
		"--orchestrator", "http://127.0.0.1:9") // nobody listens there, so that it starts its own
	b.cmd.Env = append(os.Environ(), vitals.FolderVariable+"="+sockets)
	b.cmd.Stdout, b.cmd.Stderr = out, out
	if err := b.cmd.Start(); err != nil {
		return err
	}
	b.ended = make(chan error, 1)
	go func() { b.ended <- b.cmd.Wait() }()
	return nil
}

// up blocks until trials begin, for five minutes at most.
func (b *soak) up(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	for {
		log, err := os.ReadFile(filepath.Join(b.dir, "rehearse.log"))
		if err != nil {
			return err
		}
		select {
		case err := <-b.ended:
			return fmt.Errorf("the rehearsal of the soak does not start: %w\n%s", cmp.Or(err, errors.New("it has ended")), log)
		default:
		}
		if strings.Contains(string(log), ": running") {
			return nil
		}
		if !backoff.Sleep(ctx, time.Second) {
			return fmt.Errorf("no run of the soak runs: %w\n%s", ctx.Err(), log)
		}
	}
}

// stop ends the rehearsal, which removes its lab.
func (b *soak) stop() {
	if b.cmd.ProcessState != nil || b.cmd.Process.Signal(os.Interrupt) != nil {
		return
	}
	select {
	case err := <-b.ended:
		// It is interrupted, and says so with its exit code.
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			fmt.Fprintln(os.Stderr, "error:", err)
		}
	case <-time.After(time.Minute):
		fmt.Fprintln(os.Stderr, "error: the rehearsal of the soak does not end; it may have left a lab behind: linktrial lab down")
		_ = b.cmd.Process.Kill()
	}
}

// look notes what the processes use now, and prints a line of it.
func (b *soak) look(ctx context.Context) error {
	l := soakLook{after: time.Since(b.began), of: map[string]soakProcess{}}
	for _, pid := range below(b.cmd.Process.Pid) {
		part := soakPart(pid)
		if part == "" {
			continue // a driver, or another process that ends with its trial
		}
		folder := filepath.Join(b.dir, "vitals")
		if part == "database" {
			folder = "" // PostgreSQL does not answer
		}
		use, err := vitals.UseOf(folder, pid)
		if err != nil {
			return err
		}
		l.of[part] = soakProcess{Use: l.of[part].Add(use), pid: pid}
	}
	for _, part := range soakParts {
		if _, ok := l.of[part]; !ok {
			log, _ := os.ReadFile(filepath.Join(b.dir, "rehearse.log"))
			return fmt.Errorf("the soak does not find its %s\n%s", part, log)
		}
	}
	var err error
	if l.disk, err = diskUsed(filepath.Join(b.dir, "data")); err != nil {
		return err
	}
	if l.trials, err = b.trials(ctx, l.of["orchestrator"].pid); err != nil {
		return err
	}
	b.looks = append(b.looks, l)
	fmt.Printf("%s: %d trials, orchestrator %.1f MiB of heap and %d goroutines, %.0f MiB on disk\n", l.after.Round(time.Second), l.trials,
		mebibytes(l.of["orchestrator"].HeapBytes), l.of["orchestrator"].Goroutines, l.disk)
	return nil
}

// trials asks the orchestrator how many trials have ended.
func (b *soak) trials(ctx context.Context, orchestrator int) (n int, err error) {
	args := argumentsOf(orchestrator)
	i := slices.Index(args, "--listen")
	if i < 0 || i+1 == len(args) {
		return 0, errors.New("the soak does not find its orchestrator's address")
	}
	base := "http://" + args[i+1]
	res, err := linktrialv1connect.NewResultServiceClient(client.HTTP(), base).ListCampaigns(ctx, connect.NewRequest(&linktrialv1.ListCampaignsRequest{}))
	if err != nil {
		return 0, client.Error(base, err)
	}
	for _, c := range res.Msg.Campaigns {
		n += int(c.TrialsEnded)
	}
	return n, nil
}

// soakPart is which part of a rehearsal a process is, by its arguments.
func soakPart(pid int) string {
	args := argumentsOf(pid)
	if strings.Contains(args[0], "postgres") {
		return "database"
	}
	switch {
	case len(args) < 2:
		return ""
	case args[1] == "serve":
		return "orchestrator"
	case slices.Contains(args, "emulate") || slices.Contains(args, "emulator") || slices.Contains(args, "hold"):
		return "emulator"
	case args[1] == "agent":
		if i := slices.Index(args, "--name"); i > 0 && i+1 < len(args) {
			return args[i+1]
		}
	}
	return ""
}

// argumentsOf returns the arguments of a process, its program first.
func argumentsOf(pid int) []string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return []string{""} // it has gone
	}
	return strings.Split(string(b), "\x00")
}

// diskUsed is the blocks of all files below a folder, in MiB.
func diskUsed(dir string) (float64, error) {
	var blocks int64
	err := filepath.WalkDir(dir, func(_ string, e os.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) {
			return nil // it was removed meanwhile
		}
		if err != nil {
			return err
		}
		if info, err := e.Info(); err == nil {
			if st, ok := info.Sys().(*syscall.Stat_t); ok {
				blocks += st.Blocks
			}
		}
		return nil
	})
	return float64(blocks) * 512 / (1 << 20), err
}

// print prints, for each process, the medians of the second and of the last quarter of
// the soak: the first one fills caches.
func (b *soak) print() error {
	n := len(b.looks)
	if n < 4 {
		return fmt.Errorf("the soak has looked %d times, at least 4 are needed: --soak takes a longer time", n)
	}
	early, late := b.looks[n/4:n/2], b.looks[n-n/4:]
	last := b.looks[n-1]
	fmt.Printf("%d trials in %s; medians of the second quarter of the time → of the last one\n", last.trials, last.after.Round(time.Second))
	uses := func(looks []soakLook, part string) (list []vitals.Use) {
		for _, l := range looks {
			list = append(list, l.of[part].Use)
		}
		return list
	}
	return terminal.Columns(useColumns, func(w io.Writer) {
		for _, part := range soakParts {
			fmt.Fprintf(w, "%s\t%s\n", part, grown(uses(early, part), uses(late, part)))
		}
		first := early[0]
		fmt.Fprintf(w, "disk\t%.0f → %.0f MiB: %.1f KiB for each of %d trials\n", first.disk, last.disk, 1024*(last.disk-first.disk)/float64(max(1, last.trials-first.trials)), last.trials-first.trials)
	})
}

// useColumns are the columns of what [grown] prints of a process.
const useColumns = "PROCESS\tMEMORY MiB\tHEAP MiB\tGOROUTINES\tTHREADS\tOPEN FILES"

// grown prints the medians of what a process used, early and late.
func grown(early, late []vitals.Use) string {
	cell := func(format string, of func(vitals.Use) float64) string {
		median := func(uses []vitals.Use) float64 {
			var xs []float64
			for _, u := range uses {
				xs = append(xs, of(u))
			}
			return stats.Median(xs)
		}
		return fmt.Sprintf(format+" → "+format, median(early), median(late))
	}
	return strings.Join([]string{
		cell("%.1f", func(u vitals.Use) float64 { return mebibytes(u.MemoryBytes) }),
		cell("%.1f", func(u vitals.Use) float64 { return mebibytes(u.HeapBytes) }),
		cell("%.0f", func(u vitals.Use) float64 { return float64(u.Goroutines) }),
		cell("%.0f", func(u vitals.Use) float64 { return float64(u.Threads) }),
		cell("%.0f", func(u vitals.Use) float64 { return float64(u.Files) }),
	}, "\t")
}

// mebibytes is an amount of memory in MiB.
func mebibytes[N int64 | uint64](bytes N) float64 { return float64(bytes) / (1 << 20) }
