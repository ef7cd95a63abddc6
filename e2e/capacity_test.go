package e2e

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"linktrial/executor/journal"
	"linktrial/internal/testkind"
	"linktrial/protocols/contract"
)

const searched = `
name: searched
radio: transports-link
topology: point-to-point
sweep:
  - {name: bandwidth, set: rate, values: [16 kbit/s, 2 Mbit/s]}
treatments:
  - {name: capacity, protocol: probe, options: {pattern: capacity, packets: true}}
  - {name: voice, protocol: probe, options: {pattern: voip-g729}}
probes:
  - {treatment: capacity, alone: 90s, beside: false}
  - {treatment: capacity, from: server, alone: 90s, beside: false}
  - {treatment: voice, alone: 5s}
iterations: 1
seed: 1
`

// TestCapacityVirtual: searches find the rate of an emulated radio without frames within
// 1 % in both directions, at the same time, and speech has its quality. The run passes its
// audit.
func TestCapacityVirtual(t *testing.T) {
	testkind.OfTest(t, testkind.Exact, "runs in virtual time")
	p := newProgram(t)
	stdout, stderr, code := p.run("rehearse", "--virtual", p.plan("searched", searched))
	if code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	if !strings.Contains(stdout, "\nSearch ") || !strings.Contains(stdout, "MOS") {
		t.Errorf("no table of searches, or no quality of voice:\n%s", stdout)
	}
	runs := p.exported().Runs
	if len(runs) != 2 {
		t.Fatalf("%d runs", len(runs))
	}
	searches := 0
	for i := range runs {
		run := &runs[i]
		want := run.Sheet.Network.Links[0].RateBitsPerSecond
		for _, trial := range run.Trials {
			for _, probe := range trial.Attempts[len(trial.Attempts)-1].Probes {
				if probe.Verdict != journal.Succeeded {
					t.Errorf("%s: %+v", trial.Treatment, probe)
					continue
				}
				if probe.Treatment != "capacity" {
					continue
				}
				searches++
				expectFound(t, probe.Metrics.Capacity, want)
			}
		}
	}
	if searches != 4 {
		t.Errorf("%d searches, expected one in each direction of each run", searches)
	}
	exports, err := filepath.Glob(filepath.Join(p.work, "results", "*"))
	if err != nil || len(exports) != 1 {
		t.Fatalf("%q, %v", exports, err)
	}
	if out, code := p.audit("--exports", exports[0]); code != 0 {
		t.Errorf("audit: exit %d:\n%s", code, out)
	}
}

func expectFound(t *testing.T, c *contract.Capacity, want float64) {
	t.Helper()
	if c == nil {
		t.Error("no capacity")
		return
	}
	for name, got := range map[string]int64{"maximum": c.MaximumBPS, "mean": c.MeanBPS, "sent": c.RateBPS, "bottleneck": c.BottleneckBPS} {
		if math.Abs(float64(got)/want-1) > 0.01 {
			t.Errorf("%s: %d bit/s, the radio has %.0f", name, got, want)
		}
	}
	if c.End != contract.CapacityFound || c.LargestPayloadBytes != 1472 || c.HeldReceived != c.HeldSent {
		t.Errorf("%+v", c)
	}
}
