package audit

import (
	"fmt"
	"slices"
	"time"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/faultlog"
	"linktrial/internal/radio"
)

// checkFaults looks for an attempt that an injected fault touched, and that counts for
// or against a protocol all the same.
func (a *auditor) checkFaults() {
	c := a.check(Faults)
	if a.run.Faults == nil {
		c.skip("no list of injected faults was given")
		return
	}
	if !a.history.seen {
		c.skip("there is no record of the leading node")
		return
	}
	var touching []faultlog.Fault
	refused := 0
	for _, f := range a.run.Faults {
		switch {
		case f.Error != "":
			refused++
		case f.Touches:
			touching = append(touching, f)
		}
	}
	c.note("%d faults were injected, of which %d can change the outcome of an attempt that they overlap; %d could not be injected",
		len(a.run.Faults)-refused, len(touching), refused)
	if !a.run.Ended() {
		c.skip("the run has not ended: what its attempts met is still being decided")
		return
	}
	rows := a.rows()
	outcomes := newTally()
	leads := a.leaderClock()
	for _, x := range a.history.all {
		f := a.overlapping(touching, x, leads.ahead())
		if f == nil {
			continue
		}
		c.Objects++
		if row := rows[key{x.trial, x.number}]; row != nil {
			outcomes.add(a.checkTouched(c, x, row, f, interfaceFault(touching, x, leads.ahead())))
		}
	}
	outcomes.note(c, "of the attempts that such a fault overlapped")
}

// uses reports whether an attempt may use a process of a driver; that of another
// treatment is nothing to it. An empty name is any driver.
func (a *auditor) uses(x *attempt, driver string) bool {
	if driver == "" || x.trial < 0 || x.trial >= len(a.sheet.Trials) {
		return true
	}
	return slices.ContainsFunc(a.sheet.Trials[x.trial].Carried(), func(f runsheet.Flow) bool {
		t := a.sheet.Treatment(f.Treatment)
		return t == nil || t.Protocol == driver || slices.ContainsFunc(t.Via, func(v runsheet.Via) bool { return v.Protocol == driver })
	})
}

// overlapping is the first fault that overlaps an attempt and may matter to it; nil: none does. Faults are
// placed by a clock that is ahead of the leading node's.
func (a *auditor) overlapping(faults []faultlog.Fault, x *attempt, ahead time.Duration) *faultlog.Fault {
	for i := range faults {
		f := &faults[i]
		if x.ended && x.endedAt.Add(ahead).Before(f.From) || !f.To.IsZero() && f.To.Before(x.started.Add(ahead)) {
			continue
		}
		if !a.uses(x, f.Driver) || a.over(f, x, ahead) {
			continue
		}
		return f
	}
	return nil
}

// over reports whether a fault was over when an attempt began, though the list ends it
// later: when it ended is noted after that was done. The leading node's agent begins
// attempts, so it ran; and where nothing listens on that node, each attempt has processes
// of its own there.
func (a *auditor) over(f *faultlog.Fault, x *attempt, ahead time.Duration) bool {
	if f.Node != string(radio.RoleClient) || !x.started.Add(ahead).After(f.From.Add(injecting)) {
		return false
	}
	return f.Target == faultlog.Agent || f.Target == faultlog.Node || f.Target == faultlog.Driver && len(a.sheet.Listeners(radio.RoleClient)) == 0
}

// injecting is how long after its begin and before its end a fault may not be in effect:
// the times of a list lie around injection and end.
const injecting = 500 * time.Millisecond

// interfaceKinds are the faults of a radio's interface, of its address and of the routes
// over it: each node sees these of its own while they last.
var interfaceKinds = []faultlog.Kind{
	faultlog.RadioDown, faultlog.MTU, faultlog.Address, faultlog.InterfaceNewIndex, faultlog.InterfaceGone, faultlog.InterfaceRenamed,
	faultlog.NoCarrier, faultlog.AddressLost, faultlog.AddressDuplicate, faultlog.Route,
}

// interfaceFault is a fault of a radio's interface that was in effect while an attempt
// could send, which is invalid then also where its transfer succeeded; nil: none was.
func interfaceFault(faults []faultlog.Fault, x *attempt, ahead time.Duration) *faultlog.Fault {
	for i := range faults {
		f := &faults[i]
		if !slices.Contains(interfaceKinds, f.Kind) || f.To.IsZero() || !x.ended {
			continue
		}
		from, to := f.From.Add(injecting), f.To.Add(-injecting)
		if from.Before(to) && from.Before(x.endedAt.Add(ahead)) && x.carried().Add(ahead).Before(to) {
			return f
		}
	}
	return nil
}

// checkTouched checks what became of an attempt that a fault overlapped, and returns
// it in words; down is a fault of a radio's interface that did so, nil for none.
func (a *auditor) checkTouched(c *Check, x *attempt, row *Attempt, f, down *faultlog.Fault) string {
	what := named(f)
	switch row.Verdict {
	case "":
		return "without an end"
	case string(journal.Failed), string(journal.TimedOut):
		c.find(x.at, "it counts as %s (%s), and it overlaps %s", row.Verdict, row.Reason, what)
		return row.Verdict
	case string(journal.Succeeded):
		if !a.confirmed(x) {
			c.find(x.at, "it succeeded without the server's confirmation, which tables count as a failure, and it overlaps %s", what)
			return "succeeded, not confirmed by the server"
		}
		if down != nil {
			c.find(x.at, "it counts as succeeded, and a radio's interface was not in order meanwhile: %s", named(down))
			return "succeeded, with an interface that was not in order"
		}
		return "succeeded, as the server confirms"
	}
	if row.Mark == nil && untrue(row.Reason) {
		c.find(x.at, "it is invalid for its values (%s), and it overlaps %s", row.Reason, what)
		return row.Verdict + " (" + row.Reason + ")"
	}
	said := row.Verdict + " (" + row.Reason + ")"
	if row.Mark != nil {
		said = "marked as invalid by " + orPerson(row.Mark.By)
	}
	if t := a.history.trials[x.trial]; t.closed && t.attempts[len(t.attempts)-1] == x && x.reason != journal.ReasonSkipped {
		return said + " and not repeated: the trial is excluded"
	}
	return said
}

func named(f *faultlog.Fault) string {
	return fmt.Sprintf("fault %d (%s of %s%s, %s)", f.Number, f.Kind, f.Target, at(f.Node), span(f))
}

func at(node string) string {
	if node == "" {
		return ""
	}
	return " at the " + node
}

func span(f *faultlog.Fault) string {
	const form = "15:04:05.000"
	if f.To.IsZero() {
		return "from " + f.From.UTC().Format(form) + " UTC on"
	}
	return f.From.UTC().Format(form) + " to " + f.To.UTC().Format(form) + " UTC"
}

// confirmed reports whether the server received every flow of an attempt as its
// clients sent it.
func (a *auditor) confirmed(x *attempt) bool {
	if len(x.flows) == 0 {
		return false
	}
	for i := range x.flows {
		f := &x.flows[i]
		if f.Result == nil {
			return false
		}
		all := a.received[transferID(a.run.ID, x.trial, x.number, i)]
		if len(all) == 0 {
			return false
		}
		for _, r := range all {
			if !r.result || r.size != f.Result.SizeBytes || r.digest != f.Result.Digest {
				return false
			}
		}
	}
	return true
}
