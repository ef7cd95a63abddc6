package executor

import (
	"errors"
	"log/slog"
	"strings"

	"linktrial/executor/journal"
)

// recorder writes the run's journal.
type recorder struct {
	journal Journal
	log     *slog.Logger
}

// append writes a record. A journal that cannot take it reports that at the next
// sync or space check, where something can be done about it.
func (r *recorder) append(t journal.Type, body any) {
	if _, err := r.journal.Append(t, body); err != nil && !errors.Is(err, journal.ErrDiskFull) {
		r.log.Error("record was not taken by the journal", "type", string(t), "error", err)
	}
}

// sync makes the journal durable. A full disk is no error here: what was
// appended is safe in the reserve, and CheckSpace stops the run.
func (r *recorder) sync() error {
	if err := r.journal.Sync(); err != nil && !errors.Is(err, journal.ErrDiskFull) {
		return err
	}
	return nil
}

// syncNow is sync where nobody can act on its error.
func (r *recorder) syncNow() {
	if err := r.sync(); err != nil {
		r.log.Error("journal could not be synced", "error", err)
	}
}

// maxText is the longest text of a driver in a record, in bytes.
const maxText = 4096

// clip bounds a text that came from a driver.
func clip(s string) string { return cut(s, maxText) }

// cut is the beginning of a text, of n bytes at most and an ellipsis.
func cut(s string, n int) string {
	if len(s) > n {
		return strings.ToValidUTF8(s[:n], "") + "…" // the cut may be within a character
	}
	return s
}

// tail is the end of a driver's log, n bytes at most.
func tail(s string, n int) string {
	if len(s) > n {
		return s[len(s)-n:]
	}
	return s
}
