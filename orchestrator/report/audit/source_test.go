package audit

import (
	"io"
	"iter"
	"strings"
	"testing"
)

// A run that is interrupted can leave journals without a record: nothing is wrong with
// them, unless the store has records of the node whose journal it is. Which node that is
// cannot be read, so every node without a journal counts.
func TestEmptyJournal(t *testing.T) {
	for name, c := range map[string]struct {
		records  bool
		findings int
	}{"the store has none either": {false, 0}, "the store has records": {true, 2}} {
		run := small(t)
		if !c.records {
			run.State, run.TrialsEnded, run.Trials, run.Summary = "aborted", 0, nil, nil
			run.Records = func(string, bool) iter.Seq2[StoredRecord, error] {
				return func(func(StoredRecord, error) bool) {}
			}
			for i := range run.Parts {
				run.Parts[i] = Part{Node: run.Parts[i].Node, Role: run.Parts[i].Role}
			}
		}
		run.Journals = []Journal{{Path: "server/journal.jsonl", Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("")), nil }}}
		report, err := Audit(run)
		if err != nil {
			t.Fatal(err)
		}
		for _, check := range report.Checks {
			if check.Code == Stored && len(check.Findings) != c.findings {
				t.Errorf("%s: %v, expected %d findings", name, check.Findings, c.findings)
			}
		}
	}
}
