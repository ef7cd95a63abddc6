package judge

import (
	"slices"
	"time"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
)

// measuresHost reports whether the node measures what its processors keep from programs.
// The leading node holds its attempts against the rule by itself, and in a lab all nodes
// are one machine.
func (w *Node) measuresHost() bool {
	return slices.ContainsFunc(w.Watched, func(r Watched) bool { return r.Host != nil })
}

// judgeHost holds an attempt against the time that programs of a node which does not lead
// missed meanwhile, to a tenth of a second and the bounds of the clocks.
func (w *Node) judgeHost(j *judged, most float64, a *Attempt) {
	if !w.measuresHost() {
		return
	}
	load := journal.HostLoad{}
	for i := range w.Watched {
		r, since := &w.Watched[i], w.since(i)
		if r.Host == nil || w.until(i).Before(a.from()) || since.After(a.to()) {
			continue
		}
		load.Missed += r.Host.During(a.from().Sub(since), a.to().Sub(since))
	}
	if share := load.Share(a.Lasted); share > most {
		j.breaks(runsheet.RuleHost, "programs of the %s were ready and did not run for %.1f %% of the attempt (%s), at most %g %% are allowed", w.Role, 100*share, load.Missed.Round(time.Millisecond), 100*most)
		return
	}
	w.unwatched(j, runsheet.RuleHost, a)
}
