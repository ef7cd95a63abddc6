package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"linktrial/internal/testkind"
	"linktrial/orchestrator/report"
)

// pieces runs an orchestrator and a lab with agents, each with its own command.
type pieces struct {
	*program
	serve *running
	url   string
}

func inPieces(t *testing.T) *pieces {
	t.Helper()
	p := &pieces{program: newProgram(t)}
	addr := freeAddr(t)
	p.url = "http://" + addr
	p.serve = p.start("serve", "--listen", addr)
	p.serve.waitFor("orchestrator is ready", time.Minute)
	t.Cleanup(func() {
		p.run("lab", "down", "--name", "e2e")
		nothingLeft(t)
	})
	p.must("lab", "up", "--name", "e2e", "--agents")
	nodes := func() string { return p.must("nodes") }
	waitUntil(t, "the agents connect", 30*time.Second, func() bool { return strings.Count(nodes(), "connected") == 3 }, nodes)
	return p
}

// must runs a subcommand against the orchestrator and returns what it printed.
func (p *pieces) must(args ...string) string {
	p.t.Helper()
	stdout, stderr, code := p.run(append(args, "--orchestrator", p.url)...)
	if code != 0 {
		p.t.Fatalf("linktrial %q: exit %d:\n%s%s", args, code, stdout, stderr)
	}
	return stdout
}

func (p *pieces) dataset() *report.Dataset {
	p.t.Helper()
	ds, err := report.ReadJSON([]byte(p.must("results", "--format", "json")))
	if err != nil {
		p.t.Fatal(err)
	}
	return ds
}

func (p *pieces) waitUntil(what string, limit time.Duration, done func() bool) {
	p.t.Helper()
	waitUntil(p.t, what, limit, done, func() string { return p.must("run", "list") })
}

// ended counts the trials that the orchestrator knows to have ended.
func ended(ds *report.Dataset) int {
	n := 0
	for _, tr := range ds.Runs[0].Trials {
		if tr.Verdict != "" {
			n++
		}
	}
	return n
}

func TestRunInPieces(t *testing.T) {
	p := inPieces(t)
	out := p.must("run", p.plan("short.yaml", short))
	if !strings.Contains(out, "completed") || !strings.Contains(out, "4/4") {
		t.Errorf("run printed:\n%s", out)
	}
	checkRun(t, p.dataset())
	if out := p.must("run", "list"); !strings.Contains(out, "12/12") {
		t.Errorf("runs printed:\n%s", out)
	}
	dir := filepath.Join(p.work, "files")
	p.must("results", "--out", dir)
	for _, name := range []string{"results.csv", "trials.csv", "samples.csv", "channels.csv", "telemetry.csv", "readings.csv", "probes.csv", "breaches.csv", "results.json", "results.md", "results.tex", "results.svg", "cdf.svg"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("results --out wrote no %s, or an empty one (%v)", name, err)
		}
	}
	if _, err := os.Stat("/run/linktrial/labs/e2e/lab.json"); err != nil {
		t.Error(err)
	}
	p.serve.cmd.Process.Signal(syscall.SIGTERM)
	if code := p.serve.wait(30 * time.Second); code != 0 {
		t.Errorf("serve ended with %d", code)
	}
}

// The leading agent's control link is cut in the middle of a run: the trials go
// on, and everything arrives when the link is back.
func TestControlLinkCut(t *testing.T) {
	testkind.Waits("for trials, and for a node that is cut off")
	p := inPieces(t)
	p.must("run", "--detach", p.plan("short.yaml", short))
	p.waitUntil("two trials have ended", time.Minute, func() bool { return ended(p.dataset()) >= 2 })
	p.must("lab", "control-link", "client", "down", "--name", "e2e")
	// What was on its way has arrived by now; from here on nothing reaches the orchestrator.
	time.Sleep(time.Second)
	before := ended(p.dataset())
	// Long enough for the whole run to end without a control link.
	time.Sleep(20 * time.Second)
	if now := ended(p.dataset()); now != before {
		t.Errorf("%d trials arrived while the link was down", now-before)
	}
	p.must("lab", "control-link", "client", "up", "--name", "e2e")
	p.waitUntil("the run is completed", 2*time.Minute, func() bool { return strings.Contains(p.must("run", "list"), "completed") })
	ds := p.dataset()
	checkRun(t, ds)
	for _, tr := range ds.Runs[0].Trials {
		if len(attemptsLeft(&tr)) != 1 {
			t.Errorf("trial %d has %d attempts: a cut control link is no reason to repeat one", tr.Index, len(tr.Attempts))
		}
	}
	run := ds.Runs[0]
	last := run.Trials[len(run.Trials)-1].Attempts[0].Started
	first := run.Trials[0].Attempts[0].Started
	if d := last.Sub(first); d > 19*time.Second {
		t.Errorf("the trials took %s: the cut link delayed them", d)
	}
}
