package e2e

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"linktrial/executor/journal"
	"linktrial/internal/testkind"
)

// twoRadios is a plan over nodes with two radios: the first of 2 Mbit/s, the second of
// 1 Mbit/s.
const twoRadios = `
name: two-radios
radio: transports-link
topology: two-radios
size: 1 MiB
treatments:
  - {name: first, protocol: tcp}
  - {name: second, protocol: tcp, second_radio: true}
  - {name: both, protocol: tcp, options: {multipath: true}}
iterations: 1
seed: 3
limits: {connect: 10s, transfer: 60s}
capture: true
`

// TestMultipath: in the real-time lab, each treatment uses the radios that it is to
// use, and MPTCP carries bytes over both, which adds up in the exported results.
func TestMultipath(t *testing.T) {
	if _, err := os.Stat("/proc/sys/net/mptcp/enabled"); err != nil {
		t.Skip("this kernel has no Multipath TCP: ", err)
	}
	p := newProgram(t)
	r := p.start("rehearse", p.plan("two-radios", twoRadios))
	r.wait(5 * time.Minute)
	expectPaths(t, p)
	nothingLeft(t)
}

// The same in virtual time.
func TestMultipathVirtual(t *testing.T) {
	testkind.OfTest(t, testkind.Exact, "runs in virtual time")
	p := newProgram(t)
	stdout, stderr, code := p.run("rehearse", "--virtual", p.plan("two-radios", twoRadios))
	if code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	expectPaths(t, p)
}

func expectPaths(t *testing.T, p *program) {
	t.Helper()
	took := map[string]time.Duration{}
	for _, trial := range p.exported().Runs[0].Trials {
		a := &trial.Attempts[0]
		if len(trial.Attempts) != 1 || a.Verdict != journal.Succeeded || !a.Verified {
			t.Fatalf("%s: %+v", trial.Treatment, trial.Attempts)
		}
		took[trial.Treatment] = a.Elapsed
		if trial.Treatment != "both" {
			if len(a.Paths) != 0 {
				t.Errorf("%s has paths: %+v", trial.Treatment, a.Paths)
			}
			continue
		}
		if len(a.Paths) != 2 {
			t.Fatalf("both: paths %+v", a.Paths)
		}
		one, two := a.Paths[0], a.Paths[1]
		// What a path has not yet acknowledged itself, when the answer comes, is missing.
		if one.Device != "radio0" || two.Device != "radio1" || one.Bytes+two.Bytes < a.SizeBytes*97/100 || math.Abs(one.Share+two.Share-1) > 1e-9 || two.Share < 0.1 || one.Share < 0.1 {
			t.Errorf("both: paths %+v", a.Paths)
		}
		if a.Ideal <= 0 || a.Elapsed < a.Ideal {
			t.Errorf("both took %s, Ideal is %s", a.Elapsed, a.Ideal)
		}
	}
	if took["both"] >= took["first"] || took["first"] >= took["second"] {
		t.Errorf("both radios took %s, the first %s, the second %s", took["both"], took["first"], took["second"])
	}
	csv, err := filepath.Glob(filepath.Join(p.work, "results", "*", "trials.csv"))
	if err != nil || len(csv) != 1 {
		t.Fatalf("exported trials: %v (%v)", csv, err)
	}
	if b, err := os.ReadFile(csv[0]); err != nil || !strings.Contains(string(b), ",radio0 radio1,") {
		t.Errorf("%s has no paths (%v)", csv[0], err)
	}
}
