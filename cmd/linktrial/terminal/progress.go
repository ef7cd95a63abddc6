package terminal

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/internal/unit"
	"linktrial/orchestrator/report/wording"
)

// Progress shows the progress of a campaign: a line for every attempt that has ended,
// and on a terminal a last line for the running one, which is updated in place.
// Several goroutines may use it.
type Progress struct {
	mu    sync.Mutex
	out   io.Writer
	width int // of the terminal; 0: not a terminal, no updated line

	runs     map[string]*linktrialv1.Run
	order    []string
	total    int // trials of all runs
	ended    map[string]map[int32]bool
	moving   bool
	left     float64 // estimated seconds, of all runs
	leftAt   time.Time
	current  *linktrialv1.TrialStarted
	transfer *linktrialv1.Progress
}

// NewProgress writes to a terminal or to anything else.
func NewProgress(out *os.File) *Progress {
	p := &Progress{out: out, runs: map[string]*linktrialv1.Run{}, ended: map[string]map[int32]bool{}}
	if term.IsTerminal(int(out.Fd())) {
		if w, _, err := term.GetSize(int(out.Fd())); err == nil && w > 20 {
			p.width = w
		}
	}
	return p
}

// Show shows one event of the campaign.
func (p *Progress) Show(ev *linktrialv1.WatchResponse) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := ev.Event.(type) {
	case *linktrialv1.WatchResponse_Run:
		p.run(e.Run)
	case *linktrialv1.WatchResponse_TrialStarted:
		p.current, p.transfer = e.TrialStarted, nil
	case *linktrialv1.WatchResponse_Progress:
		p.transfer = e.Progress
	case *linktrialv1.WatchResponse_TrialEnded:
		p.trialEnded(e.TrialEnded)
	case *linktrialv1.WatchResponse_Note:
		p.line("note: %s", e.Note.Text)
	}
	p.redraw()
}

func (p *Progress) run(r *linktrialv1.Run) {
	old := p.runs[r.Id]
	if old == nil {
		p.order = append(p.order, r.Id)
		p.total += int(r.Trials)
	}
	p.runs[r.Id] = r
	p.left, p.leftAt = 0, time.Now()
	for _, x := range p.runs {
		p.left += x.EstimatedSecondsLeft
	}
	p.held(old, r)
	if n := r.TrialsNotNeeded - old.GetTrialsNotNeeded(); n > 0 {
		p.line("run %s: the plan's rule to stop by leaves out %s", r.Id, Count(int(n), "trial"))
	}
	if old != nil && old.State == r.State {
		return
	}
	where := fmt.Sprintf("%s, %s, %s", r.Radio, r.Topology, unit.FormatPayload(r.SizeBytes))
	switch r.State {
	case linktrialv1.RunState_RUN_STATE_WAITING:
		p.line("run %s: %s: waiting until the nodes are at the positions of the topology; to continue: linktrial run continue %s", r.Id, where, r.Id)
	case linktrialv1.RunState_RUN_STATE_PREPARING:
		p.line("run %s: %s: preparing %d trials", r.Id, where, r.Trials)
	case linktrialv1.RunState_RUN_STATE_RUNNING:
		p.line("run %s: running, about %s", r.Id, ForPeople(r.EstimatedSecondsLeft))
	case linktrialv1.RunState_RUN_STATE_COLLECTING:
		p.line("run %s: all trials have ended, collecting journals", r.Id)
	case linktrialv1.RunState_RUN_STATE_COMPLETED:
		p.line("run %s: completed", r.Id)
	case linktrialv1.RunState_RUN_STATE_ABORTED, linktrialv1.RunState_RUN_STATE_STOPPED:
		p.line("run %s: %s: %s", r.Id, StateWord(r.State), r.Message)
	}
}

// held writes what has changed about a pause.
func (p *Progress) held(old, r *linktrialv1.Run) {
	was, pausing := old.GetPaused(), old.GetPausing()
	switch {
	case r.Pausing && !pausing:
		p.line("run %s: pauses at the next trial boundary", r.Id)
	case r.Paused && r.PauseReason != "" && old.GetPauseReason() == "":
		p.line("run %s: paused: %s; when that is repaired: linktrial run resume %s", r.Id, r.PauseReason, r.Id)
	case r.Paused && !r.Pausing && (!was || pausing):
		p.line("run %s: paused; to resume: linktrial run resume %s", r.Id, r.Id)
	case was && !r.Paused && !Over(r.State):
		p.line("run %s: resumed", r.Id)
	}
}

