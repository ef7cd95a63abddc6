package executor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/internal/notify"
	"linktrial/internal/radio"
	"linktrial/protocols/contract"
)

// commandList is where a test gives commands.
type commandList struct {
	mu   sync.Mutex
	all  []Command
	more notify.Notifier
}

func (d *commandList) Given() ([]Command, <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.all), d.more.Changed()
}

func (d *commandList) give(c ...Command) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = append(d.all, c...)
	d.more.Notify()
}

// memory is a journal without a disk.
type memory struct {
	mu      sync.Mutex
	records []journal.Record
}

func (m *memory) Append(t journal.Type, body any) (int64, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r := journal.Record{Seq: int64(len(m.records) + 1), Run: "r", Node: "n", Role: radio.RoleClient, Type: t, Body: b}
	m.records = append(m.records, r)
	return r.Seq, nil
}
func (m *memory) Sync() error       { return nil }
func (m *memory) CheckSpace() error { return nil }
func (m *memory) Records(f func(journal.Record) error) error {
	m.mu.Lock()
	all := slices.Clone(m.records)
	m.mu.Unlock()
	for _, r := range all {
		if err := f(r); err != nil {
			return err
		}
	}
	return nil
}

// steered is a runner that calls started at each start; where that returns
// true, the client hangs until it is terminated.
type steered struct {
	scripted
	started func(protocol string, p *contract.Parameters) (hang bool)
}

func (s *steered) Start(ctx context.Context, protocol string, p *contract.Parameters, payload io.Reader) (Process, error) {
	if s.started != nil && s.started(protocol, p) {
		r, w := io.Pipe()
		return &hanging{out: r, in: w, done: make(chan struct{})}, nil
	}
	return s.scripted.Start(ctx, protocol, p, payload)
}

type hanging struct {
	out  io.ReadCloser
	in   *io.PipeWriter
	done chan struct{}
	once sync.Once
}

func (h *hanging) Output() io.ReadCloser { return h.out }
func (h *hanging) Done() <-chan struct{} { return h.done }
func (h *hanging) Exit() Exit            { return Exit{Code: -1, Signal: "terminated"} }
func (h *hanging) Log() string           { return "" }
func (h *hanging) Stops() *Stops         { return nil }
func (h *hanging) Kill()                 { h.Terminate() }
func (h *hanging) Terminate() {
	h.once.Do(func() {
		h.in.Close()
		close(h.done)
	})
}

// story is what a journal says happened, one short text for each event.
func story(t testing.TB, records []journal.Record) []string {
	t.Helper()
	var out []string
	for _, r := range records {
		switch r.Type {
		case journal.TypeCommand:
			b := body[journal.Command](t, r)
			s := string(b.Kind)
			if b.Trial != nil {
				s += fmt.Sprint(" ", *b.Trial)
			}
			if b.Rejected != "" {
				s += " rejected: " + b.Rejected
			}
			out = append(out, s)
		case journal.TypeAttemptStarted:
			b := body[journal.AttemptStarted](t, r)
			out = append(out, fmt.Sprintf("start %d/%d", b.Trial, b.Attempt))
		case journal.TypeAttemptEnded:
			b := body[journal.AttemptEnded](t, r)
			out = append(out, strings.TrimSpace(fmt.Sprintf("end %d/%d %s %s", b.Trial, b.Attempt, b.Verdict, b.Reason)))
		case journal.TypeTrialEnded:
			b := body[journal.TrialEnded](t, r)
			out = append(out, strings.TrimSpace(fmt.Sprintf("trial %d %s %s", b.Trial, b.Verdict, b.Reason)))
		case journal.TypeRunEnded:
			out = append(out, "run "+string(body[journal.RunEnded](t, r).End))
		}
	}
	return out
}

