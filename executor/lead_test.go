package executor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol"
	"linktrial/protocols/contract"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scripted is a runner whose clients succeed at once, or fail with the code that fail returns.
type scripted struct {
	mu      sync.Mutex
	started []contract.Parameters
	fail    func(p *contract.Parameters) contract.Code
	final   *contract.Sample // of every result
}

func (s *scripted) Start(_ context.Context, _ string, p *contract.Parameters, payload io.Reader) (Process, error) {
	s.mu.Lock()
	s.started = append(s.started, *p)
	s.mu.Unlock()
	var out bytes.Buffer
	say := func(e contract.Event) {
		b, _ := json.Marshal(e)
		out.Write(append(b, '\n'))
	}
	id := p.Transfer.ID
	say(contract.Event{Event: contract.KindReady, Info: &contract.Info{Implementation: "script"}})
	code := contract.Code("")
	if s.fail != nil {
		code = s.fail(p)
	}
	if code != "" {
		say(contract.Event{Event: contract.KindError, Transfer: id, Code: code, Message: "as scripted"})
	} else {
		say(contract.Event{Event: contract.KindConnected, Transfer: id, ConnectNS: 7})
		say(contract.Event{Event: contract.KindSample, Transfer: id, Sample: &contract.Sample{ElapsedNS: 1, SentBytes: p.Transfer.SizeBytes}})
		size := p.Transfer.SizeBytes
		if p.Transfer.DurationMS > 0 {
			size = 1000
		}
		// As long as 1000 bytes take at the least on the sheet's radio.
		say(contract.Event{Event: contract.KindResult, Transfer: id, Result: &contract.Result{SizeBytes: size, ElapsedNS: 100e6, Digest: strings.Repeat("0", 64), Final: s.final}})
	}
	done := make(chan struct{})
	close(done)
	return ranProcess{io.NopCloser(&out), done}, nil
}

type ranProcess struct {
	out  io.ReadCloser
	done chan struct{}
}

func (p ranProcess) Output() io.ReadCloser { return p.out }
func (p ranProcess) Done() <-chan struct{} { return p.done }
func (p ranProcess) Exit() Exit            { return Exit{} }
func (p ranProcess) Log() string           { return "log" }
func (p ranProcess) Terminate()            {}
func (p ranProcess) Stops() *Stops         { return nil }
func (p ranProcess) Kill()                 {}

// fakeRadio is an emulated radio that records its calls.
type fakeRadio struct {
	mu    sync.Mutex
	calls []string
	flows []radiocontrol.Flow // of the last trial
	fail  func(call string) error
	ideal []time.Duration    // of every report
	hops  []radiocontrol.Hop // of every report

	stalled []time.Duration          // of the next reports
	traffic [][]radiocontrol.Traffic // the same
}

func (a *fakeRadio) note(call string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls = append(a.calls, call)
	if a.fail != nil {
		return a.fail(call)
	}
	return nil
}

func (a *fakeRadio) Configure(context.Context, *radio.Network) error { return a.note("configure") }
func (a *fakeRadio) Begin(_ context.Context, b radiocontrol.Begin) error {
	a.mu.Lock()
	a.flows = b.Flows
	a.mu.Unlock()
	return a.note(fmt.Sprintf("begin %s seed %d flows %d", b.Trial, b.Seed, len(b.Flows)))
}
func (a *fakeRadio) End(_ context.Context, trial string) (*radiocontrol.Report, error) {
	r := &radiocontrol.Report{Duration: time.Second, Ideal: a.ideal, Hops: a.hops}
	if len(a.stalled) > 0 {
		r.Stalled, a.stalled = a.stalled[0], a.stalled[1:]
	}
	if len(a.traffic) > 0 {
		r.Traffic, a.traffic = a.traffic[0], a.traffic[1:]
	}
	return r, a.note("end " + trial)
}

