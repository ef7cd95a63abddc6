package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"linktrial/cmd/linktrial/lab"
	"linktrial/cmd/linktrial/setting"
	"linktrial/cmd/linktrial/terminal"
	"linktrial/emulator/bench"
	"linktrial/executor/journal"
	"linktrial/internal/unit"
	"linktrial/lab/netns"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/stats"
)

// benchSections are the parts of the bench, in the order in which they run.
var benchSections = []struct {
	name string
	run  func(context.Context, *setting.Settings) error
}{
	{"emulator", func(ctx context.Context, _ *setting.Settings) error {
		fmt.Println("The emulated radio")
		return bench.Run(ctx, os.Stdout)
	}},
	{"reported", benchReported},
	{"dead-time", benchDeadTime},
	{"runner", benchRunner},
	{"virtual", benchVirtual},
	{"agreement", benchAgreement},
	{"variants", benchVariants},
	{"results", benchResults},
	{"agents", benchAgents},
	{"tls", benchTLS},
	{"hostile", benchHostile},
	{"large", benchLarge},
	{"soak", benchSoak},
	{"month", benchMonth},
}

func newBench(s *setting.Settings) *cobra.Command {
	var names []string
	for _, b := range benchSections {
		names = append(names, b.name)
	}
	cmd := &cobra.Command{
		Use:     "bench [SECTION...]",
		GroupID: setting.GroupLab,
		Short:   "Measure Linktrial itself: emulated radio, drivers, virtual time, results, agents, TLS, attacks, size, length",
		Example: `  linktrial bench
  linktrial bench emulator dead-time
  linktrial bench agents --agents 1000`,
		Long: `Bench measures, with real packets through real network namespaces:
  emulator   the emulated radio's error of rate and delay, and its highest throughput;
  reported   the reported throughput against that of the packet log;
  dead-time  the trials a minute on a perfect fast link, and the dead time between them;
  runner     drivers as processes and as containers: throughput, dead time, connect time;
  virtual    how much faster than real time the virtual-time lab is, and where its time goes;
  agreement  the throughput in real and in virtual time, for each transport protocol;
  variants   TCP-radio and newRTO as eBPF in real time, against those of the guest kernel;
  results    response times of the results pages with 10 000 trials and 5 million samples;
  agents     the cost of many idle agents for their orchestrator, and how soon a run reaches its nodes;
  tls        the cost of TLS in the delivery of a batch of samples;
  hostile    the orchestrator's memory under hostile connections, while trials run;
  large      time and memory of what is done with a campaign of 100 000 trials;
  soak       what the processes of a lab use while short trials run for a long time;
  month      what those of a guest use in a run of a month of virtual time.
Virtual, agreement, variants and month need the guest kernel (linktrial lab kernel). All
sections take about an hour, variants a quarter of it. Sections that measure size and
length have their last figures in docs/size.md.`,
		ValidArgs: names,
		Args:      cobra.OnlyValidArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := netns.Possible(); err != nil {
				return err
			}
			for _, b := range benchSections {
				if len(args) > 0 && !slices.Contains(args, b.name) {
					continue
				}
				if err := b.run(cmd.Context(), s); err != nil {
					return err
				}
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.IntVar(&idleAgents, "agents", idleAgents, "number of idle agents in the section agents")
	f.IntVar(&hostileConnections, "hostile", hostileConnections, "number of connections in the section hostile")
	f.DurationVar(&hostileDuration, "hostile-duration", hostileDuration, "length of the section hostile")
	f.IntVar(&largeRuns, "runs", largeRuns, "runs of 400 trials in the section large")
	f.IntVar(&largeSamples, "samples", largeSamples, "samples of each trial in the section large")
	f.BoolVar(&largeKeep, "keep", false, "in the section large: only store the campaign in the data folder (--data), where no orchestrator may run, and keep it")
	f.DurationVar(&soakDuration, "soak", soakDuration, "length of the section soak")
	f.DurationVar(&monthDuration, "month", monthDuration, "virtual time of the section month")
	f.IntVar(&monthTrials, "month-trials", monthTrials, "number of trials in the section month")
	f.DurationVar(&soakInterval, "soak-interval", soakInterval, "time between two looks of the section soak")
	return cmd
}

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

// rehearsed runs a plan on its own data folder and returns the results, the leading
// agent's folder of the run, and a function that removes everything.
func rehearsed(ctx context.Context, s *setting.Settings, plan string, flags ...string) (ds *report.Dataset, runDir string, remove func(), err error) {
	dir, clean, err := folder("rehearsal")
	if err != nil {
		return nil, "", nil, err
	}
	defer func() {
		if err != nil {
			clean()
		}
	}()
	file := filepath.Join(dir, "plan.yaml")
	if err := os.WriteFile(file, []byte(plan), 0o644); err != nil {
		return nil, "", nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, "", nil, err
	}
	cmd := exec.CommandContext(ctx, self, append([]string{"rehearse", file, "--out", filepath.Join(dir, "out"), "--data", dir, "--drivers", s.Drivers,
		"--orchestrator", "http://127.0.0.1:9"}, flags...)...) // nobody listens there, so that it starts its own
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	if b, err := cmd.CombinedOutput(); err != nil {
		return nil, "", nil, fmt.Errorf("rehearsal for the bench: %w\n%s", err, b)
	}
	b, err := os.ReadFile(filepath.Join(dir, "out", "results.json"))
	if err != nil {
		return nil, "", nil, err
	}
	if ds, err = report.ReadJSON(b); err != nil {
		return nil, "", nil, err
	}
	return ds, filepath.Join(dir, lab.RehearsalAgents, "client", "runs", ds.Runs[0].ID), clean, nil
}

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
