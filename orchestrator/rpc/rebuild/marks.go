package rebuild

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"

	"linktrial/executor/journal"
	"linktrial/orchestrator/campaign"
	"linktrial/orchestrator/store"
)

// attemptOf names an attempt.
type attemptOf struct {
	run            string
	trial, attempt int32
}

func (a attemptOf) String() string {
	return fmt.Sprintf("run %s, trial %d, attempt %d", a.run, a.trial, a.attempt)
}

// mark is a row of attempt_marks.
type mark struct {
	of      attemptOf
	invalid bool
	reason  string
	by      string
}

func readMarks(ctx context.Context, conn *pgx.Conn) ([]mark, error) {
	list, err := conn.Query(ctx, `SELECT run_id, trial, attempt, invalid, reason, given_by FROM attempt_marks ORDER BY run_id, trial, attempt, ordinal`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(list, func(row pgx.CollectableRow) (m mark, err error) {
		err = row.Scan(&m.of.run, &m.of.trial, &m.of.attempt, &m.invalid, &m.reason, &m.by)
		return m, err
	})
}

// judge derives what Linktrial decides from the journals of all nodes together, before any
// recorded mark is there, and returns the marks that follow. The store has none of them then.
func judge(ctx context.Context, st *store.Store, conn *pgx.Conn, log *slog.Logger, runs []string) ([]mark, error) {
	for _, id := range runs {
		if err := campaign.Judge(ctx, st, log, id); err != nil {
			return nil, err
		}
	}
	follow, err := readMarks(ctx, conn)
	if err != nil {
		return nil, err
	}
	// Rows are never deleted; the table of a database of our own can be emptied.
	_, err = conn.Exec(ctx, `TRUNCATE attempt_marks`)
	return follow, err
}

// holdMarks holds the marks that follow against those of the rows. One that Linktrial did not
// give because a person had marked the attempt before is none that lacks.
func holdMarks(follow, recorded []mark, problem func(format string, args ...any)) {
	own, people := map[attemptOf]mark{}, map[attemptOf]bool{}
	for _, m := range recorded {
		switch {
		case m.by != journal.Self:
			people[m.of] = true
		case !m.invalid:
			problem("%v: the rows have a mark of Linktrial's that takes another one back, which Linktrial never does", m.of)
		default:
			own[m.of] = m
		}
	}
	for _, m := range follow {
		was, there := own[m.of]
		delete(own, m.of)
		switch {
		case there && was.reason != m.reason:
			problem("%v: the rows have a mark of Linktrial's because %s, and from the journals follows one because %s", m.of, shorten(was.reason), shorten(m.reason))
		case !there && !people[m.of]:
			problem("%v: the rows lack a mark of Linktrial's that follows from the journals, because %s", m.of, shorten(m.reason))
		}
	}
	for _, m := range recorded {
		if _, left := own[m.of]; left {
			delete(own, m.of)
			problem("%v: the rows have a mark of Linktrial's that does not follow from the journals, because %s", m.of, shorten(m.reason))
		}
	}
}
