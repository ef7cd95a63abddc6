package document

import (
	"fmt"
	"strconv"
	"strings"

	"linktrial/executor/journal"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/wording"
)

// mostMarks is how many marks of people are listed one by one.
const mostMarks = 200

// exclusionTables are the attempts that do not count: those that people marked, or Linktrial
// when it had the journals of all nodes, each with reason, name and time; and how many others
// are invalid, by their reason.
func exclusionTables(v *report.Analysis) []Block {
	marks := grid{
		caption: "Attempts that were marked, so that their values do not count",
		heads:   []string{"Run", "Iteration", "Treatment", "Attempt", "Reason", "Marked by", "Marked at", "What the journal says"},
		numbers: []string{"Run", "Iteration", "Attempt"},
		notes:   []string{"What was measured stays in the results of these attempts; it is in no value of this report."},
	}
	invalid, marked := nodeLines{}, 0
	counts := map[string]int{}
	for i := range v.Dataset.Runs {
		r := &v.Dataset.Runs[i]
		for j := range r.Trials {
			t := &r.Trials[j]
			for k := range t.Attempts {
				a := &t.Attempts[k]
				switch why, isMark := markReason(a); {
				case isMark:
					if marked++; marked <= mostMarks {
						marks.add(markCells(i, r, t, a, why)...)
					}
				case a.Verdict == journal.Invalid:
					reason := reasonKey(a)
					invalid.add(i, "", reason)
					counts[reason]++
				}
			}
		}
	}
	if more := marked - mostMarks; more > 0 {
		marks.notes = append(marks.notes, fmt.Sprintf("%d more are in the table of every trial.", more))
	}
	g := grid{caption: "Attempts that do not count, by reason", heads: []string{"Reason", "Attempts", "Runs"}, numbers: []string{"Attempts"},
		notes: []string{"Faults of the apparatus, broken rules of validity and values that cannot be true: such an attempt tells nothing of its protocol, and its trial is repeated as far as the limits allow."}}
	for i, cells := range invalid.cells {
		g.add(cells[0], strconv.Itoa(counts[cells[0]]), someRuns(invalid.runs[i], len(v.Dataset.Runs)))
	}
	return append(marks.blocks(), g.blocks()...)
}

// markedPrefix begins the reason of a marked attempt (orchestrator/store).
const markedPrefix = "marked: "

// markReason is why an attempt was marked.
func markReason(a *report.Attempt) (why string, isMark bool) {
	if a.Mark != nil {
		return a.Mark.Reason, true
	}
	if a.Verdict == journal.Invalid {
		return strings.CutPrefix(a.Reason, markedPrefix)
	}
	return "", false
}

func markCells(run int, r *report.Run, t *report.Trial, a *report.Attempt, why string) []string {
	label := t.Treatment
	if r.Sheet != nil {
		label = r.Sheet.Label(t.Treatment)
	}
	by, said := markedBy(a.Message, why)
	at := ""
	if m := a.Mark; m != nil {
		by, at, said = m.By, momentOf(m.At), string(m.Verdict)
		if m.JournalReason != "" {
			said += " (" + m.JournalReason + ")"
		}
		if m.JournalMessage != "" {
			said += ": " + m.JournalMessage
		}
	}
	switch by {
	case "":
		by = "not said"
	case journal.Self:
		by = "Linktrial itself"
	}
	return []string{strconv.Itoa(run + 1), strconv.Itoa(t.Iteration), label, strconv.Itoa(a.Attempt), why, by, at, said}
}

// markedBy is who marked an attempt, and what the journal says of it, of the message that stored
// marks give an attempt (orchestrator/store); exports have these in no other form.
func markedBy(message, why string) (by, said string) {
	head, said, found := strings.Cut(message, ": "+why+"; the journal says: ")
	if !found {
		return "", message
	}
	return strings.TrimPrefix(strings.TrimPrefix(head, "marked invalid"), " by "), said
}

// reasonKey is the reason of an attempt that does not count.
func reasonKey(a *report.Attempt) string {
	if a.Reason == "" {
		return "no reason is known"
	}
	return wording.Clean(a.Reason)
}
