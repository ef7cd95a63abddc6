// Package runcommand is the commands that people give to runs, and to attempts that runs
// made: their names and what each is of and does. Command line, API, journal, store and the
// table in docs/guide.md have them from here.
package runcommand

import "slices"

// The names, as journals, the store and the API have them.
const (
	Pause    = "pause"
	Resume   = "resume"
	Skip     = "skip"
	Repeat   = "repeat"
	Abort    = "abort"
	Continue = "continue"
	Exclude  = "exclude"
	Include  = "include"
)

// Command is one of them.
type Command struct {
	Name  string
	Short string // for the help: what it does
	Does  string // for documents: what happens
	Page  string // for documents: how the pages call it
	// Trial is set where it is of one trial, Attempt where of one attempt of it, Reason
	// where it needs a reason.
	Trial, Attempt, Reason bool
	// Led is set where the leading agent gets and applies it, at a trial boundary unless
	// it says otherwise; the others take effect at the orchestrator.
	Led bool
}

var list = []*Command{
	{Name: Pause, Led: true, Page: "Pause", Short: "Pause a run at its next trial boundary", Does: "the running trial ends, and no other starts"},
	{Name: Resume, Led: true, Page: "Resume", Short: "Resume a paused run", Does: "the next trial starts"},
	{Name: Abort, Page: "Abort", Short: "Abort a run, or all runs of a campaign", Does: "the running trial is aborted, and the run with it"},
	{Name: Skip, Led: true, Trial: true, Page: "a trial: *Skip*", Short: "End a trial without a further attempt", Does: "it ends without a value"},
	{Name: Repeat, Led: true, Trial: true, Page: "a trial: *Repeat*", Short: "Repeat a trial that has ended", Does: "one more attempt, in its own iteration; the last one counts"},
	{Name: Exclude, Trial: true, Attempt: true, Reason: true, Page: "an attempt: *Exclude …*", Short: "Exclude an attempt, so that its value does not count", Does: "it stays visible, with your reason, and out of the results"},
	{Name: Include, Trial: true, Attempt: true, Page: "an attempt: *Include again*", Short: "Include an excluded attempt again, so that its value counts", Does: "it counts with its verdict in the journal"},
	{Name: Continue, Page: "The nodes are in place: continue", Short: "Confirm that the nodes are at the positions of the run's topology", Does: "a run that waits for its topology starts"},
}

// All is every command, in the order of documents.
func All() []*Command { return slices.Clone(list) }

// Of is the command of that name; nil: there is none.
func Of(name string) *Command {
	i := slices.IndexFunc(list, func(c *Command) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return list[i]
}

// Led is the names of the commands that leading agents get.
func Led() (out []string) {
	for _, c := range list {
		if c.Led {
			out = append(out, c.Name)
		}
	}
	return out
}

// Usage is the command as it is typed after "linktrial run".
func (c *Command) Usage() string {
	out := c.Name + " RUN"
	if c.Trial {
		out += " --trial N"
	}
	if c.Attempt {
		out += " --attempt M"
	}
	if c.Reason {
		out += " --reason …"
	}
	return out
}
