package document

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/wording"
)

// mostConclusions is of how many runs the conclusions are written out; of more, a table has
// which treatment leads where.
const mostConclusions = 8

// conclusion is what the results say: which treatment leads where, by how much, whether the
// trials decide it, and which requirements of the plan are passed.
func conclusion(v *report.Analysis) ([]Section, error) {
	var blocks []Block
	if names := campaignsOf(v); len(names) > 1 {
		blocks = paragraphs(fmt.Sprintf("This report is of %d campaigns: %s.", len(names), strings.Join(names, ", ")))
	}
	texts := conclusionTexts(v)
	if len(v.Tables) == 1 {
		blocks, texts = append(blocks, texts...), nil
	}
	blocks = slices.Concat(blocks, leadCount(v), leaderTable(v), undecidedText(v))
	over := paragraphs(report.OverRunsTexts(report.HoldRuns(v))...)
	if len(v.Dataset.Runs) > 0 && len(blocks) == 0 && len(requirementBlocks(v)) == 0 {
		blocks = append(blocks, paragraph("The results compare no treatments: no run has two treatments with values."))
	}
	return chapterOf("conclusion", "Conclusion", blocks,
		partOf("conclusion-runs", "Run by run", texts),
		partOf("conclusion-over-runs", "Over runs", over),
		partOf("conclusion-required", "Requirements of the plan", requirementBlocks(v)),
		partOf("conclusion-notes", "To know when reading", listOf(slices.Clone(v.Dataset.Notes)))), nil
}

// campaignsOf are the identities of the campaigns, in the order of their runs.
func campaignsOf(v *report.Analysis) (names []string) {
	for i := range v.Dataset.Runs {
		name := report.ValueOf(v.Dataset.Runs[i].Axes(), report.CampaignAxis)
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// leadsOf are the leads of the runs that compare treatments.
func leadsOf(v *report.Analysis) (leads []report.Lead) {
	for i := range v.Tables {
		if l := v.Tables[i].Lead; l.Text != "" {
			leads = append(leads, l)
		}
	}
	return leads
}

// leadCount says in how many runs which treatment leads, where there are several.
func leadCount(v *report.Analysis) []Block {
	if leads := leadsOf(v); len(leads) > 1 {
		return paragraphs(report.LeadsText(leads))
	}
	return nil
}

// leaderTable is the table of which treatment leads in which run.
func leaderTable(v *report.Analysis) []Block {
	rate := v.RateUnit()
	g := grid{
		caption: "Which treatment leads where",
		heads:   []string{"Run", "Radio and place", "Setting", "Measured", "Leader", "Decided", "Average, " + rate.Name, "95 % interval", "In short"},
		numbers: []string{"Run", "Average, " + rate.Name, "95 % interval"},
	}
	led, ruled := false, false
	for i := range v.Tables {
		t := &v.Tables[i]
		if t.Lead.Text == "" {
			continue
		}
		average, interval := leaderValues(t, rate)
		led, ruled = led || t.Lead.Leader != "", ruled || t.Stopping != nil
		leader, decided := "none", ""
		if t.Lead.Leader != "" {
			leader, decided = t.Lead.Leader, map[bool]string{true: "yes", false: "no"}[t.Lead.Decided]
		}
		place := t.Place
		if t.Partial {
			place += " (partial)"
		}
		g.add(strconv.Itoa(i+1), radioAt(t), caseOf(v, t), place, leader, decided, average, interval, t.Lead.Text)
	}
	if led {
		g.notes = []string{"Decided: the interval of the difference between the leader and the next treatment, corrected for all pairs of treatments, excludes no difference.",
			"Average: of the leader, with Student's interval. " + rate.Meaning() + "."}
	}
	if ruled {
		g.notes = append(g.notes, "Where the plan has a rule to stop by, this rule decides.")
	}
	return g.blocks()
}

// leaderValues are the average and its interval of the treatment that leads.
func leaderValues(t *report.RunTable, rate wording.RateUnit) (average, interval string) {
	i := slices.IndexFunc(t.Rows, func(r report.Row) bool {
		return t.Lead.Leader != "" && wording.Clean(r.Label) == t.Lead.Leader
	})
	if i < 0 {
		return "", ""
	}
	row := &t.Rows[i]
	if row.MeanCI != nil {
		interval = rate.Write(&row.MeanCI.Low) + " to " + rate.Write(&row.MeanCI.High)
	}
	return rate.Write(row.AverageKBps), interval
}

// undecidedText says in how many runs, and in which, the trials decide no leader.
func undecidedText(v *report.Analysis) []Block {
	var open, none []int
	for i := range v.Tables {
		switch t := &v.Tables[i]; {
		case t.Lead.Text == "" && len(t.Rows) > 0:
			none = append(none, i)
		case t.Lead.Text != "" && !t.Lead.Decided:
			open = append(open, i)
		}
	}
	var texts []string
	if all := len(v.Tables); len(open) > 0 {
		texts = append(texts, "In "+runsText(open, all)+" the trials do not decide which treatment is best.")
	}
	if len(none) > 0 {
		texts = append(texts, "In "+runsText(none, len(v.Tables))+" fewer than two treatments have values, and nothing is compared.")
	}
	return paragraphs(texts...)
}

// conclusionTexts are those of few runs with their statistics, and the notes on them.
func conclusionTexts(v *report.Analysis) (blocks []Block) {
	if len(leadsOf(v)) > mostConclusions {
		return nil
	}
	for i := range v.Tables {
		t := &v.Tables[i]
		texts := slices.DeleteFunc(append([]string{t.Conclusion}, t.Notes...), func(s string) bool { return s == "" })
		if len(texts) == 0 {
			continue
		}
		head := ""
		if len(v.Tables) > 1 {
			head = fmt.Sprintf("Run %d, %s: ", i+1, t.Heading())
		}
		blocks = append(blocks, paragraphs(head+strings.Join(texts, " "), t.PartialNote())...)
	}
	return blocks
}

// mostPassed is from how many requirements on those that pass are counted alone.
const mostPassed = 40

// requirementBlocks is the table of what the plan requires, with its outcomes.
func requirementBlocks(v *report.Analysis) []Block {
	var all []report.Judgement
	for i := range v.Tables {
		all = append(all, v.Tables[i].Requirements...)
	}
	if len(all) == 0 {
		return nil
	}
	g := grid{
		caption: "Requirements of the plan",
		heads:   []string{"Run", "Radio and place", "Setting", "Of", "Outcome", "Value, interval and requirement"},
		numbers: []string{"Run"},
		notes:   []string{"pass: the whole interval meets the bounds; fail: none of it does; undecided: part of it does, there is no interval, or the run is partial."},
	}
	for i := range v.Tables {
		t := &v.Tables[i]
		for k := range t.Requirements {
			if j := &t.Requirements[k]; len(all) <= mostPassed || j.Outcome != report.Pass {
				g.add(strconv.Itoa(i+1), radioAt(t), caseOf(v, t), j.Label, string(j.Outcome), j.Text)
			}
		}
	}
	if len(all) > mostPassed {
		g.notes = append(g.notes, "Requirements that are passed are counted, and not in the table.")
	}
	return append(paragraphs(report.OutcomesText(all)), g.blocks()...)
}
