package campaign

import (
	"context"
	"fmt"
	"time"

	"linktrial/executor/journal"
	"linktrial/orchestrator/campaign/campaigndb"
	"linktrial/orchestrator/store"
)

// Verdicts are those of attempts that have ended.
var Verdicts = []journal.Verdict{journal.Succeeded, journal.Failed, journal.TimedOut, journal.Aborted, journal.Invalid}

// Attempts are those of a run that has not ended.
type Attempts struct {
	// By counts the attempts that have ended by their verdicts; those that a mark says must
	// not count are invalid.
	By map[journal.Verdict]int64
	// Trial and Attempt are the attempt under way; Attempt is 0 where there is none, as far as
	// it was delivered.
	Trial, Attempt int
}

// OpenAttempts returns the attempts of each run that has not ended and has any.
func OpenAttempts(ctx context.Context, c store.Conn) (map[string]Attempts, error) {
	rows, err := campaigndb.New(c).OpenAttempts(ctx)
	if err != nil {
		return nil, fmt.Errorf("attempts of open runs: %w", err)
	}
	out := map[string]Attempts{}
	for _, r := range rows {
		a := out[r.RunID]
		if a.By == nil {
			a.By = map[journal.Verdict]int64{}
		}
		if r.Verdict == "" {
			a.Trial, a.Attempt = int(r.Trial), int(r.Attempt)
		} else {
			a.By[journal.Verdict(r.Verdict)] = r.N
		}
		out[r.RunID] = a
	}
	return out, nil
}

// OpenJournal is the journal of one node of an open run, as far as it was delivered.
type OpenJournal struct {
	Run, Node string
	Records   int64
	Delivered time.Time // when the newest of them came
}

// OpenJournals returns the journals of open runs that have begun and not ended.
func OpenJournals(ctx context.Context, c store.Conn) ([]OpenJournal, error) {
	rows, err := campaigndb.New(c).OpenJournals(ctx)
	if err != nil {
		return nil, fmt.Errorf("journals of open runs: %w", err)
	}
	out := make([]OpenJournal, len(rows))
	for i, r := range rows {
		out[i] = OpenJournal{Run: r.RunID, Node: r.Node, Records: r.CommittedSeq, Delivered: *r.DeliveredAt}
	}
	return out, nil
}
