package main

import (
	"context"
	"fmt"
	"io"
	"math"

	"linktrial/cmd/linktrial/setting"
	"linktrial/cmd/linktrial/terminal"
	"linktrial/internal/stats"
)

// variantsPlan is test 1 of decola-2006 at 1 Mbit/s and 1 MB with the two variants of
// TCP-radio, as plans/decola-2006.yaml has them.
const variantsPlan = `name: bench-variants
radio: decola-radio
topology: point-to-point
size: 1 MB
treatments:
  - {name: radio, label: TCP-radio, protocol: tcp, options: {congestion: radio, send_buffer: 1 MiB, receive_buffer: 1 MiB, syn_retries: 10}, complete_knowledge: true}
  - {name: radio-newrto, label: TCP-radio-newRTO, protocol: tcp, options: {congestion: radio_newrto, send_buffer: 1 MiB, receive_buffer: 1 MiB, syn_retries: 127, rto_max: 12s}, complete_knowledge: true}
groups:
  - name: test-1
    sweep:
      - {name: bandwidth, set: rate, values: [1 Mbit/s]}
      - {name: channel, set: [channel.alpha, channel.beta], values: [[0.001, 0.01], [0.01, 0.1], [0.1, 1]]}
    iterations: 6
iterations: 1
order: fixed
seed: 2006
limits: {connect: 1h, transfer: 2h, attempts: 1}
`

// benchVariants compares the variants of TCP-radio that are brought along as eBPF with
// those of the guest's kernel.
func benchVariants(ctx context.Context, s *setting.Settings) error {
	fmt.Println("\nTCP-radio and newRTO in real time (as eBPF, where the kernel has neither) and in the guest: decola-2006, test 1, 1 Mbit/s, 1 MB")
	if ready, err := bothLabs(); !ready {
		return err
	}
	inVirtual, err := throughputs(ctx, s, variantsPlan, "--virtual")
	if err != nil {
		return err
	}
	inReal, err := throughputs(ctx, s, variantsPlan)
	if err != nil {
		return err
	}
	missed := false
	err = terminal.Columns("TREATMENT\tTRIALS\tREAL KB/s\tNORMALISED\tVIRTUAL KB/s\tNORMALISED\tREAL / VIRTUAL\t95 % CI", func(w io.Writer) {
		for _, name := range inReal.order {
			r, v := inReal.of[name], inVirtual.of[name]
			ratio, between, ok := pairedRatio(r, v)
			if !ok {
				fmt.Fprintf(w, "%s\t%d of %d valid\n", name, min(len(r), len(v)), max(len(r), len(v)))
				missed = true
				continue
			}
			verdict := ""
			if between.Low > 1 || between.High < 1 {
				verdict, missed = "\tMISSED: the interval does not contain 1", true
			}
			fmt.Fprintf(w, "%s\t%d\t%.2f\t%.3f\t%.2f\t%.3f\t%.3f\t%.3f…%.3f%s\n", name, len(r), stats.Mean(r), normalised(stats.Mean(r)),
				stats.Mean(v), normalised(stats.Mean(v)), ratio, between.Low, between.High, verdict)
		}
	})
	if err == nil && missed {
		err = errDisagree
	}
	return err
}

// normalised is a throughput in KB/s as a share of 1 Mbit/s.
func normalised(kbPerSecond float64) float64 { return kbPerSecond * 1024 * 8 / 1e6 }

// pairedRatio returns the geometric mean of the ratios of values that belong
// together, and its confidence interval (Student's t of the logarithms). It needs all of both.
func pairedRatio(r, v []float64) (float64, stats.Interval, bool) {
	if len(r) != len(v) || len(r) < 2 {
		return math.NaN(), stats.Interval{}, false
	}
	logs := make([]float64, len(r))
	for i := range r {
		logs[i] = math.Log(r[i] / v[i])
	}
	i := stats.MeanT(logs, agreementLevel)
	return math.Exp(stats.Mean(logs)), stats.Interval{Low: math.Exp(i.Low), High: math.Exp(i.High)}, true
}
