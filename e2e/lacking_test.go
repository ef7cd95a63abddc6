package e2e

import (
	"strings"
	"testing"

	"linktrial/internal/testkind"
)

// A treatment whose congestion control no kernel has is listed as missing, with the
// reason, and the other treatment is run. The program says so before and after, and
// fails, as the plan does not say that it expects this.
func TestRehearsalOfTreatmentThatKernelLacks(t *testing.T) {
	expectLacking(t, "client and server")
}

// The same in virtual time, where the guest's kernel counts.
func TestVirtualRehearsalOfTreatmentThatKernelLacks(t *testing.T) {
	testkind.OfTest(t, testkind.Exact, "runs in virtual time")
	expectLacking(t, "virtual-client and virtual-server", "--virtual")
}

func expectLacking(t *testing.T, nodes string, flags ...string) {
	t.Helper()
	p := newProgram(t)
	file := p.plan("lacking.yaml", `name: lacking
radio: reference-link
topology: point-to-point
size: 16 KiB
treatments:
  - {name: reno, protocol: tcp, options: {congestion: reno}}
  - {name: nowhere, label: Nowhere, protocol: tcp, options: {congestion: nowhere}}
iterations: 2
seed: 1
`)
	stdout, stderr, code := p.run(append([]string{"rehearse", file}, flags...)...)
	reason := "the kernel of " + nodes + " has no congestion control nowhere"
	if code != 1 || !strings.Contains(stderr, "treatment nowhere: "+reason+"; its trials are left out") || !strings.Contains(stderr, "1 treatment not run: nowhere: "+reason) {
		t.Fatalf("exit %d:\n%s%s", code, stdout, stderr)
	}
	if !strings.Contains(stdout, "missing: "+reason) {
		t.Errorf("the table does not say why:\n%s", stdout)
	}
	for _, tr := range p.exported().Runs[0].Trials {
		if tr.Treatment != "reno" || tr.Verdict != "succeeded" {
			t.Errorf("trial %d of %s: %s", tr.Index, tr.Treatment, tr.Verdict)
		}
	}
	nothingLeft(t)
}