func testSheet(t testing.TB, trials, attempts int) []byte {
	t.Helper()
	s := &runsheet.Sheet{Format: runsheet.Format, Plan: "p", Control: runsheet.ControlOutOfBand,
		Limits:     runsheet.Limits{Connect: time.Second, Transfer: time.Second, Attempts: attempts},
		Treatments: []runsheet.Treatment{{Name: "a", Protocol: "a", Port: 5001, CompleteKnowledge: true}, {Name: "b", Protocol: "b", Port: 5002}},
		Network: &radio.Network{MTUBytes: 1500, Medium: radio.MediumShared,
			Nodes: []radio.Node{{Role: radio.RoleClient, Address: "10.77.0.1"}, {Role: radio.RoleRelay, Address: "10.77.0.2"}, {Role: radio.RoleServer, Address: "10.77.0.3"}},
			Links: []radio.Link{
				{A: radio.RoleClient, B: radio.RoleRelay, RateBitsPerSecond: 1e6, Delay: 10 * time.Millisecond, Channel: radio.Channel{Model: radio.ChannelUniform, Loss: 0.1}},
				{A: radio.RoleRelay, B: radio.RoleServer, RateBitsPerSecond: 2e6, Delay: 10 * time.Millisecond, Channel: radio.Channel{Model: radio.ChannelUniform, Loss: 0.1}},
			}},
	}
	for i := range trials {
		tr := s.Treatments[i%2].Name
		s.Trials = append(s.Trials, runsheet.Trial{Index: i, Iteration: i/2 + 1, Treatment: tr, ChannelSeed: uint64(i / 2),
			Flows: []runsheet.Flow{{Treatment: tr, From: radio.RoleClient, To: radio.RoleServer, SizeBytes: 1000, PayloadSeed: uint64(i)}}})
	}
	b, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func openJournal(t testing.TB, path string, o journal.Options) *journal.File {
	t.Helper()
	o.ReserveBytes = -1
	j, err := journal.Open(path, journal.Identity{Run: "r", Node: "n", Role: radio.RoleClient}, o)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func config(sheet []byte, j Journal, r Runner, a Radio) Config {
	c := Config{RunID: "r", Role: radio.RoleClient, Sheet: sheet, SheetHash: runsheet.Hash(sheet), Journal: j, Runner: r, Version: "test"}
	if a != nil {
		c.Radio = a
	}
	return c
}

func read(t testing.TB, j Journal) []journal.Record {
	t.Helper()
	var out []journal.Record
	if err := j.Records(func(r journal.Record) error { out = append(out, r); return nil }); err != nil {
		t.Fatal(err)
	}
	return out
}

func body[T any](t testing.TB, r journal.Record) T {
	t.Helper()
	var b T
	if err := json.Unmarshal(r.Body, &b); err != nil {
		t.Fatal(err)
	}
	return b
}

// checkWhole asserts what must hold of any journal of a completed run: every
// trial has one terminal record, in the sheet's order; every attempt one of
// its own, between its start and the next one's; attempts count up from 1.
func checkWhole(t testing.TB, records []journal.Record, trials, limit int) {
	t.Helper()
	next, attempt, counted := 0, 0, 0
	openTrial := -1
	ends := 0
	for _, r := range records {
		switch r.Type {
		case journal.TypeAttemptStarted:
			b := body[journal.AttemptStarted](t, r)
			if openTrial >= 0 || b.Trial != next || b.Attempt != attempt+1 {
				t.Fatalf("record %d starts attempt %d/%d; open %d, next trial %d, last attempt %d", r.Seq, b.Trial, b.Attempt, openTrial, next, attempt)
			}
			openTrial, attempt = b.Trial, b.Attempt
		case journal.TypeAttemptEnded:
			b := body[journal.AttemptEnded](t, r)
			if openTrial != b.Trial || attempt != b.Attempt {
				t.Fatalf("record %d ends attempt %d/%d, open is %d/%d", r.Seq, b.Trial, b.Attempt, openTrial, attempt)
			}
			openTrial = -1
			if b.Reason != journal.ReasonInterrupted {
				counted++
			}
		case journal.TypeTrialEnded:
			b := body[journal.TrialEnded](t, r)
			if b.Trial != next || openTrial >= 0 || b.Attempts != attempt {
				t.Fatalf("record %d ends trial %+v, expected trial %d with %d attempts", r.Seq, b, next, attempt)
			}
			if counted < 1 || counted > limit {
				t.Fatalf("trial %d has %d attempts that count, at most %d", b.Trial, counted, limit)
			}
			next, attempt, counted = next+1, 0, 0
		case journal.TypeRunEnded:
			ends++
			if e := body[journal.RunEnded](t, r); e.End != journal.RunCompleted || next != trials {
				t.Fatalf("run ended %+v after %d of %d trials", e, next, trials)
			}
		}
	}
	if ends != 1 {
		t.Fatalf("%d run-ended records", ends)
	}
}

// Wherever a crash cuts the journal, the resumed run has every trial once.
func TestResumeFromEveryCrashPoint(t *testing.T) {
	const trials, limit = 4, 2
	sheet := testSheet(t, trials, limit)
	// Every other transfer fails, so that attempts, retries and failed trials all occur.
	fail := func(p *contract.Parameters) contract.Code {
		if p.Transfer.ID[0]%2 == 0 {
			return contract.CodeReset
		}
		return ""
	}
	path := filepath.Join(t.TempDir(), "j")
	j := openJournal(t, path, journal.Options{})
	if err := Lead(context.Background(), config(sheet, j, &scripted{fail: fail}, &fakeRadio{})); err != nil {
		t.Fatal(err)
	}
	checkWhole(t, read(t, j), trials, limit)
	j.Close()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	cuts := []int{0}
	for i, c := range whole {
		if c == '\n' {
			cuts = append(cuts, i, i+1, i+1+(len(whole)-i-1)/7) // before and after each record's end, and within a later one
		}
	}
	for _, cut := range cuts {
		cut = min(cut, len(whole))
		if err := os.WriteFile(path, whole[:cut], 0o644); err != nil {
			t.Fatal(err)
		}
		j := openJournal(t, path, journal.Options{})
		before := j.Last()
		if err := Lead(context.Background(), config(sheet, j, &scripted{fail: fail}, &fakeRadio{})); err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		checkWhole(t, read(t, j), trials, limit)
		if cut == len(whole) && j.Last() != before {
			t.Errorf("%d records were added to an ended run", j.Last()-before)
		}
		j.Close()
	}
}

func TestOrderOfRadioCalls(t *testing.T) {
	sheet := testSheet(t, 3, 1)
	j := openJournal(t, filepath.Join(t.TempDir(), "j"), journal.Options{})
	defer j.Close()
	a, r := &fakeRadio{}, &scripted{}
	boundaries := 0
	cfg := config(sheet, j, r, a)
	cfg.Observer = &hooks{
		begun:    func(_ context.Context, recorded bool) error { return a.note(fmt.Sprintf("begun %t", recorded)) },
		leading:  func() { a.note("leading") },
		boundary: func() { boundaries++ },
		closing:  func() { a.note("closing") },
	}
	if err := Lead(context.Background(), cfg); err != nil {
		t.Fatal(err)
	}
	want := []string{"begun false", "leading", "configure",
		"begin r/0/1 seed 0 flows 1", "end r/0/1", "begin r/1/1 seed 0 flows 1", "end r/1/1", "begin r/2/1 seed 1 flows 1", "end r/2/1", "closing"}
	if !slices.Equal(a.calls, want) {
		t.Errorf("calls %q, expected %q", a.calls, want)
	}
	if boundaries != 2 {
		t.Errorf("%d trial boundaries, expected 2", boundaries)
	}
	p := r.started[0]
	if p.Local.Address != "10.77.0.1" || p.Remote != (contract.Endpoint{Address: "10.77.0.3", Port: 5001}) || p.Limits.ConnectMS != 1000 {
		t.Errorf("parameters %+v", p)
	}
	if l := p.Link; l == nil || l.RateBitsPerSecond < 666_666 || l.RateBitsPerSecond > 666_667 || l.MTUBytes != 1500 || l.LossShare < 0.189 || l.LossShare > 0.191 || l.RoundTripMS < 40 {
		t.Errorf("complete knowledge %+v", p.Link)
	}
	if r.started[1].Link != nil {
		t.Error("treatment b knows the link")
	}
}

func TestRadioIsStartedAgain(t *testing.T) {
	sheet := testSheet(t, 2, 2)
	j := openJournal(t, filepath.Join(t.TempDir(), "j"), journal.Options{})
	defer j.Close()
	failed := map[string]bool{}
	a := &fakeRadio{fail: func(call string) error {
		// The connection breaks while the first trial runs, and at the second's start.
		if (call == "end r/0/1" || strings.HasPrefix(call, "begin r/1/1")) && !failed[call] {
			failed[call] = true
			return errors.New("broken pipe")
		}
		return nil
	}}
	noReport := radioWithoutReport{a}
	if err := Lead(context.Background(), config(sheet, j, &scripted{}, noReport)); err != nil {
		t.Fatal(err)
	}
	checkWhole(t, read(t, j), 2, 2)
	var got []string
	for _, r := range read(t, j) {
		if r.Type == journal.TypeAttemptEnded {
			e := body[journal.AttemptEnded](t, r)
			got = append(got, fmt.Sprintf("%d/%d %s %s", e.Trial, e.Attempt, e.Verdict, e.Reason))
		}
	}
	if want := []string{"0/1 invalid radio-down", "0/2 succeeded ", "1/1 succeeded "}; !slices.Equal(got, want) {
		t.Errorf("attempts %q, expected %q", got, want)
	}
	if i := slices.Index(a.calls, "begin r/1/1 seed 0 flows 1"); i < 0 || a.calls[i+1] != "configure" {
		t.Errorf("an emulator that was started again was not configured: %q", a.calls)
	}
}

// goneRadio ends during the first attempt.
type goneRadio struct {
	*fakeRadio
	gone chan struct{}
}

func (r goneRadio) Gone(ctx context.Context) string {
	select {
	case <-r.gone:
		return "the emulated radios ended"
	case <-ctx.Done():
		return ""
	}
}

// An attempt whose radios have gone is not waited for until it times out.
func TestRadioEndsDuringAnAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sheet := testSheet(t, 2, 2)
		j := openJournal(t, filepath.Join(t.TempDir(), "j"), journal.Options{})
		defer j.Close()
		r := goneRadio{&fakeRadio{}, make(chan struct{})}
		began, hung := time.Now(), false
		r.fail = func(call string) error {
			if call == "end r/0/1" {
				r.gone = make(chan struct{}) // it was started again
				return nil
			}
			return nil
		}
		runner := &steered{started: func(string, *contract.Parameters) bool {
			if hung {
				return false
			}
			hung = true
			time.AfterFunc(100*time.Millisecond, func() { close(r.gone) })
			return true
		}}
		if err := Lead(context.Background(), config(sheet, j, runner, &r)); err != nil {
			t.Fatal(err)
		}
		checkWhole(t, read(t, j), 2, 2)
		var got []string
		for _, rec := range read(t, j) {
			if rec.Type == journal.TypeAttemptEnded {
				e := body[journal.AttemptEnded](t, rec)
				got = append(got, fmt.Sprintf("%d/%d %s %s %s", e.Trial, e.Attempt, e.Verdict, e.Reason, e.Message))
			}
		}
		if want := []string{"0/1 invalid radio-down the emulated radios ended", "0/2 succeeded  ", "1/1 succeeded  "}; !slices.Equal(got, want) {
			t.Errorf("attempts %q, expected %q", got, want)
		}
		if took := time.Since(began); took > 900*time.Millisecond { // of the limit of a transfer, 1 s, nothing is waited for
			t.Errorf("the run took %s", took)
		}
	})
}

