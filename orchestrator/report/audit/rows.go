package audit

import (
	"slices"
	"time"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
)

// roundTime is how far a time of the store may lie from the journal's: PostgreSQL
// rounds to microseconds.
const roundTime = time.Microsecond

type key struct{ trial, attempt int }

// rows are the store's attempts.
func (a *auditor) rows() map[key]*Attempt {
	out := map[key]*Attempt{}
	for i := range a.run.Trials {
		t := &a.run.Trials[i]
		for j := range t.Attempts {
			out[key{t.Trial, t.Attempts[j].Attempt}] = &t.Attempts[j]
		}
	}
	return out
}

// checkRows holds the store's attempts against those of the journal.
func (a *auditor) checkRows() {
	if !a.history.seen {
		return
	}
	c := a.check(Attempts)
	a.checkTrialRows(c)
	rows := a.rows()
	changed := newTally()
	for _, x := range a.history.all {
		c.Objects++
		k := key{x.trial, x.number}
		row := rows[k]
		if row == nil {
			c.find(x.at, "the journal has the attempt, the store's table has not")
			continue
		}
		delete(rows, k)
		a.checkRow(c, x, row, changed)
		a.checkControl(c, x, row)
	}
	for k := range rows {
		c.find(ofTrial(k.trial, k.attempt), "the store's table has the attempt, the journal has not")
	}
	changed.note(c, "shown with another outcome than the journal's")
}

func (a *auditor) checkTrialRows(c *Check) {
	if len(a.run.Trials) != len(a.sheet.Trials) {
		c.find(Finding{}, "the store has %d trials, the sheet %d", len(a.run.Trials), len(a.sheet.Trials))
	}
	for i := range a.run.Trials {
		row := &a.run.Trials[i]
		if row.Trial < 0 || row.Trial >= len(a.sheet.Trials) {
			c.find(ofTrial(row.Trial, 0), "the store has the trial, the sheet has not")
			continue
		}
		of := &a.sheet.Trials[row.Trial]
		if of.Treatment != row.Treatment || of.Iteration != row.Iteration {
			c.find(ofTrial(row.Trial, 0), "the store has it as %s in iteration %d, the sheet as %s in iteration %d", row.Treatment, row.Iteration, of.Treatment, of.Iteration)
		}
		want := ""
		if t := a.history.trials[row.Trial]; t != nil && t.closed {
			want = string(t.ended.Verdict)
		}
		if told := a.notNeeded(row.Trial); row.NotNeeded != told {
			c.find(ofTrial(row.Trial, 0), "the store has it as not needed: %t, the journal: %t", row.NotNeeded, told)
		}
		// A mark, or what the server reports, makes a trial invalid, and a crash at the
		// other end one failed that had timed out.
		if row.Verdict != want && (want == "" || row.Verdict != string(journal.Invalid) && !a.byCrash(row.Trial, row.lastReason(), row.Verdict, want)) {
			c.find(ofTrial(row.Trial, 0), "the store has the verdict %q, the journal %q", row.Verdict, want)
		}
	}
}

// byBothEnds are the reasons for which the store shows a success as invalid: they are
// known where the journals of both ends are together.
var byBothEnds = map[string]bool{"server-failed": true, "size-differs": true, "digest-differs": true, "longer-at-server": true, "faster-than-packets": true, "more-than-sent": true, "window-unknown": true, "unverified": true}

// byCrash reports whether the store may show as failed, for a reason, what the leading
// node's journal has as failed for another one, or as timed out: a node's journal has a
// crash of a listener of one of the trial's treatments.
func (a *auditor) byCrash(trial int, reason, verdict, was string) bool {
	return trial < len(a.sheet.Trials) && reason == journal.ReasonCrashed && verdict == string(journal.Failed) &&
		(was == string(journal.Failed) || was == string(journal.TimedOut) || was == string(journal.Invalid)) &&
		slices.ContainsFunc(a.sheet.Trials[trial].Carried(), func(f runsheet.Flow) bool { return a.crashed[f.Treatment] })
}

func (a *auditor) checkRow(c *Check, x *attempt, row *Attempt, changed tally) {
	if row.Started.Sub(x.started).Abs() > roundTime {
		c.find(x.at, "it started at %s, by the store's table at %s", x.started.Format(time.RFC3339Nano), row.Started.UTC().Format(time.RFC3339Nano))
	}
	if !x.ended {
		if row.Verdict != "" {
			c.find(x.at, "the journal has no end of it, the store has the verdict %s", row.Verdict)
		}
		return
	}
	was, why := row.Verdict, row.Reason
	if m := row.Mark; m != nil {
		was, why = m.Verdict, m.VerdictReason
		if row.Verdict != string(journal.Invalid) || m.Reason == "" {
			c.find(x.at, "it is marked, and shown as %s with the reason %q", row.Verdict, m.Reason)
		}
		changed.add("marked by " + orPerson(m.By))
	}
	if was == string(x.verdict) && why == x.reason {
		return
	}
	if x.verdict == journal.Succeeded && was == string(journal.Invalid) && byBothEnds[why] ||
		a.byCrash(x.trial, why, was, string(x.verdict)) {
		changed.add(why)
		return
	}
	c.find(x.at, "the journal has %s %s, the store %s %s", x.verdict, x.reason, was, why)
}

// checkControl checks what the store says of the control traffic of an attempt with
// in-band control, and that none counts that met some.
func (a *auditor) checkControl(c *Check, x *attempt, row *Attempt) {
	if !x.ended || a.sheet.Control != runsheet.ControlInBand {
		return
	}
	counts := row.Verdict == string(journal.Succeeded) || row.Verdict == string(journal.Failed) || row.Verdict == string(journal.TimedOut)
	if own := x.control; counts && own != nil && own.Packets > 0 {
		c.find(x.at, "it counts as %s, and by the journal %d control packets passed the leading node meanwhile", row.Verdict, own.Packets)
	}
	for _, st := range a.sheet.Topology.Stations {
		if len(row.Control) > 0 && !slices.ContainsFunc(row.Control, func(n ControlCount) bool { return n.Role == string(st.Role) }) {
			c.find(x.at, "the store does not say whether control packets passed at the %s", st.Role)
		}
	}
	for _, n := range row.Control {
		switch {
		case n.Role == "client" && (x.control == nil) != (n.Unknown != ""):
			c.find(x.at, "the journal and the store disagree on whether control packets of the leading node were counted")
		case n.Role == "client" && x.control != nil && (n.Packets != x.control.Packets || n.Bytes != x.control.Bytes):
			c.find(x.at, "the journal has %d control packets with %d B, the store %d with %d B", x.control.Packets, x.control.Bytes, n.Packets, n.Bytes)
		case n.Role != "client" && n.Packets > a.controlled[n.Role]:
			c.find(x.at, "by the store %d control packets passed at the %s, its whole journal has %d", n.Packets, n.Role, a.controlled[n.Role])
		case n.Role != "client" && n.Packets > 0 && counts:
			c.find(x.at, "it counts as %s, and %d control packets passed at the %s meanwhile", row.Verdict, n.Packets, n.Role)
		}
	}
}

func orPerson(by string) string {
	if by == "" {
		return "a person"
	}
	return by
}
