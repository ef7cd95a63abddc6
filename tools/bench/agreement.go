package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"

	"linktrial/cmd/linktrial/setting"
	"linktrial/cmd/linktrial/terminal"
	"linktrial/executor/journal"
	"linktrial/internal/stats"
	"linktrial/internal/unit"
	"linktrial/lab/uml"
	"linktrial/orchestrator/report"
)

// agreementPlan has the same transfer with every transport protocol over a relay.
// SCTP runs on usrsctp in both labs: the machine's kernel may have no SCTP, and
// another stack would be another treatment.
const agreementPlan = `name: bench-agreement
radio: %s
topology: vip-lot
size: 512 KiB
treatments:
  - {name: tcp-cubic, label: TCP CUBIC, protocol: tcp, options: {congestion: cubic}}
  - {name: tcp-bbr, label: TCP BBR, protocol: tcp, options: {congestion: bbr}}
  - {name: sctp, label: SCTP, protocol: sctp, options: {stack: userland}}
  - {name: udt, label: UDT, protocol: udt}
groups:
  - {name: bench, sweep: [%s], iterations: %d}
iterations: 1
order: fixed
seed: 1
limits: {connect: 1m, transfer: 10m, attempts: 1}
`

const (
	agreementRate  = `{name: rate, set: rate, values: [1 Mbit/s]}, {name: delay, set: processing_delay, values: [20ms]}`
	agreementLimit = 3.0 // percent, of the means, where nothing is random
	agreementLevel = 0.95
)

var agreements = []struct {
	title, plan string
	held        bool // to the limit
}{
	{"no losses", fmt.Sprintf(agreementPlan, "reference-link", agreementRate, 3), true},
	{"1 % of the packets lost, the same ones in both labs while both send alike", fmt.Sprintf(agreementPlan, "lttcp-uniform", agreementRate+`, {name: loss, set: channel.loss, values: [0.01]}`, 8), false},
}

// errDisagree reports that real and virtual time differ by more than the limit.
var errDisagree = errors.New("real and virtual time do not agree; the table says where")

// bothLabs reports whether a section can compare real with virtual time. It prints why
// not where there is no guest kernel, and otherwise whether the machine is busy.
func bothLabs() (ready bool, err error) {
	if _, err := uml.CachedKernel(""); errors.Is(err, uml.ErrNoKernel) {
		fmt.Println("not measured:", err)
		return false, nil
	} else if err != nil {
		return false, err
	}
	if note := busy(); note != "" {
		fmt.Println(note)
	}
	return true, nil
}

// benchAgreement runs the same plans in real and in virtual time.
func benchAgreement(ctx context.Context, s *setting.Settings) error {
	fmt.Println("\nReal and virtual time: 512 KiB over a relay at 1 Mbit/s, 20 ms a hop, mean throughput")
	if ready, err := bothLabs(); !ready {
		return err
	}
	missed := false
	for _, a := range agreements {
		fmt.Printf("\nWith %s\n", a.title)
		inReal, err := throughputs(ctx, s, a.plan)
		if err != nil {
			return err
		}
		inVirtual, err := throughputs(ctx, s, a.plan, "--virtual")
		if err != nil {
			return err
		}
		if err := terminal.Columns("TREATMENT\tREAL KB/s\t95 % CI\tVALID\tVIRTUAL KB/s\t95 % CI\tVALID\tDIFFERENCE OF MEANS\t95 % CI", func(w io.Writer) {
			for _, name := range inReal.order {
				r, v := inReal.of[name], inVirtual.of[name]
				if len(r) == 0 || len(v) == 0 {
					fmt.Fprintf(w, "%s\tno valid trials: %d in real time, %d in virtual\n", name, len(r), len(v))
					missed = true
					continue
				}
				difference := 100 * (stats.Mean(v)/stats.Mean(r) - 1)
				between := welch(r, v)
				verdict := ""
				if a.held {
					var over bool
					if verdict, over = held(difference, 100*between.Low/stats.Mean(r), 100*between.High/stats.Mean(r)); over {
						missed = true
					}
				}
				fmt.Fprintf(w, "%s\t%.2f\t%s\t%d\t%.2f\t%s\t%d\t%+.2f %%\t%s%s\n", name, stats.Mean(r), interval(stats.MeanInterval(r, agreementLevel)), len(r),
					stats.Mean(v), interval(stats.MeanInterval(v, agreementLevel)), len(v), difference, percent(between, stats.Mean(r)), verdict)
			}
		}); err != nil {
			return err
		}
	}
	if missed {
		return errDisagree
	}
	return nil
}