// radioWithoutReport has no report where the call failed, as a broken connection.
type radioWithoutReport struct{ *fakeRadio }

func (r radioWithoutReport) End(ctx context.Context, trial string) (*radiocontrol.Report, error) {
	report, err := r.fakeRadio.End(ctx, trial)
	if err != nil {
		report = nil
	}
	return report, err
}

func TestDiskFullStopsAtTrialBoundary(t *testing.T) {
	sheet := testSheet(t, 5, 1)
	j := openJournal(t, filepath.Join(t.TempDir(), "j"), journal.Options{})
	defer j.Close()
	full := &fullAfter{File: j, boundaries: 3}
	if err := Lead(context.Background(), config(sheet, full, &scripted{}, nil)); err != nil {
		t.Fatal(err)
	}
	trials, last := 0, journal.RunEnded{}
	for _, r := range read(t, j) {
		switch r.Type {
		case journal.TypeTrialEnded:
			trials++
		case journal.TypeRunEnded:
			last = body[journal.RunEnded](t, r)
		}
	}
	if trials != 2 || last.End != journal.RunStopped || !strings.HasPrefix(last.Reason, "disk full") {
		t.Errorf("%d trials, run ended %+v", trials, last)
	}
}

// Where the run can go on later, a full disk leaves it open.
func TestDiskFullLeavesTheRunOpen(t *testing.T) {
	j := openJournal(t, filepath.Join(t.TempDir(), "j"), journal.Options{})
	defer j.Close()
	cfg := config(testSheet(t, 5, 1), &fullAfter{File: j, boundaries: 3}, &scripted{}, nil)
	cfg.Commands = &commandList{}
	if err := Lead(context.Background(), cfg); !errors.Is(err, journal.ErrDiskFull) {
		t.Fatalf("error %v, expected %v", err, journal.ErrDiskFull)
	}
	for _, r := range read(t, j) {
		if r.Type == journal.TypeRunEnded {
			t.Error("the run has ended")
		}
	}
}

