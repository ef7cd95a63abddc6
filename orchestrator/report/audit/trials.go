package audit

import "strings"

// checkTrials looks for the trial that has neither an outcome nor a reason.
func (a *auditor) checkTrials() {
	h := &a.history
	if !h.seen && a.run.State == "completed" {
		return
	}
	c := a.check(Trials)
	outcomes := newTally()
	for i := range a.sheet.Trials {
		c.Objects++
		if t := h.trials[i]; t != nil && t.closed {
			name := string(t.ended.Verdict)
			if t.ended.Reason != "" {
				name += " (" + t.ended.Reason + ")"
			}
			outcomes.add(name)
			continue
		}
		why := a.whyOpen()
		if why == "" {
			c.find(ofTrial(i, 0), "it has not ended, and the run is %s: no reason is stated", a.run.State)
			continue
		}
		outcomes.add("not ended: " + why)
	}
	outcomes.note(c, "by the leading node's journal, before marks")
	for i := range a.sheet.Treatments {
		if t := &a.sheet.Treatments[i]; t.Missing != "" {
			c.note("no trials of %s: %s", t.Name, t.Missing)
		}
	}
}

// whyOpen is the stated reason for which a trial has not ended; empty: there is none.
func (a *auditor) whyOpen() string {
	switch end := a.history.ended; {
	case !a.run.Ended():
		return "the run is under way (" + a.run.State + ")"
	case a.run.State == "completed":
		return ""
	case end != nil && end.End != "completed":
		return strings.TrimSpace("the run was " + string(end.End) + " " + end.Reason)
	case a.run.Message != "":
		return "the run was " + a.run.State + ": " + a.run.Message
	}
	return ""
}