func sameStory(t *testing.T, j Journal, want ...string) {
	t.Helper()
	if got := story(t, read(t, j)); !slices.Equal(got, want) {
		t.Errorf("the journal says\n  %s\nexpected\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func pause(id string) Command  { return Command{ID: id, Kind: journal.CommandPause, By: "ada"} }
func resume(id string) Command { return Command{ID: id, Kind: journal.CommandResume} }
func skip(id string, trial int) Command {
	return Command{ID: id, Kind: journal.CommandSkip, Trial: trial}
}
func repeat(id string, trial int) Command {
	return Command{ID: id, Kind: journal.CommandRepeat, Trial: trial}
}

func TestPauseBeforeTheFirstTrial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, m, a := &commandList{}, &memory{}, &fakeRadio{}
		d.give(pause("1"), repeat("2", 0))
		held := make(chan struct{})
		cfg := config(testSheet(t, 2, 1), m, &scripted{}, a)
		cfg.Commands = d
		released := 0
		cfg.Observer = &hooks{paused: func() func() { close(held); return func() { released++ } }}
		done := make(chan error, 1)
		go func() { done <- Lead(t.Context(), cfg) }()
		<-held
		d.give(skip("3", 0))
		synctest.Wait()
		if s := story(t, read(t, m)); !slices.Contains(s, "trial 0 aborted skipped") {
			t.Errorf("the skip is not applied in the pause: %s", s)
		}
		if s := strings.Join(story(t, read(t, m)), " "); strings.Contains(s, "start") || released > 0 {
			t.Errorf("a trial started in the pause: %s", s)
		}
		d.give(pause("4"), resume("5"))
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		sameStory(t, m, "pause", "repeat 0 rejected: trial 0 had not ended", "skip 0", "trial 0 aborted skipped", "pause", "resume",
			"start 1/1", "end 1/1 succeeded", "trial 1 succeeded", "run completed")
		if released != 1 {
			t.Errorf("released %d times", released)
		}
		if slices.Contains(a.calls, "begin r/0/1 seed 0 flows 1") {
			t.Error("the skipped trial began on the radio")
		}
		if c := body[journal.Command](t, read(t, m)[1]); c.ID != "1" || c.By != "ada" {
			t.Errorf("command %+v", c)
		}
	})
}

func TestSkipOfTheRunningTrial(t *testing.T) {
	d, m, a := &commandList{}, &memory{}, &fakeRadio{}
	n := 0
	cfg := config(testSheet(t, 3, 3), m, &steered{started: func(protocol string, _ *contract.Parameters) bool {
		n++
		if n == 1 {
			d.give(skip("1", 2), skip("2", 0))
		}
		return n == 1
	}}, a)
	cfg.Commands = d
	if err := Lead(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	sameStory(t, m, "start 0/1", "skip 0", "end 0/1 aborted skipped", "trial 0 aborted skipped", "skip 2", "trial 2 aborted skipped",
		"start 1/1", "end 1/1 succeeded", "trial 1 succeeded", "run completed")
	if !slices.Contains(a.calls, "end r/0/1") {
		t.Error("the skipped trial did not end on the radio")
	}
}

// A trial whose attempts fail is skipped between two of them.
func TestSkipBetweenAttempts(t *testing.T) {
	d, m := &commandList{}, &memory{}
	r := &steered{}
	r.fail = func(*contract.Parameters) contract.Code {
		if len(r.scripted.started) == 2 {
			d.give(skip("1", 0))
		}
		if len(r.scripted.started) <= 2 {
			return contract.CodeReset
		}
		return ""
	}
	cfg := config(testSheet(t, 2, 9), m, r, nil)
	cfg.Commands = d
	if err := Lead(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	got := story(t, read(t, m))
	// The command comes while the second attempt runs or just after it.
	want := []string{"start 0/1", "end 0/1 failed reset", "start 0/2", "end 0/2 failed reset", "trial 0 aborted skipped", "start 1/1", "end 1/1 succeeded", "trial 1 succeeded", "run completed"}
	got = slices.DeleteFunc(got, func(s string) bool { return s == "skip 0" })
	if i := slices.Index(got, "end 0/2 aborted skipped"); i >= 0 {
		got[i] = "end 0/2 failed reset"
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, expected %q", got, want)
	}
}

// On real radios the leading node may not have learnt what was not in order at another one:
// the orchestrator can have the last trial repeated for it.
func TestRepeatAfterTheLastTrial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, m := &commandList{}, &memory{}
		cfg := config(testSheet(t, 1, 1), m, &scripted{}, nil)
		paths := &scriptedPaths{}
		paths.set(pathFine)
		cfg.Commands, cfg.Paths, cfg.Network = d, paths, func(string) string { return "tcp" }
		began := time.Now()
		go func() {
			time.Sleep(8 * time.Second)
			d.give(repeat("1", 0))
		}()
		require.NoError(t, Lead(t.Context(), cfg))
		sameStory(t, m, "start 0/1", "end 0/1 succeeded", "trial 0 succeeded", "repeat 0", "start 0/2", "end 0/2 succeeded", "trial 0 succeeded", "run completed")
		if took := time.Since(began); took > time.Minute {
			t.Errorf("the run took %s", took)
		}
	})
}