type fullAfter struct {
	*journal.File
	boundaries int
}

func (f *fullAfter) CheckSpace() error {
	if f.boundaries--; f.boundaries <= 0 {
		return fmt.Errorf("%w: 3 bytes are left", journal.ErrDiskFull)
	}
	return nil
}

func TestFlowsOfOneTrial(t *testing.T) {
	encoded := testSheet(t, 1, 1)
	s, err := runsheet.Decode(encoded)
	if err != nil {
		t.Fatal(err)
	}
	f := s.Trials[0].Flows[0]
	late := f
	late.Treatment, late.Start = "b", 30*time.Millisecond
	bounded := f
	bounded.Duration, bounded.SizeBytes = 1500*time.Microsecond, 1<<40
	elsewhere := f
	elsewhere.From = radio.RoleRelay
	s.Trials[0].Flows = []runsheet.Flow{f, late}
	for _, c := range []struct {
		flows  []runsheet.Flow
		want   journal.Verdict
		reason string
	}{
		{[]runsheet.Flow{f, late}, journal.Succeeded, ""},
		{[]runsheet.Flow{f, bounded}, journal.Succeeded, ""},
		{[]runsheet.Flow{f, elsewhere}, journal.Failed, journal.ReasonElsewhere},
	} {
		s.Trials[0].Flows = c.flows
		sheet, err := s.Encode()
		if err != nil {
			t.Fatal(err)
		}
		j := openJournal(t, filepath.Join(t.TempDir(), "j"), journal.Options{})
		r, a := &scripted{}, &fakeRadio{}
		if err := Lead(context.Background(), config(sheet, j, r, a)); err != nil {
			t.Fatal(err)
		}
		for i, spec := range c.flows {
			// What a time bounds has no Ideal, which its bound would make dear to compute.
			want, ms := spec.SizeBytes, int64(0)
			if spec.Duration > 0 {
				want, ms = 0, 2
			}
			if a.flows[i].SizeBytes != want {
				t.Errorf("flow %d was announced to the radio with %d bytes, expected %d", i, a.flows[i].SizeBytes, want)
			}
			if ran := slices.IndexFunc(r.started, func(p contract.Parameters) bool {
				return p.Transfer.SizeBytes == spec.SizeBytes && p.Transfer.DurationMS == ms
			}); ran < 0 {
				t.Errorf("no client was told %d bytes and %d ms: %+v", spec.SizeBytes, ms, r.started)
			}
		}
		for _, rec := range read(t, j) {
			if rec.Type != journal.TypeAttemptEnded {
				continue
			}
			e := body[journal.AttemptEnded](t, rec)
			if e.Verdict != c.want || e.Reason != c.reason || len(e.Flows) != 2 || e.Flows[0].Verdict != journal.Succeeded {
				t.Errorf("attempt %+v", e)
			}
			if slices.Contains(c.flows, late) && e.Duration < late.Start {
				t.Errorf("the second flow started before its time: %s", e.Duration)
			}
		}
		j.Close()
	}
}

func TestAbortBeforeTheStart(t *testing.T) {
	for name, f := range map[string]func(context.Context, Config) error{"lead": Lead, "serve": Serve, "attend": Attend} {
		t.Run(name, func(t *testing.T) {
			sheet := testSheet(t, 2, 1)
			j := openJournal(t, filepath.Join(t.TempDir(), "j"), journal.Options{})
			defer j.Close()
			ctx, cancel := context.WithCancelCause(context.Background())
			cancel(&AbortError{Reason: "changed my mind"})
			cfg := config(sheet, j, &scripted{}, nil)
			cfg.Observer = &hooks{begun: func(ctx context.Context, _ bool) error { return ctx.Err() }}
			if err := f(ctx, cfg); err != nil {
				t.Fatal(err)
			}
			all := read(t, j)
			if e := body[journal.RunEnded](t, all[len(all)-1]); e.End != journal.RunAborted || e.Reason != "changed my mind" {
				t.Errorf("run ended %+v", e)
			}
		})
	}
}
