package runner_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"linktrial/agents/runner"
	"linktrial/executor"
	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/protocols/contract"
)

// flowsOf is a sheet of one trial of the given flows, which all lead from the
// client to the server.
func flowsOf(t *testing.T, attempts int, treatments []treatment, flows ...runsheet.Flow) []byte {
	t.Helper()
	s, err := runsheet.Decode(sheetOf(t, 1, 1, attempts, treatments...))
	if err != nil {
		t.Fatal(err)
	}
	for i := range s.Treatments {
		if strings.HasPrefix(s.Treatments[i].Name, "tcp") {
			s.Treatments[i].Protocol = "tcp"
		}
	}
	for i := range flows {
		flows[i].From, flows[i].To, flows[i].PayloadSeed = radio.RoleClient, radio.RoleServer, uint64(i)
	}
	s.Trials = []runsheet.Trial{{Index: 0, Iteration: 1, Treatment: "mix", Flows: flows}}
	b, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// verdicts is every flow's, as text.
func verdicts(e journal.AttemptEnded) []string {
	var out []string
	for _, f := range e.Flows {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s", f.Verdict, f.Reason)))
	}
	return out
}

// matched asserts that a flow's result and the server's word on it agree.
func matched(t *testing.T, sj *journal.File, e journal.AttemptEnded) {
	t.Helper()
	word := map[string]*contract.Result{}
	for _, r := range bodies[journal.Received](t, sj, journal.TypeReceived) {
		word[r.Transfer] = r.Result
	}
	for _, f := range e.Flows {
		if f.Verdict != journal.Succeeded {
			continue
		}
		if r := word[f.Transfer]; f.Result == nil || r == nil || r.Digest != f.Result.Digest || r.SizeBytes != f.Result.SizeBytes {
			t.Errorf("flow %d: client %+v, server %+v", f.Flow, f.Result, r)
		}
	}
}

func TestTenFlows(t *testing.T) {
	dir := t.TempDir()
	var flows []runsheet.Flow
	for i := range 10 {
		flows = append(flows, runsheet.Flow{Treatment: []string{"a", "b"}[i%2], Start: time.Duration(i) * 20 * time.Millisecond, SizeBytes: int64(10_000 + i)})
	}
	sheet := flowsOf(t, 1, []treatment{{"a", map[string]any{"pace": 5.0}}, {"b", nil}}, flows...)
	sj, finish := serve(t, dir, sheet, 2)
	cfg, cj := node(t, dir, radio.RoleClient, sheet)
	if err := executor.Lead(context.Background(), cfg); err != nil {
		t.Fatal(err)
	}
	finish()
	e := bodies[journal.AttemptEnded](t, cj, journal.TypeAttemptEnded)[0]
	if e.Verdict != journal.Succeeded || len(e.Flows) != 10 || e.Duration < flows[9].Start {
		t.Errorf("attempt %+v", e)
	}
	for i, f := range e.Flows {
		if f.Result == nil || f.Result.SizeBytes != flows[i].SizeBytes || f.Treatment != flows[i].Treatment {
			t.Errorf("flow %d: %+v", i, f)
		}
	}
	matched(t, sj, e)
	started := bodies[journal.AttemptStarted](t, cj, journal.TypeAttemptStarted)[0]
	if slices.Sort(started.Transfers); len(slices.Compact(started.Transfers)) != 10 {
		t.Errorf("transfers %q", started.Transfers)
	}
	closeAll(t, sj, cj)
}

// TestVerdictsOfFlows: each flow has its own, the attempt the gravest, and a
// flow that went well keeps its result beside others that did not.
func TestVerdictsOfFlows(t *testing.T) {
	dir := t.TempDir()
	sheet := flowsOf(t, 1, []treatment{{"good", nil}, {"exits", map[string]any{"fault": "exit"}}, {"stuck", map[string]any{"fault": "stuck"}}, {"garbage", map[string]any{"fault": "garbage"}}},
		runsheet.Flow{Treatment: "stuck", SizeBytes: 50_000}, runsheet.Flow{Treatment: "good", SizeBytes: 50_000},
		runsheet.Flow{Treatment: "exits", SizeBytes: 50_000, Start: 10 * time.Millisecond}, runsheet.Flow{Treatment: "garbage", SizeBytes: 50_000},
		runsheet.Flow{Treatment: "good", SizeBytes: 60_000, Start: 100 * time.Millisecond}, runsheet.Flow{Treatment: "good", SizeBytes: 0, Duration: time.Second})
	sj, finish := serve(t, dir, sheet, 4)
	cfg, cj := node(t, dir, radio.RoleClient, sheet)
	if err := executor.Lead(context.Background(), cfg); err != nil {
		t.Fatal(err)
	}
	finish()
	e := bodies[journal.AttemptEnded](t, cj, journal.TypeAttemptEnded)[0]
	want := []string{"timed-out transfer-timeout", "succeeded", "failed exited", "failed garbage", "succeeded", "failed unsupported"}
	if got := verdicts(e); e.Verdict != journal.Failed || e.Reason != journal.ReasonExited || !slices.Equal(got, want) {
		t.Errorf("attempt %s (%s), flows %q, expected %q", e.Verdict, e.Reason, got, want)
	}
	if !strings.Contains(e.Flows[5].Message, "feature duration") {
		t.Errorf("a driver that knows no durations: %q", e.Flows[5].Message)
	}
	matched(t, sj, e)
	closeAll(t, sj, cj)
}

// watchedRunner tells of each client that has gone.
type watchedRunner struct {
	executor.Runner
	gone chan string
}

func (r watchedRunner) Start(ctx context.Context, protocol string, p *contract.Parameters, payload io.Reader) (executor.Process, error) {
	proc, err := r.Runner.Start(ctx, protocol, p, payload)
	if err == nil {
		go func() { <-proc.Done(); r.gone <- p.Transfer.ID }()
	}
	return proc, err
}

// TestFlowsAreStoppedWithTheRun: an end from outside takes the flows that run and those to
// come, and leaves the one that is through its result.
func TestFlowsAreStoppedWithTheRun(t *testing.T) {
	for _, c := range []struct {
		cause  error
		reason string
	}{
		{&executor.AbortError{Reason: "rain"}, journal.ReasonAborted},
		{errors.New("SIGTERM"), journal.ReasonInterrupted},
	} {
		t.Run(c.reason, func(t *testing.T) {
			dir := t.TempDir()
			sheet := flowsOf(t, 1, []treatment{{"quick", nil}, {"slow", map[string]any{"pace": 100.0}}, {"late", nil}},
				runsheet.Flow{Treatment: "late", SizeBytes: 1, Start: time.Hour}, runsheet.Flow{Treatment: "quick", SizeBytes: 9},
				runsheet.Flow{Treatment: "slow", SizeBytes: 80_000})
			sj, finish := serve(t, dir, sheet, 3)
			cfg, cj := node(t, dir, radio.RoleClient, sheet)
			gone := make(chan string, 3)
			cfg.Runner = watchedRunner{cfg.Runner, gone}
			ctx, cancel := context.WithCancelCause(context.Background())
			done := make(chan error, 1)
			go func() { done <- executor.Lead(ctx, cfg) }()
			if id := <-gone; id != runsheet.TransferID("run1", 0, 1, 1).String() {
				t.Errorf("transfer %s ended first", id)
			}
			for count(t, cj, journal.TypeConnected) < 2 {
				<-cj.Changed()
			}
			cancel(c.cause)
			err := <-done
			finish()
			if (c.reason == journal.ReasonAborted) != (err == nil) {
				t.Errorf("lead: %v", err)
			}
			e := bodies[journal.AttemptEnded](t, cj, journal.TypeAttemptEnded)[0]
			want := []string{"aborted " + c.reason, "succeeded", "aborted " + c.reason}
			if got := verdicts(e); e.Verdict != journal.Aborted || e.Reason != c.reason || !slices.Equal(got, want) {
				t.Errorf("attempt %s (%s), flows %q, expected %q", e.Verdict, e.Reason, got, want)
			}
			if e.Flows[1].Result == nil || e.Flows[2].Result != nil || count(t, cj, journal.TypeTrialEnded) != 0 {
				t.Errorf("attempt %+v", e)
			}
			closeAll(t, sj, cj)
		})
	}
}

// TestTimeBounds carries flows bounded by time with a real driver.
func TestTimeBounds(t *testing.T) {
	folder := filepath.Join(drivers, "tcp")
	build := exec.Command("go", "build", "-o", filepath.Join(folder, "tcp"), "../../protocols/tcp")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	defer os.RemoveAll(folder)
	manifest, err := os.ReadFile("../../protocols/tcp/driver.yaml")
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, "driver.yaml"), manifest, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	if s := runner.New(runner.Config{Dir: drivers}).Query(context.Background(), "tcp"); !s.Runs() {
		t.Fatalf("tcp does not run here: %s", s.Driver.Unsupported)
	}
	dir := t.TempDir()
	const bound = 1 << 40
	flows := []runsheet.Flow{
		{Treatment: "tcp", SizeBytes: bound, Duration: 300 * time.Millisecond},
		{Treatment: "tcp", SizeBytes: bound, Duration: 200 * time.Millisecond, Start: 100 * time.Millisecond, Session: 1},
		{Treatment: "tcp", SizeBytes: bound, Duration: time.Millisecond, Start: 350 * time.Millisecond, Session: 1},
		{Treatment: "tcp", SizeBytes: 10_000, Duration: time.Second},
		{Treatment: "tcp", SizeBytes: 100_000},
	}
	sheet := flowsOf(t, 1, []treatment{{"tcp", map[string]any{"congestion": "cubic"}}}, flows...)
	sj, finish := serve(t, dir, sheet, 1)
	cfg, cj := node(t, dir, radio.RoleClient, sheet)
	if err := executor.Lead(context.Background(), cfg); err != nil {
		t.Fatal(err)
	}
	finish()
	e := bodies[journal.AttemptEnded](t, cj, journal.TypeAttemptEnded)[0]
	if e.Verdict != journal.Succeeded {
		t.Fatalf("attempt %+v", e)
	}
	for i, f := range e.Flows {
		r, spec := f.Result, flows[i]
		t.Logf("flow %d: %d bytes in %s", i, r.SizeBytes, time.Duration(r.ElapsedNS))
		if spec.SizeBytes == bound && (r.SizeBytes == 0 || r.SizeBytes >= bound || time.Duration(r.ElapsedNS) < spec.Duration) ||
			spec.SizeBytes < bound && r.SizeBytes != spec.SizeBytes {
			t.Errorf("flow %d: %d bytes in %s", i, r.SizeBytes, time.Duration(r.ElapsedNS))
		}
	}
	matched(t, sj, e)
	closeAll(t, sj, cj)
}
