package terminal

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/term"
)

// Stages shows the stage of a long command, and an estimate of the time left.
type Stages struct {
	out      *os.File
	terminal bool
	name     string
	began    time.Time // of the stage
	written  time.Time // last
	after    time.Duration
	shown    bool // something of the stage is written
}

// NewStages writes to a terminal or to a log.
func NewStages(out *os.File) *Stages {
	return &Stages{out: out, terminal: term.IsTerminal(int(out.Fd()))}
}

// NewLateStages writes of a stage once it has lasted for some time, and nothing of shorter
// ones.
func NewLateStages(out *os.File, after time.Duration) *Stages {
	s := NewStages(out)
	s.after = after
	return s
}

// Stage shows the current stage and which share of it, 0 to 1, is done.
func (s *Stages) Stage(name string, share float64) {
	now := time.Now()
	if name != s.name {
		s.Finish()
		s.name, s.began, s.shown = name, now, false
	}
	if now.Sub(s.began) < s.after {
		return
	}
	if !s.shown && !s.terminal {
		fmt.Fprintln(s.out, name)
	}
	s.shown = true
	// A log gets a line every half minute.
	every := 30 * time.Second
	if s.terminal {
		every = 200 * time.Millisecond
	}
	if now.Sub(s.written) < every {
		return
	}
	s.written = now
	left := ""
	if spent := now.Sub(s.began); share > 0.02 && share < 1 && spent > 2*time.Second {
		left = fmt.Sprintf("  about %s left", ForPeople(spent.Seconds()*(1-share)/share))
	}
	if s.terminal {
		fmt.Fprintf(s.out, "\r\x1b[K%s  %3.0f %%%s", name, 100*share, left)
	} else if left != "" {
		fmt.Fprintf(s.out, "%s  %3.0f %%%s\n", name, 100*share, left)
	}
}

// Finish writes how long the last stage took.
func (s *Stages) Finish() {
	if s.terminal && s.shown {
		fmt.Fprintf(s.out, "\r\x1b[K%s: %s\n", s.name, time.Since(s.began).Round(time.Second))
	}
	s.name, s.shown = "", false
}
