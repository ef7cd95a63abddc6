package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"linktrial/internal/radio"
	"linktrial/internal/testkind"
	"linktrial/orchestrator/measure"
	"linktrial/orchestrator/report"
)

// measuredLink is what 'linktrial measure' finds of the radio transports-link: 2 Mbit/s and
// 30 ms each way, without losses.
func measuredLink() *measure.Values {
	of := func(x float64) *float64 { return &x }
	v := &measure.Values{}
	for w, from := range []radio.Role{radio.RoleClient, radio.RoleServer} {
		v.Capacity[w] = &report.ProbeRow{From: from, Capacity: &report.CapacityRow{Measured: 1, MeanBPS: of(1.99e6), LargestPayloadBytes: 1472}}
		v.Idle[w] = &report.ProbeRow{From: from, Sent: 160, Received: 160, DelayP50MS: of(30.5), UncertaintyMS: of(0.1)}
	}
	v.Transfers = []report.Row{
		{Treatment: "tcp-cubic", Label: "TCP CUBIC", Valid: 1, AverageKBps: of(225)},
		{Treatment: "haul", Label: "Haul", Valid: 1, AverageKBps: of(220)},
	}
	return v
}

// A comparison that is composed from what was measured of an emulated radio ends within the
// time that it states, and decides.
func TestComparisonEndsInItsTimeAndDecides(t *testing.T) {
	testkind.OfTest(t, testkind.Exact, "runs in virtual time")
	protocols, err := measure.ProtocolsOf(nil)
	if err != nil {
		t.Fatal(err)
	}
	proposal, err := measure.Propose(measuredLink(), measure.Comparison{Campaign: "m4t7xk2p", Radio: "transports-link", Topology: "point-to-point", Budget: 10 * time.Minute, Protocols: protocols})
	if err != nil || !proposal.Decides {
		t.Fatalf("decides %t, %v: %q", proposal.Decides, err, proposal.Sentences)
	}
	p := newProgram(t)
	file := filepath.Join(p.work, "compare.yaml")
	if err := os.WriteFile(file, []byte(proposal.Text), 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, code := p.run("rehearse", "--virtual", file)
	if code != 0 || !strings.Contains(stdout, "iterations): decided (p") {
		t.Errorf("exit code %d:\n%s%s", code, stdout, stderr)
	}
	run := p.exported().Runs[0]
	if len(run.Trials) != 3*proposal.Iterations {
		t.Errorf("%d trials of %d iterations", len(run.Trials), proposal.Iterations)
	}
	if took := run.Ended.Sub(run.Started); took > proposal.Estimated || took < proposal.Estimated/2 {
		t.Errorf("it took %s, estimated %s", took, proposal.Estimated)
	}
}
