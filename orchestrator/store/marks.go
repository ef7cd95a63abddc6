package store

import (
	"context"
	"fmt"
	"time"

	"linktrial/executor/journal"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/store/storedb"
)

// Mark is a person's word that the value of an attempt must not count.
type Mark struct {
	Reason string
	By     string // empty: not said
	At     time.Time
}

// Verdict is what reports say of a marked attempt in the place of what the
// journal says: invalid, for the reason given, with the journal's verdict in
// the message. A nil Mark changes nothing, and neither does one on an attempt
// that has no verdict yet. Everything that shows or counts attempts goes
// through here.
func (m *Mark) Verdict(v journal.Verdict, reason, message string) (journal.Verdict, string, string) {
	if m == nil || v == "" {
		return v, reason, message
	}
	was := string(v)
	if reason != "" {
		was += " (" + reason + ")"
	}
	if message != "" {
		was += ": " + message
	}
	by := ""
	if m.By != "" {
		by = " by " + m.By
	}
	return journal.Invalid, "marked: " + m.Reason, fmt.Sprintf("marked invalid%s: %s; the journal says: %s", by, m.Reason, was)
}

// Marks are the attempts of one run whose values must not count, by trial and
// attempt.
type Marks map[[2]int32]*Mark

// ReadMarks reads the marks of a run that hold now.
func ReadMarks(ctx context.Context, c Conn, run string) (Marks, error) {
	return readMarks(ctx, c.q, run)
}

func readMarks(ctx context.Context, q *storedb.Queries, run string) (Marks, error) {
	rows, err := q.InvalidAttempts(ctx, run)
	if err != nil {
		return nil, fmt.Errorf("marks: %w", err)
	}
	out := Marks{}
	for _, r := range rows {
		out[[2]int32{r.Trial, r.Attempt}] = &Mark{Reason: r.Reason, By: r.GivenBy, At: r.GivenAt}
	}
	return out, nil
}

// Of is the mark on an attempt, nil where there is none.
func (m Marks) Of(trial, attempt int32) *Mark { return m[[2]int32{trial, attempt}] }

// OfTrial is the verdict on a trial whose journal says v: invalid where its last
// attempt, the one that counts, is marked, or is contradicted by the server; failed
// where the driver of a listener had crashed.
func OfTrial(v journal.Verdict, attempts []report.Attempt) journal.Verdict {
	if n := len(attempts); v != "" && n > 0 {
		switch last := &attempts[n-1]; {
		case last.Verdict == journal.Invalid, last.Reason == journal.ReasonCrashed:
			return last.Verdict
		}
	}
	return v
}
