package document

import (
	"cmp"
	"slices"
	"strings"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/wording"
)

// titled is a document without sections.
func titled(v *report.Analysis) *Document {
	ds := v.Dataset
	title := wording.Clean(cmp.Or(ds.Plan, "a plan without a name"))
	var places []string
	for i := range v.Tables {
		if p := v.Tables[i].Place; p != "" && !slices.Contains(places, p) {
			places = append(places, p)
		}
	}
	d := &Document{Title: "Field trial " + title, Subtitle: "Campaign " + wording.Clean(ds.Campaign)}
	d.Running = wording.Clean(strings.Join(append([]string{title, "campaign " + ds.Campaign}, places...), " · "))
	if !ds.Complete || slices.ContainsFunc(v.Tables, func(t report.RunTable) bool { return t.Partial }) {
		d.Partial = "Not the whole campaign: runs of it were still under way, or did not come to their end."
	}
	if w := ownWords(ds); w != nil {
		d.claim(w)
	}
	return d
}
