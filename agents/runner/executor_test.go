package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"linktrial/agents/runner"
	"linktrial/executor"
	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/protocols/contract"
)

// drivers is a folder with the test driver, built once.
var drivers string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "drivers")
	if err != nil {
		panic(err)
	}
	drivers = dir
	plain := filepath.Join(dir, "plain")
	build := exec.Command("go", "build", "-o", filepath.Join(plain, "plain"), "../testdata/driver")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build test driver: %v\n%s", err, out)
		os.Exit(1)
	}
	manifest, err := os.ReadFile("../testdata/driver/driver.yaml")
	if err == nil {
		err = os.WriteFile(filepath.Join(plain, "driver.yaml"), manifest, 0o644)
	}
	if err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(dir)
	// The thread that starts drivers lives as long as the process.
	if err := goleak.Find(goleak.IgnoreAnyFunction("linktrial/internal/process.init.func1.1"), goleak.IgnoreAnyFunction("linktrial/internal/process.glob..func1.1")); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

type treatment struct {
	name    string
	options map[string]any
}

// freePort asks the kernel for a TCP port of the loopback that nobody has.
func freePort(t *testing.T) int {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port
}

func sheetOf(t *testing.T, size int64, iterations, attempts int, treatments ...treatment) []byte {
	t.Helper()
	s := &runsheet.Sheet{Format: runsheet.Format, Plan: "test", Control: runsheet.ControlOutOfBand, SampleInterval: 100 * time.Millisecond,
		Limits: runsheet.Limits{Connect: time.Second, Transfer: 2 * time.Second, Attempts: attempts, Wait: time.Second}}
	for _, tr := range treatments {
		s.Treatments = append(s.Treatments, runsheet.Treatment{Name: tr.name, Protocol: "plain", Options: tr.options, Port: freePort(t)})
	}
	for it := 1; it <= iterations; it++ {
		for _, tr := range treatments {
			i := len(s.Trials)
			s.Trials = append(s.Trials, runsheet.Trial{Index: i, Iteration: it, Treatment: tr.name, ChannelSeed: uint64(it), Flows: []runsheet.Flow{
				{Treatment: tr.name, From: radio.RoleClient, To: radio.RoleServer, SizeBytes: size, PayloadSeed: uint64(i)}}})
		}
	}
	b, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var loopback = map[radio.Role]string{radio.RoleClient: "127.0.0.1", radio.RoleRelay: "127.0.0.1", radio.RoleServer: "127.0.0.1"}

func node(t *testing.T, dir string, role radio.Role, sheet []byte) (executor.Config, *journal.File) {
	t.Helper()
	j, err := journal.Open(filepath.Join(dir, string(role)+".jsonl"), journal.Identity{Run: "run1", Node: string(role), Role: role}, journal.Options{ReserveBytes: 4096})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	return executor.Config{
		RunID: "run1", Role: role, Sheet: sheet, SheetHash: runsheet.Hash(sheet), Version: "test", Peers: loopback, Device: "lo",
		Journal: j, Runner: runner.New(runner.Config{Dir: drivers, PIDDir: t.TempDir(), Logger: log}), Logger: log,
	}, j
}

// serve starts the server's part and returns when every listener has been
// recorded; the returned function finishes it.
func serve(t *testing.T, dir string, sheet []byte, listeners int) (*journal.File, func()) {
	t.Helper()
	cfg, j := node(t, dir, radio.RoleServer, sheet)
	listeners += count(t, j, journal.TypeListenerReady, journal.TypeListenerFailed) // of an earlier start
	ctx, cancel := context.WithCancelCause(context.Background())
	done := make(chan error, 1)
	go func() { done <- executor.Serve(ctx, cfg) }()
	for deadline := time.Now().Add(20 * time.Second); ; {
		changed := j.Changed()
		if n := count(t, j, journal.TypeListenerReady, journal.TypeListenerFailed); n >= listeners {
			break
		}
		select {
		case <-changed:
		case <-time.After(time.Until(deadline)):
			t.Fatal("listeners are not ready")
		}
	}
	return j, func() {
		t.Helper()
		cancel(executor.ErrFinish)
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	}
}

func records(t *testing.T, j *journal.File) []journal.Record {
	t.Helper()
	var out []journal.Record
	if err := j.Records(func(r journal.Record) error { out = append(out, r); return nil }); err != nil {
		t.Fatal(err)
	}
	return out
}

func count(t *testing.T, j *journal.File, types ...journal.Type) int {
	n := 0
	for _, r := range records(t, j) {
		if slices.Contains(types, r.Type) {
			n++
		}
	}
	return n
}

func bodies[T any](t *testing.T, j *journal.File, typ journal.Type) []T {
	t.Helper()
	var out []T
	for _, r := range records(t, j) {
		if r.Type == typ {
			var b T
			if err := json.Unmarshal(r.Body, &b); err != nil {
				t.Fatal(err)
			}
			out = append(out, b)
		}
	}
	return out
}

func TestWholeRun(t *testing.T) {
	dir := t.TempDir()
	sheet := sheetOf(t, 64<<10, 3, 1, treatment{"a", nil}, treatment{"b", map[string]any{"pace": 2.0}})
	sj, finish := serve(t, dir, sheet, 2)
	cfg, cj := node(t, dir, radio.RoleClient, sheet)
	if err := executor.Lead(context.Background(), cfg); err != nil {
		t.Fatal(err)
	}
	finish()
	ended := bodies[journal.AttemptEnded](t, cj, journal.TypeAttemptEnded)
	if len(ended) != 6 {
		t.Fatalf("%d attempts ended, expected 6", len(ended))
	}
	digest := map[string]string{}
	for _, e := range ended {
		if e.Verdict != journal.Succeeded || len(e.Flows) != 1 || e.Flows[0].Result == nil {
			t.Errorf("attempt %+v", e)
			continue
		}
		digest[e.Flows[0].Transfer] = e.Flows[0].Result.Digest
		t.Logf("trial %d: connect %s, duration %s, dead %s", e.Trial, time.Duration(e.Flows[0].ConnectNS), e.Duration, e.Dead)
		if e.Trial > 0 && e.Dead <= 0 {
			t.Errorf("trial %d has dead time %s", e.Trial, e.Dead)
		}
	}
	received := bodies[journal.Received](t, sj, journal.TypeReceived)
	if len(received) != 6 {
		t.Errorf("server received %d transfers, expected 6", len(received))
	}
	for _, r := range received {
		if r.Result == nil || r.Result.Digest != digest[r.Transfer] {
			t.Errorf("server's digest of %s differs: %+v", r.Transfer, r)
		}
	}
	for _, j := range []*journal.File{sj, cj} {
		end := bodies[journal.RunEnded](t, j, journal.TypeRunEnded)
		if len(end) != 1 || end[0].End != journal.RunCompleted {
			t.Errorf("run ended %+v", end)
		}
		if count(t, j, journal.TypeSamples) == 0 {
			t.Error("no samples")
		}
	}
	for _, s := range bodies[journal.Samples](t, sj, journal.TypeSamples) {
		if s.Side != "server" || s.Attempt != 1 {
			t.Errorf("server's samples %+v", s)
		}
	}
	// A run that has ended is not led again.
	before := cj.Last()
	if err := executor.Lead(context.Background(), cfg); err != nil || cj.Last() != before {
		t.Errorf("led an ended run: %v, %d records more", err, cj.Last()-before)
	}
	closeAll(t, sj, cj)
}

func closeAll(t *testing.T, files ...*journal.File) {
	t.Helper()
	for _, j := range files {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestFaults(t *testing.T) {
	faults := []struct {
		fault   string
		verdict journal.Verdict
		reason  string
		log     bool // the driver's log is kept with the attempt
		notes   int  // breaches that decided nothing
	}{
		{"garbage", journal.Failed, journal.ReasonGarbage, true, 0},
		{"long-line", journal.Failed, journal.ReasonGarbage, true, 0},
		{"flood", journal.Failed, journal.ReasonFlood, true, 0},
		{"log-flood", journal.Failed, journal.ReasonFlood, true, 0},
		{"exit", journal.Failed, journal.ReasonExited, true, 0},
		{"unsupported", journal.Failed, string(contract.CodeUnsupported), true, 0},
		{"hang", journal.TimedOut, string(contract.CodeConnectTimeout), true, 0},
		{"stuck", journal.TimedOut, string(contract.CodeTransferTimeout), true, 0},
		{"stuck-deaf", journal.TimedOut, string(contract.CodeTransferTimeout), true, 0},
		{"crash", journal.Failed, journal.ReasonCrashed, true, 0},
		{"killed", journal.Invalid, journal.ReasonKilled, true, 0},
		{"wrong-size", journal.Failed, journal.ReasonWrongResult, true, 0},
		{"late-exit", journal.Succeeded, "", false, 1},
		{"exit-after", journal.Succeeded, "", false, 1},
		{"server-dies", journal.Failed, string(contract.CodeReset), true, 0},
		{"server-crashes", journal.Failed, string(contract.CodeReset), true, 0},
		{"no-listener", journal.Failed, string(contract.CodeConnectRefused), true, 0},
		{"child", journal.Succeeded, "", false, 1},
		{"daemon", journal.Succeeded, "", false, 1},
		{"backwards", journal.Succeeded, "", false, 1},
		{"server-daemon", journal.Succeeded, "", false, 0},
		{"none", journal.Succeeded, "", false, 0},
	}
	for _, f := range faults {
		t.Run(f.fault, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			sheet := sheetOf(t, 64<<10, 1, 1, treatment{"x", map[string]any{"fault": f.fault}})
			sj, finish := serve(t, dir, sheet, 1)
			cfg, cj := node(t, dir, radio.RoleClient, sheet)
			if err := executor.Lead(context.Background(), cfg); err != nil {
				t.Fatal(err)
			}
			for strings.HasPrefix(f.fault, "server-") && f.fault != "server-daemon" && count(t, sj, journal.TypeListenerFailed) == 0 {
				<-sj.Changed()
			}
			finish()
			e := bodies[journal.AttemptEnded](t, cj, journal.TypeAttemptEnded)[0]
			if e.Verdict != f.verdict || e.Reason != f.reason {
				t.Errorf("verdict %s (%s: %s), expected %s (%s)", e.Verdict, e.Reason, e.Message, f.verdict, f.reason)
			}
			if f.log != (e.Log != "") {
				t.Errorf("log %q", e.Log)
			}
			if len(e.Log) > executor.MaxLog {
				t.Errorf("log of %d bytes", len(e.Log))
			}
			if n := count(t, cj, journal.TypeDriverMisbehaved); n != f.notes {
				t.Errorf("%d breaches noted, expected %d: %+v", n, f.notes, bodies[journal.Misbehaviour](t, cj, journal.TypeDriverMisbehaved))
			}
			checkLeft(t, f.fault, cj, sj)
			if there := bodies[journal.Misbehaviour](t, sj, journal.TypeDriverMisbehaved); f.fault == "backwards" && (len(there) != 1 || there[0].Trial == nil || !strings.Contains(there[0].Message, "sent_bytes went back from ")) {
				t.Errorf("of the server's samples: %+v", there)
			}
			if strings.HasPrefix(f.fault, "stuck") && (e.Flows[0].LastSample == nil || e.Flows[0].LastSample.SentBytes == 0) {
				t.Errorf("a stuck transfer lost its last sample: %+v", e.Flows[0])
			}
			if f.fault == "server-dies" || f.fault == "server-crashes" {
				// The listener was started again and said so.
				n := bodies[journal.Listener](t, sj, journal.TypeListenerFailed)
				if len(n) == 0 || n[0].Restarts != 1 {
					t.Fatalf("listener's death is not in the journal: %+v", n)
				}
				if crashed := f.fault == "server-crashes"; n[0].Crashed != crashed || crashed != slices.Equal(n[0].Transfers, []string{e.Flows[0].Transfer}) {
					t.Errorf("how the listener ended, and with which transfers: %+v", n[0])
				}
			}
			closeAll(t, sj, cj)
		})
	}
}

// checkLeft asserts that what a driver has left behind is named, with its attempt
// where it has one, and has gone.
func checkLeft(t *testing.T, fault string, client, server *journal.File) {
	t.Helper()
	j := client
	switch fault {
	case "server-daemon":
		j = server
	case "child", "daemon":
	default:
		return
	}
	left := bodies[journal.Misbehaviour](t, j, journal.TypeDriverMisbehaved)
	if len(left) != 1 || !strings.Contains(left[0].Message, "sleep 3600 (process ") {
		t.Fatalf("what was left behind is not named: %+v", left)
	}
	if at := left[0]; fault != "server-daemon" && (at.Trial == nil || *at.Trial != 0 || at.Attempt != 1 || at.Flow == nil || *at.Flow != 0) {
		t.Errorf("the breach is of no attempt: %+v", at)
	}
	_, number, _ := strings.Cut(left[0].Message, "(process ")
	number, _, _ = strings.Cut(number, ")")
	if _, err := os.Stat("/proc/" + number); err == nil {
		t.Errorf("process %s still runs", number)
	}
}

// A driver whose clock is slow or fast, consistently and samples too, has no
// valid value, and its trial is not repeated.
func TestClocksThatAreWrong(t *testing.T) {
	for _, c := range []struct {
		clock   float64
		verdict journal.Verdict
		reason  string
	}{
		{1, journal.Succeeded, ""},
		{0.5, journal.Invalid, journal.ReasonShorterThanRun},
		{2, journal.Invalid, journal.ReasonLongerThanRun},
	} {
		t.Run(fmt.Sprint(c.clock), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			// 16 chunks of 4 KiB with a pause of 100 ms after each: 1.6 s.
			sheet := sheetOf(t, 64<<10, 1, 3, treatment{"x", map[string]any{"clock": c.clock, "pace": 100.0}})
			sj, finish := serve(t, dir, sheet, 1)
			cfg, cj := node(t, dir, radio.RoleClient, sheet)
			if err := executor.Lead(context.Background(), cfg); err != nil {
				t.Fatal(err)
			}
			finish()
			ended := bodies[journal.AttemptEnded](t, cj, journal.TypeAttemptEnded)
			if len(ended) != 1 || ended[0].Verdict != c.verdict || ended[0].Reason != c.reason {
				t.Errorf("attempts %+v, expected one that is %s (%s)", ended, c.verdict, c.reason)
			}
			closeAll(t, sj, cj)
		})
	}
}

func TestRetries(t *testing.T) {
	dir := t.TempDir()
	sheet := sheetOf(t, 4096, 1, 3, treatment{"bad", map[string]any{"fault": "exit"}}, treatment{"good", nil})
	sj, finish := serve(t, dir, sheet, 2)
	cfg, cj := node(t, dir, radio.RoleClient, sheet)
	if err := executor.Lead(context.Background(), cfg); err != nil {
		t.Fatal(err)
	}
	finish()
	var got []string
	for _, e := range bodies[journal.AttemptEnded](t, cj, journal.TypeAttemptEnded) {
		got = append(got, fmt.Sprintf("%d/%d %s", e.Trial, e.Attempt, e.Verdict))
	}
	if want := []string{"0/1 failed", "0/2 failed", "0/3 failed", "1/1 succeeded"}; !slices.Equal(got, want) {
		t.Errorf("attempts %q, expected %q", got, want)
	}
	if ends := bodies[journal.TrialEnded](t, cj, journal.TypeTrialEnded); len(ends) != 2 || ends[0].Attempts != 3 || ends[0].Verdict != journal.Failed {
		t.Errorf("trials ended %+v", ends)
	}
	closeAll(t, sj, cj)
}

func TestAbortAndInterruption(t *testing.T) {
	for _, c := range []struct {
		name   string
		cause  error
		reason string
		ended  bool
	}{
		{"abort", &executor.AbortError{ID: "c1", By: "director", Reason: "rain"}, journal.ReasonAborted, true},
		{"interruption", errors.New("SIGTERM"), journal.ReasonInterrupted, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			sheet := sheetOf(t, 64<<10, 1, 1, treatment{"x", map[string]any{"pace": 20.0}})
			sj, finish := serve(t, dir, sheet, 1)
			cfg, cj := node(t, dir, radio.RoleClient, sheet)
			ctx, cancel := context.WithCancelCause(context.Background())
			done := make(chan error, 1)
			go func() { done <- executor.Lead(ctx, cfg) }()
			for count(t, cj, journal.TypeConnected) == 0 {
				<-cj.Changed()
			}
			cancel(c.cause)
			err := <-done
			finish()
			if c.ended != (err == nil) {
				t.Fatalf("lead: %v", err)
			}
			e := bodies[journal.AttemptEnded](t, cj, journal.TypeAttemptEnded)
			if len(e) != 1 || e[0].Verdict != journal.Aborted || e[0].Reason != c.reason {
				t.Fatalf("attempts %+v", e)
			}
			if c.ended {
				end := bodies[journal.RunEnded](t, cj, journal.TypeRunEnded)
				if len(end) != 1 || end[0].End != journal.RunAborted || end[0].Reason != "rain" || count(t, cj, journal.TypeCommand) != 1 {
					t.Errorf("run ended %+v", end)
				}
				closeAll(t, sj, cj)
				return
			}
			if count(t, cj, journal.TypeRunEnded) != 0 {
				t.Error("an interrupted run has a run-ended record")
			}
			// Led again, it repeats the trial as a second attempt.
			closeAll(t, cj, sj)
			sj, finish = serve(t, t.TempDir(), sheet, 1) // the first server's part has ended
			cfg, cj = node(t, dir, radio.RoleClient, sheet)
			if err := executor.Lead(context.Background(), cfg); err != nil {
				t.Fatal(err)
			}
			finish()
			e = bodies[journal.AttemptEnded](t, cj, journal.TypeAttemptEnded)
			if len(e) != 2 || e[1].Attempt != 2 || e[1].Verdict != journal.Succeeded {
				t.Errorf("attempts %+v", e)
			}
			closeAll(t, sj, cj)
		})
	}
}

func TestWrongSheet(t *testing.T) {
	sheet := sheetOf(t, 1, 1, 1, treatment{"x", nil})
	cfg, j := node(t, t.TempDir(), radio.RoleClient, sheet)
	cfg.SheetHash = strings.Repeat("0", 64)
	if err := executor.Lead(context.Background(), cfg); err == nil || !strings.Contains(err.Error(), "hash") {
		t.Errorf("a sheet with another hash was led: %v", err)
	}
	if j.Last() != 0 {
		t.Error("a refused sheet left records")
	}
	closeAll(t, j)
}
