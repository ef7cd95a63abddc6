package campaign

import (
	"slices"
	"time"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
)

// measuresHost reports whether the node measures what its processors keep from programs.
// The leading node holds its attempts against the rule by itself, and in a lab all nodes
// are one machine.
func (w *watchedNode) measuresHost() bool {
	return slices.ContainsFunc(w.records, func(r watchedRecord) bool { return r.Host != nil })
}

// judgeHost holds an attempt against the time that programs of a node which does not lead
// missed meanwhile, to a tenth of a second and the bounds of the clocks.
func (w *watchedNode) judgeHost(j *judged, most float64, at attemptTime) {
	if !w.measuresHost() {
		return
	}
	load, lasted := journal.HostLoad{}, at.to.Sub(at.from)
	for i := range w.records {
		r, since := &w.records[i], w.since(i)
		if r.Host == nil || w.until(i).Before(at.from) || since.After(at.to) {
			continue
		}
		load.Missed += r.Host.During(at.from.Sub(since), at.to.Sub(since))
	}
	if share := load.Share(lasted); share > most {
		j.breaks(runsheet.RuleHost, "programs of the %s were ready and did not run for %.1f %% of the attempt (%s), at most %g %% are allowed", w.role, 100*share, load.Missed.Round(time.Millisecond), 100*most)
		return
	}
	w.unwatched(j, runsheet.RuleHost, at)
}