func TestRepeat(t *testing.T) {
	d, m := &commandList{}, &memory{}
	n := 0
	r := &steered{}
	r.fail = func(*contract.Parameters) contract.Code {
		n++
		switch n {
		case 2: // trial 1 runs: trial 0 has ended, trial 1 has not
			d.give(repeat("1", 0), repeat("2", 1), repeat("3", 0))
		case 3: // the repetition fails, and no other follows by itself
			return contract.CodeReset
		case 5: // the last trial of the sheet
			d.give(repeat("4", 2), repeat("5", 0))
		}
		return ""
	}
	cfg := config(testSheet(t, 3, 2), m, r, nil)
	cfg.Commands = d
	boundaries := 0
	cfg.Observer = &hooks{boundary: func() { boundaries++ }}
	if err := Lead(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	// Commands given while trial 1 runs are applied when it has ended.
	sameStory(t, m, "start 0/1", "end 0/1 succeeded", "trial 0 succeeded", "start 1/1", "end 1/1 succeeded", "trial 1 succeeded",
		"repeat 0", "repeat 1", "repeat 0 rejected: trial 0 had not ended",
		"start 0/2", "end 0/2 failed reset", "trial 0 failed", "start 1/2", "end 1/2 succeeded", "trial 1 succeeded",
		"start 2/1", "end 2/1 succeeded", "trial 2 succeeded", "repeat 2", "repeat 0",
		"start 2/2", "end 2/2 succeeded", "trial 2 succeeded", "start 0/3", "end 0/3 succeeded", "trial 0 succeeded", "run completed")
	if boundaries != 7 {
		t.Errorf("%d trial boundaries, expected 7", boundaries)
	}
}

// A repetition that is skipped before it begins leaves what was measured.
func TestSkipOfARepetition(t *testing.T) {
	d, m := &commandList{}, &memory{}
	n := 0
	cfg := config(testSheet(t, 2, 1), m, &steered{started: func(string, *contract.Parameters) bool {
		n++
		switch n {
		case 2:
			d.give(repeat("1", 0), skip("2", 0), repeat("3", 0), repeat("4", 1))
		case 3: // trial 1, once more
			d.give(skip("5", 1))
			return true
		}
		return false
	}}, nil)
	cfg.Commands = d
	if err := Lead(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	sameStory(t, m, "start 0/1", "end 0/1 succeeded", "trial 0 succeeded", "start 1/1", "end 1/1 succeeded", "trial 1 succeeded",
		"repeat 0", "skip 0", "repeat 0 rejected: trial 0 had not ended", "repeat 1", "trial 0 succeeded skipped",
		"start 1/2", "skip 1", "end 1/2 aborted skipped", "trial 1 aborted skipped", "run completed")
}

// An unknown command, and one of a trial that is not there, hold nothing up.
func TestRejectedCommands(t *testing.T) {
	d, m := &commandList{}, &memory{}
	d.give(Command{ID: "1", Kind: "dance"}, skip("2", 7), repeat("3", -1), skip("4", 0), skip("5", 0))
	cfg := config(testSheet(t, 1, 1), m, &scripted{}, nil)
	cfg.Commands = d
	if err := Lead(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	sameStory(t, m, `dance rejected: this version knows no command "dance"`, "skip 7 rejected: the sheet has no trial 7", "repeat -1 rejected: the sheet has no trial -1",
		"skip 0", "skip 0 rejected: trial 0 had ended", "trial 0 aborted skipped", "run completed")
}

func TestAbortInAPause(t *testing.T) {
	d := &commandList{}
	d.give(pause("1"))
	j := openJournal(t, filepath.Join(t.TempDir(), "j"), journal.Options{})
	defer j.Close()
	cfg := config(testSheet(t, 1, 1), j, &scripted{}, nil)
	cfg.Commands = d
	ctx, cancel := context.WithCancelCause(t.Context())
	cfg.Observer = &hooks{paused: func() func() {
		cancel(&AbortError{ID: "a", By: "ada", Reason: "rain"})
		return func() {}
	}}
	if err := Lead(ctx, cfg); err != nil {
		t.Fatal(err)
	}
	sameStory(t, j, "pause", "abort", "run aborted")
}

// Whatever is commanded and wherever a crash cuts the journal, no command is
// lost or applied twice, and what the journal records follows from each of them.
func TestCommandsFromEveryCrashPoint(t *testing.T) {
	const trials, limit = 4, 2
	sheet := testSheet(t, trials, limit)
	seeds := uint64(60)
	if testing.Short() {
		seeds = 5
	}
	applied := map[string]int{}
	for seed := range seeds {
		d, m := &commandList{}, &memory{}
		lead(t, sheet, m, d, seed, true)
		checkApplied(t, read(t, m), d.all, trials, limit, applied)
		whole, given := m.records, d.all
		for cut := range len(whole) {
			m := &memory{records: slices.Clone(whole[:cut])}
			d := &commandList{}
			d.give(given...)
			lead(t, sheet, m, d, seed+uint64(cut), cut%2 == 0)
			if t.Failed() {
				return
			}
			checkApplied(t, read(t, m), d.all, trials, limit, nil)
			if t.Failed() {
				t.Fatalf("seed %d, cut after %d records\n%s", seed, cut, strings.Join(story(t, read(t, m)), "\n"))
			}
		}
	}
	for _, kind := range []string{"pause", "resume", "skip", "repeat", "rejected"} {
		if applied[kind] == 0 {
			t.Errorf("no test had a %s", kind)
		}
	}
}

// lead walks through a sheet whose attempts fail, hang until they are skipped,
// and bring commands along, as the seed has it.
func lead(t *testing.T, sheet []byte, m *memory, d *commandList, seed uint64, more bool) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	n := 0
	id := func() string { n++; return fmt.Sprint(seed, "-", n, "-", len(d.all)) }
	r := &steered{}
	r.fail = func(*contract.Parameters) contract.Code {
		if rng.IntN(3) == 0 {
			return contract.CodeReset
		}
		return ""
	}
	current := func() int {
		last := -1
		_ = m.Records(func(r journal.Record) error {
			if r.Type == journal.TypeAttemptStarted {
				last = body[journal.AttemptStarted](t, r).Trial
			}
			return nil
		})
		return last
	}
	r.started = func(string, *contract.Parameters) bool {
		for more && n < 6 && rng.IntN(2) == 0 {
			switch rng.IntN(4) {
			case 0:
				d.give(pause(id()))
			case 1:
				d.give(repeat(id(), rng.IntN(4)))
			case 2:
				d.give(repeat(id(), max(0, current()-1)))
			case 3:
				d.give(skip(id(), rng.IntN(4)))
			}
		}
		if rng.IntN(6) == 0 {
			d.give(skip(id(), current()))
			return true
		}
		return false
	}
	cfg := config(sheet, m, r, &fakeRadio{})
	cfg.Commands = d
	cfg.Observer = &hooks{paused: func() func() {
		d.give(resume(id()))
		return func() {}
	}}
	if err := Lead(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
}

// checkApplied asserts what must hold of any journal of a completed run with
// commands, by a model of its own.
func checkApplied(t *testing.T, records []journal.Record, given []Command, trials, limit int, count map[string]int) {
	t.Helper()
	type trial struct {
		ended, skipped    bool
		attempts, counted int
		wanted            bool // a repetition
		succeeded         bool
	}
	all := make([]trial, trials)
	seen := map[string]bool{}
	paused, open, ends := false, -1, 0
	for _, r := range records {
		switch r.Type {
		case journal.TypeCommand:
			b := body[journal.Command](t, r)
			if seen[b.ID] {
				t.Errorf("record %d applies %s %s twice", r.Seq, b.Kind, b.ID)
			}
			seen[b.ID] = true
			if count != nil {
				count[string(b.Kind)]++
			}
			var x *trial
			if b.Trial != nil {
				x = &all[*b.Trial]
			}
			can := true
			switch b.Kind {
			case journal.CommandSkip:
				can = !x.ended && !x.skipped
			case journal.CommandRepeat:
				can = x.ended
			}
			if can != (b.Rejected == "") {
				t.Errorf("record %d: %s of trial %+v: rejected %q", r.Seq, b.Kind, *x, b.Rejected)
			}
			if b.Rejected != "" {
				if count != nil {
					count["rejected"]++
				}
				continue
			}
			switch b.Kind {
			case journal.CommandPause:
				paused = true
			case journal.CommandResume:
				paused = false
			case journal.CommandSkip:
				x.skipped = true
			case journal.CommandRepeat:
				*x = trial{attempts: x.attempts, wanted: true}
			}
		case journal.TypeAttemptStarted:
			b := body[journal.AttemptStarted](t, r)
			x := &all[b.Trial]
			if paused || open >= 0 || x.ended || x.skipped || b.Attempt != x.attempts+1 {
				t.Errorf("record %d starts %d/%d: paused %t, open %d, trial %+v", r.Seq, b.Trial, b.Attempt, paused, open, *x)
			}
			if x.attempts == 0 && !x.wanted {
				for i := range all {
					if all[i].wanted && !all[i].ended {
						t.Errorf("record %d starts trial %d while trial %d is to be repeated", r.Seq, b.Trial, i)
					}
				}
			}
			open, x.attempts = b.Trial, b.Attempt
		case journal.TypeAttemptEnded:
			b := body[journal.AttemptEnded](t, r)
			x := &all[b.Trial]
			if open != b.Trial || x.attempts != b.Attempt {
				t.Errorf("record %d ends %d/%d, open is %d/%d", r.Seq, b.Trial, b.Attempt, open, x.attempts)
			}
			if b.Verdict == journal.Aborted && (b.Reason == journal.ReasonSkipped) != x.skipped {
				t.Errorf("record %d: %s of a trial %+v", r.Seq, b.Reason, *x)
			}
			if b.Reason != journal.ReasonInterrupted {
				x.counted++
				x.succeeded = b.Verdict == journal.Succeeded
			}
			open = -1
		case journal.TypeTrialEnded:
			b := body[journal.TrialEnded](t, r)
			x := &all[b.Trial]
			most := limit
			if x.wanted {
				most = 1
			}
			if x.ended || open == b.Trial || b.Attempts != x.attempts || x.counted > most || x.counted == 0 && !x.skipped {
				t.Errorf("record %d ends trial %+v: %+v, open %d", r.Seq, b, *x, open)
			}
			if x.succeeded && b.Verdict != journal.Succeeded || x.skipped != (b.Reason == journal.ReasonSkipped) {
				t.Errorf("record %d ends trial %+v: %+v", r.Seq, b, *x)
			}
			x.ended, x.skipped, x.wanted = true, false, false
		case journal.TypeRunEnded:
			ends++
			for i := range all {
				if !all[i].ended {
					t.Errorf("the run ended before trial %d: %+v", i, all[i])
				}
			}
			if paused {
				t.Error("the run ended in a pause")
			}
		}
	}
	if ends != 1 {
		t.Errorf("%d run-ended records", ends)
	}
	// What is given while the last trial ends may come too late for the run.
	for _, c := range given {
		if !seen[c.ID] && c.Kind != journal.CommandSkip {
			t.Errorf("%s %s was lost", c.Kind, c.ID)
		}
	}
}
