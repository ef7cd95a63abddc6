package report

import (
	"reflect"
	"slices"
	"strings"

	"linktrial/executor/runsheet"
	"linktrial/orchestrator/plan"
)

// Merge puts the runs of several datasets into one, in their order, so that they
// are side by side in every table and figure. Runs of different campaigns get
// the campaign as one more setting of their cell: without it, what else is equal
// would be averaged.
func Merge(all []*Dataset) *Dataset {
	if len(all) == 1 {
		return all[0]
	}
	out := &Dataset{Complete: true}
	var campaigns, plans []string
	add := func(list *[]string, s string) {
		if s != "" && !slices.Contains(*list, s) {
			*list = append(*list, s)
		}
	}
	seen := map[string]bool{}
	for _, ds := range all {
		add(&campaigns, ds.Campaign)
		add(&plans, ds.Plan)
		out.Complete = out.Complete && ds.Complete
		if out.Created.IsZero() || ds.Created.Before(out.Created) {
			out.Created = ds.Created
		}
		out.Published = addAll(out.Published, ds.Published, sameRow)
		out.PublishedValues = addAll(out.PublishedValues, ds.PublishedValues, sameValue)
		out.Notes = addAll(out.Notes, ds.Notes, func(a, b string) bool { return a == b })
		out.Words = addAll(out.Words, ds.Words, func(a, b Words) bool { return a.Campaign == b.Campaign })
	}
	for _, ds := range all {
		for i := range ds.Runs {
			if r := ds.Runs[i]; !seen[r.ID] {
				seen[r.ID] = true
				if len(campaigns) > 1 && r.Sheet != nil {
					r.Sheet = ofCampaign(r.Sheet, ds.Campaign)
				}
				out.Runs = append(out.Runs, r)
			}
		}
	}
	out.Campaign, out.Plan = strings.Join(campaigns, ", "), strings.Join(plans, ", ")
	return out
}

// ofCampaign is a copy of a sheet whose cell names its campaign.
func ofCampaign(s *runsheet.Sheet, campaign string) *runsheet.Sheet {
	c := *s
	c.Cell.Label = strings.TrimPrefix(s.Cell.Label+", "+CampaignAxis+" "+campaign, ", ")
	c.Cell.Settings = append(slices.Clone(s.Cell.Settings), runsheet.Setting{Axis: CampaignAxis, Label: campaign})
	return &c
}

func addAll[T any](list, more []T, same func(a, b T) bool) []T {
	for _, x := range more {
		if !slices.ContainsFunc(list, func(y T) bool { return same(x, y) }) {
			list = append(list, x)
		}
	}
	return list
}

// sameRow reports whether two campaigns carry one published row.
func sameRow(a, b PublishedRow) bool { return reflect.DeepEqual(a, b) }

func sameValue(a, b plan.PublishedValue) bool {
	return a.Group == b.Group && a.Treatment == b.Treatment && a.Metric == b.Metric && a.Source == b.Source && a.Text == b.Text &&
		slices.Equal(a.Where, b.Where) && slices.Equal(a.Order, b.Order) && statement(&a, nil) == statement(&b, nil) && a.Reference == b.Reference
}
