package audit

import (
	"fmt"
	"strings"
)

// State is how a check ended. Closed list.
type State string

// The states of checks.
const (
	Passed     State = "passed"
	Failed     State = "failed"
	Partly     State = "partly checked" // without findings, and something could not be looked at
	NotChecked State = "not checked"
)

// Report is what an audit of one run found.
type Report struct {
	Run    string   `json:"run"`
	Checks []*Check `json:"checks"` // always all of them, in the same order
}

// Check is one thing that was to be proved.
type Check struct {
	Code   string `json:"check"` // one word, for programs
	Proves string `json:"proves"`
	State  State  `json:"state"`
	// Objects is how many of Unit were looked at.
	Objects int    `json:"objects"`
	Unit    string `json:"unit"`
	// Why is what was not looked at, and for what reason.
	Why []string `json:"not_checked_because,omitempty"`
	// Notes are numbers that help to read the result.
	Notes    []string  `json:"notes,omitempty"`
	Findings []Finding `json:"findings,omitempty"`
	// More is how many findings there are beyond those listed.
	More int `json:"more_findings,omitempty"`
}

// maxFindings is how many findings of a check are listed.
const maxFindings = 100

// Finding is one thing that is not as it has to be.
type Finding struct {
	File    string `json:"file,omitempty"`
	Node    string `json:"node,omitempty"`
	Record  int64  `json:"record,omitempty"` // number in the node's journal
	Trial   *int   `json:"trial,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	Message string `json:"message"`
}

// String is the finding on one line, for people.
func (f Finding) String() string {
	var at []string
	if f.File != "" {
		at = append(at, f.File)
	}
	if f.Node != "" {
		at = append(at, "node "+f.Node)
	}
	if f.Record > 0 {
		at = append(at, fmt.Sprintf("record %d", f.Record))
	}
	if f.Trial != nil {
		at = append(at, fmt.Sprintf("trial %d", *f.Trial))
	}
	if f.Attempt > 0 {
		at = append(at, fmt.Sprintf("attempt %d", f.Attempt))
	}
	if len(at) == 0 {
		return f.Message
	}
	return strings.Join(at, ", ") + ": " + f.Message
}

// Findings is how many findings the checks have.
func (r *Report) Findings() int {
	n := 0
	for _, c := range r.Checks {
		n += len(c.Findings) + c.More
	}
	return n
}

// Check finds a check by its code; nil: there is none.
func (r *Report) Check(code string) *Check {
	for _, c := range r.Checks {
		if c.Code == code {
			return c
		}
	}
	return nil
}

func (c *Check) find(f Finding, format string, args ...any) {
	f.Message = fmt.Sprintf(format, args...)
	if len(c.Findings) == maxFindings {
		c.More++
		return
	}
	c.Findings = append(c.Findings, f)
}

// merge adds what a part of the check found.
func (c *Check) merge(part *Check) {
	c.Objects += part.Objects
	c.Notes = append(c.Notes, part.Notes...)
	c.More += part.More
	for _, f := range part.Findings {
		if len(c.Findings) == maxFindings {
			c.More++
			continue
		}
		c.Findings = append(c.Findings, f)
	}
}

func (c *Check) note(format string, args ...any) {
	c.Notes = append(c.Notes, fmt.Sprintf(format, args...))
}

// skip says what could not be looked at.
func (c *Check) skip(format string, args ...any) { c.Why = append(c.Why, fmt.Sprintf(format, args...)) }

func (c *Check) settle() {
	switch {
	case len(c.Findings) > 0:
		c.State = Failed
	case c.Objects == 0 && len(c.Why) > 0:
		c.State = NotChecked
	case len(c.Why) > 0:
		c.State = Partly
	default:
		c.State = Passed
	}
}

// ofTrial places a finding at a trial, and at an attempt where it is not 0.
func ofTrial(trial, attempt int) Finding { return Finding{Trial: &trial, Attempt: attempt} }
