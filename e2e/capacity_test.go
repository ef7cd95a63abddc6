package e2e

import (
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
  - {name: messages, protocol: probe, options: {pattern: messages, messages: 20 1024 1024 10240, message_kbit_per_second: 8}}
probes:
  - {treatment: messages, alone: 60s, beside: false}
  - {treatment: messages, from: server, alone: 60s, beside: false}
  - {treatment: capacity, alone: 90s, beside: false}
  - {treatment: capacity, from: server, alone: 90s, beside: false}
  - {treatment: voice, alone: 5s}
iterations: 1
seed: 1
`

// TestCapacityVirtual: searches find the rate of an emulated radio without frames within
// 1 % in both directions, at the same time, speech has its quality, and messages take their
// time on the radio to 1 ms. The run passes its audit.
func TestCapacityVirtual(t *testing.T) {
	testkind.OfTest(t, testkind.Exact, "runs in virtual time")
	p := newProgram(t)
	stdout, stderr, code := p.run("rehearse", "--virtual", p.plan("searched", searched))
	if code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	if !strings.Contains(stdout, "\nSearch ") || !strings.Contains(stdout, "MOS") || !strings.Contains(stdout, "\nmessages, client → server, alone ") {
		t.Errorf("no table of searches or of messages, or no quality of voice:\n%s", stdout)
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
				switch probe.Treatment {
				case "capacity":
					searches++
					expectFound(t, probe.Metrics.Capacity, want)
				case "messages":
					expectMessages(t, probe.Metrics.Messages, run.Sheet.Network.Links[0].Delay, want)
				}
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

// expectMessages holds messages to a radio without losses.
func expectMessages(t *testing.T, all []contract.MessagesOfSize, delay time.Duration, bps float64) {
	t.Helper()
	if len(all) != 3 {
		t.Errorf("messages of %d sizes", len(all))
	}
	for _, m := range all {
		want := delay + time.Duration(float64(8*(m.Bytes+28*m.Packets))/bps*1e9)
		if m.Sent < 4 || m.Delivered != m.Sent || m.Time == nil {
			t.Errorf("%+v", m)
			continue
		}
		for _, ns := range []int64{m.Time.MinNS, m.Time.P50NS, m.Time.P95NS, m.Time.MaxNS} {
			if off := time.Duration(ns) - want; off.Abs() > time.Millisecond {
				t.Errorf("%d bytes took %s, the radio needs %s", m.Bytes, time.Duration(ns), want)
			}
		}
	}
}