func (p *Progress) trialEnded(e *linktrialv1.TrialEnded) {
	p.current, p.transfer = nil, nil
	if p.ended[e.RunId] == nil {
		p.ended[e.RunId] = map[int32]bool{}
	}
	if e.LastAttempt {
		p.ended[e.RunId][e.Trial] = true
	}
	a := e.Attempt
	if a.Reason == "not-needed" {
		return // there can be hundreds at once: the run says how many
	}
	again := ""
	if a.Attempt > 1 {
		again = fmt.Sprintf(" (attempt %d)", a.Attempt)
	}
	head := fmt.Sprintf("%3d/%d  trial %-3d iteration %-2d  %-16s", p.done(), p.total, e.Trial, e.Iteration, e.Treatment)
	if a.Verdict != "succeeded" {
		p.line("%s  %s%s: %s", head, a.Verdict, again, cmp.Or(a.Message, a.Reason, "no reason given"))
		return
	}
	if a.ThroughputBytesPerSecond == 0 { // a probe, which carries no payload
		p.line("%s  measured%s", head, again)
		return
	}
	ideal := ""
	if a.IdealSeconds > 0 {
		share := a.IdealSeconds / (a.ConnectSeconds + a.ElapsedSeconds)
		ideal = "  " + wording.Percent(&share, 1) + " of Ideal"
	}
	p.line("%s  %13s  %7s s%s%s", head, wording.Rate(a.ThroughputBytesPerSecond/unit.KB), wording.Number(&a.ElapsedSeconds), ideal, again)
}

func (p *Progress) done() int {
	n := 0
	for _, m := range p.ended {
		n += len(m)
	}
	return n
}

// Line writes one line that is not updated.
func (p *Progress) Line(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.line(format, args...)
}

func (p *Progress) line(format string, args ...any) {
	p.clear()
	fmt.Fprintln(p.out, Printable(fmt.Sprintf(format, args...)))
}

func (p *Progress) clear() {
	if p.moving {
		fmt.Fprint(p.out, "\r\x1b[K")
		p.moving = false
	}
}

// redraw writes the last line.
func (p *Progress) redraw() {
	if p.width == 0 || p.total == 0 {
		return
	}
	var b strings.Builder
	share := float64(p.done()) / float64(p.total)
	if t := p.transfer; t != nil && t.SizeBytes > 0 {
		share += math.Min(1, float64(t.Bytes)/float64(t.SizeBytes)) / float64(p.total)
	}
	const bar = 24
	full := min(bar, int(share*bar))
	fmt.Fprintf(&b, "%s%s %3.0f %%", strings.Repeat("█", full), strings.Repeat("░", bar-full), share*100)
	if left := p.left - time.Since(p.leftAt).Seconds(); left > 0 {
		fmt.Fprintf(&b, "  about %s left", ForPeople(left))
	}
	if c := p.current; c != nil {
		fmt.Fprintf(&b, "  %s", c.Treatment)
		if t := p.transfer; t != nil && t.ElapsedSeconds > 0 {
			fmt.Fprintf(&b, " %s of %s", kb(t.Bytes), kb(t.SizeBytes))
		}
	}
	if p.done() == p.total {
		b.WriteString("  waiting for the nodes' records")
	}
	p.move(b.String())
}

// Moves reports whether the last line is updated in place.
func (p *Progress) Moves() bool { return p.width > 0 }

// Moving replaces the last line; without a terminal it writes the text as a line.
func (p *Progress) Moving(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.move(text)
}

func (p *Progress) move(text string) {
	if !p.Moves() {
		p.line("%s", text)
		return
	}
	text = Printable(text)
	for utf8.RuneCountInString(text) >= p.width {
		_, n := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-n]
	}
	p.clear()
	fmt.Fprint(p.out, text)
	p.moving = true
}

// Finish removes the last line.
func (p *Progress) Finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
}

// kb is a size with the digits that a transfer under way is told with.
func kb(n int64) string {
	if n < 10*unit.KB {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.0f KB", float64(n)/unit.KB)
}
