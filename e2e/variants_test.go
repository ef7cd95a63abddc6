package e2e

import (
	"math"
	"slices"
	"testing"

	"linktrial/executor/journal"
)

// variantsOverOutage has the two variants of TCP-radio with a window of 60 KiB on a
// link of 1 Mbit/s and 2 s of round trip, whose outage begins in the middle of the
// transfer. The timeout is 5.6 s there: TCP-radio's repetitions come 5.6, 16.8 and
// 39.2 s after the first timeout began, TCP-radio-newRTO's every 5.6 s.
const variantsOverOutage = `
name: variants-over-outage
radio: transports-outage
topology: point-to-point
size: 256 KiB
treatments:
  - {name: radio, label: TCP-radio, protocol: tcp, options: {congestion: radio, window: 60 KiB, send_buffer: 1 MiB, receive_buffer: 1 MiB}}
  - {name: radio-newrto, label: TCP-radio-newRTO, protocol: tcp, options: {congestion: radio_newrto, window: 60 KiB, send_buffer: 1 MiB, receive_buffer: 1 MiB, rto_max: 12s}}
groups:
  - name: outage
    sweep:
      - {name: rate, set: rate, values: [1 Mbit/s]}
      - {name: delay, set: processing_delay, values: [1s]}
      - {name: offset, set: channel.offset, values: [9s]}
      - {name: length, set: channel.length, values: [13s]}
    iterations: 1
iterations: 1
order: fixed
seed: 3
limits: {connect: 1m, transfer: 10m, attempts: 1}
`

// variantsBound is how much a transfer may take longer or shorter in real time than
// in virtual time, in seconds. Linux lets a timer end late by up to an eighth, by
// steps that depend on the kernel's tick: 0.7 s of 5.6 s, and there are two to three of
// them. A repetition more or less, or a doubled timeout where it must not be, makes
// 5.6 s. With nothing else heavy on the machine the difference was 0.17 and 0.03 s.
const variantsBound = 2.1

// TestVariantsInBothLabs: TCP-radio and TCP-radio-newRTO as eBPF, in real time, behave as
// those that are built into the guest's kernel, in virtual time. The time that a
// transfer takes over an outage shows both window and timeouts.
func TestVariantsInBothLabs(t *testing.T) {
	elapsed := func(flags ...string) map[string]float64 {
		p := newProgram(t)
		stdout, stderr, code := p.run(append([]string{"rehearse", p.plan("plan.yaml", variantsOverOutage)}, flags...)...)
		if code != 0 {
			t.Fatalf("exit code %d:\n%s%s", code, stdout, stderr)
		}
		ds := p.exported()
		if len(flags) == 0 { // the provenance of a guest has no probes
			expectVariants(t, ds.Runs[0].Provenance["client"])
			expectVariants(t, ds.Runs[0].Provenance["server"])
		}
		out := map[string]float64{}
		for _, tr := range ds.Runs[0].Trials {
			a := tr.Attempts[len(tr.Attempts)-1]
			if a.Verdict != journal.Succeeded {
				t.Fatalf("%s: %s: %s", tr.Treatment, a.Verdict, a.Message)
			}
			out[tr.Treatment] = a.Elapsed.Seconds()
		}
		return out
	}
	inVirtual := elapsed("--virtual")
	inReal := elapsed()
	for _, name := range []string{"radio", "radio-newrto"} {
		r, v := inReal[name], inVirtual[name]
		t.Logf("%s: %.2f s in real time, %.2f s in virtual time", name, r, v)
		if math.Abs(r-v) > variantsBound {
			t.Errorf("%s took %.2f s in real time and %.2f s in virtual time, which is more than %.1f s apart", name, r, v, variantsBound)
		}
	}
	for where, e := range map[string]map[string]float64{"real": inReal, "virtual": inVirtual} {
		if e["radio"] < e["radio-newrto"]+2*variantsBound {
			t.Errorf("in %s time the outage does not tell the variants apart: %v", where, e)
		}
	}
}

// expectVariants: the provenance of a node tells where the variants come from.
func expectVariants(t *testing.T, p journal.Provenance) {
	t.Helper()
	i := slices.IndexFunc(p.Drivers, func(d journal.Driver) bool { return d.Name == "tcp" })
	for _, c := range []string{"congestion=radio", "congestion=radio_newrto"} {
		if i < 0 || p.Drivers[i].Detail[c] != "brought along as eBPF" && p.Drivers[i].Detail[c] != "the kernel's own" {
			t.Errorf("%s has no origin of %s in its provenance", p.Host, c)
		}
	}
}