// busy returns a warning where other processes keep the machine from running in real
// time, and "" where they do not or where that is unknown.
func busy() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	var load float64
	if _, err := fmt.Sscan(string(b), &load); err != nil || load <= float64(runtime.NumCPU())/2 {
		return ""
	}
	return fmt.Sprintf("note: %.1f programs at a time have run on the %d processors in the last minute; the real-time results suffer from that", load, runtime.NumCPU())
}

// held compares a difference of means and its confidence interval, in percent, with
// the limit. It is a disagreement only where the whole interval exceeds the limit.
func held(difference, low, high float64) (verdict string, missed bool) {
	switch {
	case math.Abs(difference) <= agreementLimit:
		return "", false
	case low <= agreementLimit && high >= -agreementLimit:
		return fmt.Sprintf("\tundecided: over %.0f %%, but the trials differ by as much", agreementLimit), false
	}
	return fmt.Sprintf("\tMISSED: over %.0f %%", agreementLimit), true
}

// samples returns the throughputs of a rehearsal's valid trials in KB/s.
type samples struct {
	order []string
	of    map[string][]float64
}

func throughputs(ctx context.Context, s *setting.Settings, plan string, flags ...string) (samples, error) {
	ds, _, remove, err := rehearsed(ctx, s, plan, flags...)
	if err != nil {
		return samples{}, err
	}
	defer remove()
	return throughputsOf(ds), nil
}

func throughputsOf(ds *report.Dataset) samples {
	out := samples{of: map[string][]float64{}}
	for _, run := range ds.Runs {
		for _, t := range run.Trials {
			if _, known := out.of[t.Treatment]; !known {
				out.order = append(out.order, t.Treatment)
				out.of[t.Treatment] = nil
			}
			if len(t.Attempts) == 0 {
				continue
			}
			if a := &t.Attempts[len(t.Attempts)-1]; a.Verdict == journal.Succeeded {
				out.of[t.Treatment] = append(out.of[t.Treatment], a.ThroughputBytesPerSecond()/unit.KB)
			}
		}
	}
	return out
}

// welch returns the confidence interval of the difference between the means of two
// samples with different variances (Welch 1947).
func welch(x, y []float64) stats.Interval {
	if len(x) < 2 || len(y) < 2 {
		return stats.Interval{Low: math.NaN(), High: math.NaN()}
	}
	share := func(v []float64) (variance, squared float64) {
		sd := stats.StdDev(v)
		variance = sd * sd / float64(len(v))
		return variance, variance * variance / float64(len(v)-1)
	}
	vx, sx := share(x)
	vy, sy := share(y)
	difference := stats.Mean(y) - stats.Mean(x)
	if vx+vy == 0 {
		return stats.Interval{Low: difference, High: difference}
	}
	return stats.OfMean(difference, vx+vy, (vx+vy)*(vx+vy)/(sx+sy), agreementLevel)
}

func interval(i stats.Interval) string {
	if !i.Defined() {
		return "–"
	}
	return fmt.Sprintf("%.2f…%.2f", i.Low, i.High)
}

func percent(i stats.Interval, of float64) string {
	if !i.Defined() {
		return "–"
	}
	return fmt.Sprintf("%+.2f…%+.2f %%", 100*i.Low/of, 100*i.High/of)
}
