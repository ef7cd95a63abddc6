package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"linktrial/agents/runner"
	"linktrial/executor"
	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/protocols/contract"
)

// stagedNodes is a client, a relay and a server of one run on the loopback
// interface, whose relay takes assignments.
type stagedNodes struct {
	t        *testing.T
	dir      string
	sheet    []byte
	journals map[radio.Role]*journal.File
	adjust   func(*executor.Config) // nil: nothing
}

func (n *stagedNodes) control() string { return filepath.Join(n.dir, "emulator.sock") }

// sourceSheet has one trial of a flow from the client and two from the relay,
// of which pace bounds the speed (milliseconds for each 4 KiB).
func sourceSheet(t *testing.T, attempts int, pace float64) []byte {
	return optionsSheet(t, attempts, map[string]any{"pace": pace})
}

// heldSheet is [sourceSheet] with transfers that do not end before release is called.
func heldSheet(t *testing.T, attempts int) (sheet []byte, release func()) {
	file := filepath.Join(t.TempDir(), "released")
	return optionsSheet(t, attempts, map[string]any{"hold": file}), func() {
		t.Helper()
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func optionsSheet(t *testing.T, attempts int, options map[string]any) []byte {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	flow := func(from radio.Role, size int64, start time.Duration) runsheet.Flow {
		return runsheet.Flow{Treatment: "x", From: from, To: radio.RoleServer, SizeBytes: size, Start: start, PayloadSeed: uint64(size)}
	}
	s := &runsheet.Sheet{Format: runsheet.Format, Plan: "test", Control: runsheet.ControlOutOfBand, SampleInterval: 100 * time.Millisecond,
		Limits:     runsheet.Limits{Connect: 5 * time.Second, Transfer: 20 * time.Second, Attempts: attempts, Wait: 5 * time.Second},
		Treatments: []runsheet.Treatment{{Name: "x", Protocol: "plain", Options: options, Port: port}},
		Trials: []runsheet.Trial{{Index: 0, Iteration: 1, Treatment: "x", Flows: []runsheet.Flow{
			flow(radio.RoleRelay, 30_000, 0), flow(radio.RoleClient, 20_000, 50*time.Millisecond), flow(radio.RoleRelay, 10_000, 100*time.Millisecond)}}},
	}
	b, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func stageNodes(t *testing.T, sheet []byte) *stagedNodes {
	n := &stagedNodes{t: t, dir: t.TempDir(), sheet: sheet, journals: map[radio.Role]*journal.File{}}
	for _, role := range []radio.Role{radio.RoleClient, radio.RoleRelay, radio.RoleServer} {
		j, err := journal.Open(filepath.Join(n.dir, string(role)), journal.Identity{Run: "run1", Node: string(role), Role: role}, journal.Options{ReserveBytes: 4096})
		if err != nil {
			t.Fatal(err)
		}
		n.journals[role] = j
		t.Cleanup(func() { j.Close() })
	}
	return n
}

// start runs one node's part; the result ends it with a cause and waits.
func (n *stagedNodes) start(role radio.Role, part func(context.Context, executor.Config) error) (done <-chan error, end func(error) error) {
	log := slog.New(slog.DiscardHandler)
	cfg := executor.Config{
		RunID: "run1", Role: role, Sheet: n.sheet, SheetHash: runsheet.Hash(n.sheet), Version: "test", Device: "lo", Logger: log,
		Peers:   map[radio.Role]string{radio.RoleClient: "127.0.0.1", radio.RoleRelay: "127.0.0.1", radio.RoleServer: "127.0.0.1"},
		Journal: n.journals[role], Runner: runner.New(runner.Config{Dir: drivers, Logger: log}),
		Sources: sources{n.control()},
		TakeAssignments: func(ctx context.Context, c executor.Carrier) {
			takeAssignments(ctx, sourcePath(n.control(), role), log, c)
		},
	}
	if n.adjust != nil {
		n.adjust(&cfg)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- part(ctx, cfg) }()
	return ended, func(cause error) error {
		cancel(cause)
		return <-ended
	}
}

func (n *stagedNodes) finish(ends ...func(error) error) {
	n.t.Helper()
	for _, end := range ends {
		if err := end(executor.ErrFinish); err != nil {
			n.t.Error(err)
		}
	}
}

func recordsOf[T any](t *testing.T, j *journal.File, typ journal.Type) []T {
	t.Helper()
	var out []T
	err := j.Records(func(r journal.Record) error {
		if r.Type != typ {
			return nil
		}
		var b T
		out = append(out, b)
		return json.Unmarshal(r.Body, &out[len(out)-1])
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// await waits for so many records of a type.
func await(t *testing.T, j *journal.File, typ journal.Type, n int) {
	t.Helper()
	hang := time.After(30 * time.Second)
	for {
		changed := j.Changed()
		if len(recordsOf[json.RawMessage](t, j, typ)) >= n {
			return
		}
		select {
		case <-changed:
		case <-hang:
			t.Fatalf("fewer than %d records %s", n, typ)
		}
	}
}

func outcome(e journal.AttemptEnded) string {
	out := []string{fmt.Sprintf("%d: %s %s", e.Attempt, e.Verdict, e.Reason)}
	for _, f := range e.Flows {
		out = append(out, strings.TrimSpace(string(f.Verdict)+" "+f.Reason))
	}
	return strings.Join(out, ", ")
}

func TestFlowsFromOtherNodes(t *testing.T) {
	n := stageNodes(t, sourceSheet(t, 1, 10))
	client, server, relay := n.journals[radio.RoleClient], n.journals[radio.RoleServer], n.journals[radio.RoleRelay]
	_, endServer := n.start(radio.RoleServer, executor.Serve)
	await(t, server, journal.TypeListenerReady, 1)
	lead, _ := n.start(radio.RoleClient, executor.Lead)
	_, endRelay := n.start(radio.RoleRelay, executor.Attend) // may well be the last to be ready
	if err := <-lead; err != nil {
		t.Fatal(err)
	}
	eventually(t, "the relay's samples are durable", func() bool { return relay.Durable() == relay.Last() })
	n.finish(endRelay, endServer)
	e := recordsOf[journal.AttemptEnded](t, client, journal.TypeAttemptEnded)[0]
	if got, want := outcome(e), "1: succeeded , succeeded, succeeded, succeeded"; got != want {
		t.Fatalf("%s, expected %s (%+v)", got, want, e)
	}
	for i, size := range []int64{30_000, 20_000, 10_000} {
		f := e.Flows[i]
		if f.Flow != i || f.Result.SizeBytes != size || f.ConnectNS <= 0 {
			t.Errorf("flow %d: %+v", i, f)
		}
		received := slices.ContainsFunc(recordsOf[journal.Received](t, server, journal.TypeReceived), func(r journal.Received) bool {
			return r.Transfer == f.Transfer && r.Result != nil && r.Result.Digest == f.Result.Digest
		})
		if !received {
			t.Errorf("the server did not receive flow %d", i)
		}
	}
	if e.Duration < 100*time.Millisecond {
		t.Errorf("the last flow started before its time: %s", e.Duration)
	}
	// Only the leading node has records of attempts; samples stay where they were taken.
	if c := recordsOf[journal.Connected](t, client, journal.TypeConnected); len(c) != 1 || c[0].Flow != 1 {
		t.Errorf("connected: %+v", c)
	}
	if c := recordsOf[journal.Connected](t, relay, journal.TypeConnected); len(c) != 0 {
		t.Errorf("connected at the relay: %+v", c)
	}
	flows := map[int]bool{}
	for _, s := range recordsOf[journal.Samples](t, relay, journal.TypeSamples) {
		if s.Side != "client" || s.Attempt != 1 {
			t.Errorf("samples %+v", s)
		}
		flows[s.Flow] = true
	}
	if len(flows) != 2 || !flows[0] || !flows[2] {
		t.Errorf("the relay has samples of flows %v", flows)
	}
}

// TestSourceGoesDown: the attempt does not count, and is repeated when the node is back.
func TestSourceGoesDown(t *testing.T) {
	sheet, release := heldSheet(t, 2)
	n := stageNodes(t, sheet)
	_, endServer := n.start(radio.RoleServer, executor.Serve)
	await(t, n.journals[radio.RoleServer], journal.TypeListenerReady, 1)
	_, endRelay := n.start(radio.RoleRelay, executor.Attend)
	lead, _ := n.start(radio.RoleClient, executor.Lead)
	await(t, n.journals[radio.RoleClient], journal.TypeConnected, 1)
	gone := errors.New("SIGTERM")
	if err := endRelay(gone); !errors.Is(err, gone) {
		t.Errorf("relay: %v", err)
	}
	await(t, n.journals[radio.RoleClient], journal.TypeAttemptEnded, 1)
	release()
	_, endRelay = n.start(radio.RoleRelay, executor.Attend)
	if err := <-lead; err != nil {
		t.Fatal(err)
	}
	n.finish(endRelay, endServer)
	var got []string
	for _, e := range recordsOf[journal.AttemptEnded](t, n.journals[radio.RoleClient], journal.TypeAttemptEnded) {
		got = append(got, outcome(e))
	}
	want := []string{"1: invalid source-down, invalid source-down, invalid source-down, invalid source-down", "2: succeeded , succeeded, succeeded, succeeded"}
	if !slices.Equal(got, want) {
		t.Errorf("attempts %q, expected %q", got, want)
	}
}

// keptRunner keeps the processes that it starts for listeners.
type keptRunner struct {
	executor.Runner
	mu        sync.Mutex
	listeners []executor.Process
}

func (r *keptRunner) Start(ctx context.Context, protocol string, p *contract.Parameters, payload io.Reader) (executor.Process, error) {
	process, err := r.Runner.Start(ctx, protocol, p, payload)
	if p.Role == contract.RoleServer && err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.listeners = append(r.listeners, process)
	}
	return process, err
}

// The listener or its agent ends in the middle of an attempt, once and again: the
// attempts are invalid and use up none of those that the sheet allows, the leading
// node waits for the listener's return, and the trial succeeds.
func TestServerGoesDown(t *testing.T) {
	for what, down := range map[string]func(n *stagedNodes, kept *keptRunner, endServer func(error) error) func(error) error{
		"listener is killed": func(n *stagedNodes, kept *keptRunner, end func(error) error) func(error) error {
			kept.mu.Lock()
			defer kept.mu.Unlock()
			kept.listeners[len(kept.listeners)-1].Kill() // past the executor, as from outside
			return end
		},
		"agent ends": func(n *stagedNodes, _ *keptRunner, end func(error) error) func(error) error {
			gone := errors.New("SIGTERM")
			if err := end(gone); !errors.Is(err, gone) {
				t.Errorf("server: %v", err)
			}
			time.Sleep(300 * time.Millisecond) // attempts would be refused meanwhile
			_, end = n.start(radio.RoleServer, executor.Serve)
			return end
		},
	} {
		t.Run(what, func(t *testing.T) {
			sheet, release := heldSheet(t, 1)
			n := stageNodes(t, sheet)
			kept := &keptRunner{}
			n.adjust = func(c *executor.Config) {
				if c.Role == radio.RoleServer {
					kept.Runner = c.Runner
					c.Runner = kept
				}
			}
			client, server := n.journals[radio.RoleClient], n.journals[radio.RoleServer]
			_, endServer := n.start(radio.RoleServer, executor.Serve)
			await(t, server, journal.TypeListenerReady, 1)
			_, endRelay := n.start(radio.RoleRelay, executor.Attend)
			lead, _ := n.start(radio.RoleClient, executor.Lead)
			for i := range 2 {
				await(t, client, journal.TypeConnected, i+1)
				endServer = down(n, kept, endServer)
				await(t, client, journal.TypeAttemptEnded, i+1)
			}
			release()
			if err := <-lead; err != nil {
				t.Fatal(err)
			}
			n.finish(endRelay, endServer)
			var got []string
			for _, e := range recordsOf[journal.AttemptEnded](t, client, journal.TypeAttemptEnded) {
				got = append(got, fmt.Sprintf("%d: %s %s", e.Attempt, e.Verdict, e.Reason))
			}
			if want := []string{"1: invalid server-down", "2: invalid server-down", "3: succeeded "}; !slices.Equal(got, want) {
				t.Errorf("attempts %q, expected %q", got, want)
			}
			if e := recordsOf[journal.TrialEnded](t, client, journal.TypeTrialEnded); len(e) != 1 || e[0].Verdict != journal.Succeeded {
				t.Errorf("trial %+v", e)
			}
		})
	}
}

// A server that stays away makes the run pause with the reason, and a person lets it
// go on.
func TestRunPausesForServer(t *testing.T) {
	sheet, release := heldSheet(t, 1)
	n := stageNodes(t, sheet)
	commands := &commandQueue{}
	n.adjust = func(c *executor.Config) { c.Commands = commands }
	client := n.journals[radio.RoleClient]
	_, endServer := n.start(radio.RoleServer, executor.Serve)
	await(t, n.journals[radio.RoleServer], journal.TypeListenerReady, 1)
	_, endRelay := n.start(radio.RoleRelay, executor.Attend)
	lead, _ := n.start(radio.RoleClient, executor.Lead)
	await(t, client, journal.TypeConnected, 1)
	if err := endServer(errors.New("SIGTERM")); err == nil {
		t.Error("the server ended well")
	}
	await(t, client, journal.TypeCommand, 1)
	c := recordsOf[journal.Command](t, client, journal.TypeCommand)[0]
	if c.Kind != journal.CommandPause || c.By != journal.Self || !strings.Contains(c.Reason, "trial 0") || !strings.Contains(c.Reason, "server") {
		t.Errorf("command %+v", c)
	}
	release()
	_, endServer = n.start(radio.RoleServer, executor.Serve)
	commands.set([]executor.Command{{ID: "go", Kind: journal.CommandResume}})
	if err := <-lead; err != nil {
		t.Fatal(err)
	}
	n.finish(endRelay, endServer)
	if e := recordsOf[journal.TrialEnded](t, client, journal.TypeTrialEnded); len(e) != 1 || e[0].Verdict != journal.Succeeded {
		t.Errorf("trial %+v", e)
	}
}

// TestAbortReachesOtherNodes: flows end everywhere with the run, and the other
// node can carry the next attempt.
func TestAbortReachesOtherNodes(t *testing.T) {
	sheet, release := heldSheet(t, 1)
	n := stageNodes(t, sheet)
	_, endServer := n.start(radio.RoleServer, executor.Serve)
	await(t, n.journals[radio.RoleServer], journal.TypeListenerReady, 1)
	_, endRelay := n.start(radio.RoleRelay, executor.Attend)
	_, endLead := n.start(radio.RoleClient, executor.Lead)
	await(t, n.journals[radio.RoleClient], journal.TypeConnected, 1)
	gone := errors.New("SIGTERM")
	if err := endLead(gone); !errors.Is(err, gone) {
		t.Errorf("lead: %v", err)
	}
	e := recordsOf[journal.AttemptEnded](t, n.journals[radio.RoleClient], journal.TypeAttemptEnded)
	if want := "1: aborted interrupted, aborted interrupted, aborted interrupted, aborted interrupted"; len(e) != 1 || outcome(e[0]) != want {
		t.Errorf("attempts %+v, expected %s", e, want)
	}
	release()
	lead, _ := n.start(radio.RoleClient, executor.Lead)
	if err := <-lead; err != nil {
		t.Fatal(err)
	}
	n.finish(endRelay, endServer)
	e = recordsOf[journal.AttemptEnded](t, n.journals[radio.RoleClient], journal.TypeAttemptEnded)
	if want := "2: succeeded , succeeded, succeeded, succeeded"; len(e) != 2 || outcome(e[1]) != want {
		t.Errorf("attempts %+v, expected %s", e, want)
	}
}

func TestRefusedAssignments(t *testing.T) {
	n := stageNodes(t, sourceSheet(t, 1, 0))
	_, endRelay := n.start(radio.RoleRelay, executor.Attend)
	s := sources{n.control()}
	good := executor.FlowAssignment{Run: "run1", SheetHash: runsheet.Hash(n.sheet), Trial: 0, Attempt: 1}
	for want, change := range map[string]func(*executor.FlowAssignment){
		"run run2":     func(o *executor.FlowAssignment) { o.Run = "run2" },
		"sheet ffff":   func(o *executor.FlowAssignment) { o.SheetHash = "ffff" },
		"trial 1":      func(o *executor.FlowAssignment) { o.Trial = 1 },
		"trial -1":     func(o *executor.FlowAssignment) { o.Trial = -1 },
		"attempt 0 of": func(o *executor.FlowAssignment) { o.Attempt = 0 },
	} {
		o := good
		change(&o)
		if _, err := s.Prepare(t.Context(), radio.RoleRelay, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, expected %q", o, err, want)
		}
	}
	// A message that is no assignment is ignored, and so is a withdrawn assignment.
	c, err := net.Dial("unix", sourcePath(n.control(), radio.RoleRelay))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(c, `{"began":"nonsense"}`)
	c.Close()
	x, err := s.Prepare(t.Context(), radio.RoleRelay, good)
	if err != nil {
		t.Fatal(err)
	}
	x.Close()
	if x, err = s.Prepare(t.Context(), radio.RoleRelay, good); err != nil {
		t.Fatal(err)
	}
	x.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := s.Prepare(ctx, radio.RoleServer, good); err == nil {
		t.Error("an assignment was accepted by nobody")
	}
	n.finish(endRelay)
	if got := recordsOf[journal.Samples](t, n.journals[radio.RoleRelay], journal.TypeSamples); len(got) != 0 {
		t.Errorf("assignments that were not begun left samples: %+v", got)
	}
}
