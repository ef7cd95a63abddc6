package document

import (
	"fmt"
	"strconv"
	"strings"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/wording"
)

func comparisons(v *report.Analysis) ([]Section, error) {
	names := runNames(v)
	var parts []Section
	for _, s := range []Section{comparedThroughput(v, names), comparedDelivery(v, names), comparedRuns(v), comparedCampaigns(v)} {
		if len(s.Blocks) > 0 {
			parts = append(parts, s)
		}
	}
	if len(parts) == 0 {
		return nil, nil
	}
	return append([]Section{{ID: "comparisons", Title: "Comparisons", Level: 1, Blocks: []Block{
		paragraph("Intervals have a level of 95 % and are each of one comparison. Values of p in columns that are called Holm-corrected allow for all comparisons of the run."),
	}}}, parts...), nil
}

func comparedThroughput(v *report.Analysis, names []string) Section {
	rate := v.RateUnit()
	var runs []ofRun
	var notes []string
	for i := range v.Tables {
		t := &v.Tables[i]
		r := ofRun{run: i}
		for k := range t.Rows {
			if c := t.Rows[k].Comparison; c != nil {
				r.rows = append(r.rows, append([]string{wording.Clean(t.Rows[k].Label) + " against " + t.ReferenceLabel()}, c.Cells(rate)...))
			}
		}
		if len(r.rows) > 0 {
			runs = append(runs, r)
		}
		for _, n := range t.Notes {
			notes = append(notes, wording.Sentence(names[i]+": "+wording.Clean(n)))
		}
	}
	s := Section{ID: "comparisons-throughput", Title: "Throughput in a run", Level: 2}
	if len(runs) > 0 {
		s.Blocks = append(s.Blocks, paragraph("Treatments against the reference of their run, "+report.ComparisonMethod+"."))
		s.Blocks = append(s.Blocks, tablesOf(names, "Throughput against the reference, in "+rate.Name, append([]column{textColumn("Treatment")}, numberColumns(report.ComparisonHeader()...)...), runs)...)
	}
	shown, rest := bounded(notes, "%d more such sentences are in results.json.")
	if len(shown) > 0 {
		s.Blocks = append(s.Blocks, paragraph("What to know before pairs of treatments are read:"), list(shown...))
	}
	if rest != "" {
		s.Blocks = append(s.Blocks, paragraph(rest))
	}
	return s
}

func comparedDelivery(v *report.Analysis, names []string) Section {
	var runs []ofRun
	for i := range v.Tables {
		t := &v.Tables[i]
		r := ofRun{run: i}
		for k := range t.Rows {
			row := &t.Rows[k]
			if !report.HasDeliveryDifference(row) {
				continue
			}
			x := row.Delivery.Difference
			r.rows = append(r.rows, []string{wording.Clean(row.Label) + " against " + t.ReferenceLabel(), strconv.Itoa(x.Pairs), wording.Number(row.Delivery.MeanSeconds),
				wording.Number(x.SoonerSeconds), x.SoonerCI.Text(wording.Number), wording.PValue(x.P), wording.PValue(x.PHolm)})
		}
		if len(r.rows) > 0 {
			r.notes = []string{wording.Sentence(t.DeliveryLegend()), wording.Sentence(t.SoonerLegend())}
			runs = append(runs, r)
		}
	}
	return Section{ID: "comparisons-delivery", Title: "Time to delivery in a run", Level: 2, Blocks: tablesOf(names, "Time to delivery against the reference",
		append([]column{textColumn("Treatment")}, numberColumns("Pairs", "Mean, s", "Sooner, s", "95 % CI, t", "p, t", "p, Holm-corrected")...), runs)}
}

// comparedRuns hold treatments against each other over runs, as places or days.
func comparedRuns(v *report.Analysis) Section {
	s := Section{ID: "comparisons-runs", Title: "Over runs", Level: 2}
	sets := report.HoldRuns(v)
	for _, text := range report.OverRunsTexts(sets) {
		s.Blocks = append(s.Blocks, paragraph(wording.Clean(text)))
	}
	labels := treatmentLabels(v)
	t := plainTable("Ratios over runs, each of one comparison", append([]column{textColumn("Value"), textColumn("Treatment")},
		numberColumns("Runs", "Pairs", "Mean ratio", "95 % CI, t", "Variance between runs", "About so many more runs")...))
	for i := range sets {
		for k := range sets[i].Comparisons {
			c := &sets[i].Comparisons[k]
			t.Rows = append(t.Rows, Row{Group: k == 0, Cells: []string{sets[i].Metric, labels[c.Value] + " against " + labels[c.Reference],
				strconv.Itoa(c.Runs), strconv.Itoa(c.Pairs), wording.Number(c.MeanRatio), c.MeanRatioCI.Text(wording.Number), wording.Percent(c.BetweenShare, 0), moreRuns(c.MoreRuns)}})
		}
	}
	if len(t.Rows) > 0 {
		t.Notes = []string{"Mean ratio: value / reference; below 1 a time to delivery is shorter. Variance between runs: its share of the variance of the mean. More runs: about how many would decide the comparison; empty where it is decided, or where that cannot be said."}
		s.Blocks = append(s.Blocks, tableBlock(t))
	}
	return s
}

func moreRuns(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// treatmentLabels are how tables call the treatments.
func treatmentLabels(v *report.Analysis) map[string]string {
	out := map[string]string{}
	for i := range v.Tables {
		for k := range v.Tables[i].Rows {
			r := &v.Tables[i].Rows[k]
			if out[r.Treatment] == "" {
				out[r.Treatment] = wording.Clean(r.Label)
			}
		}
	}
	return out
}

// comparedCampaigns hold the campaigns of one report against the first one.
func comparedCampaigns(v *report.Analysis) Section {
	s := Section{ID: "comparisons-campaigns", Title: "Campaigns", Level: 2}
	d := report.HoldCampaigns(v)
	if len(d.Campaigns) < 2 {
		return s
	}
	rate := v.RateUnit()
	columns := append([]column{textColumn("Treatment")}, numberColumns(report.DifferenceHeader()...)...)
	if sections := d.Sections(); len(sections) <= mostRunTables {
		for _, lines := range sections {
			t := plainTable(fmt.Sprintf("Throughput in %s, %s: %s", rate.Name, wording.Clean(lines[0].Against()), wording.Clean(lines[0].Where)), columns)
			addDifferences(t, lines, rate)
			s.Blocks = append(s.Blocks, tableBlock(t))
		}
	} else {
		t := plainTable("Throughput in "+rate.Name+" of campaigns", append([]column{textColumn("Conditions")}, columns...))
		for _, lines := range sections {
			addDifferences(t, lines, rate, wording.Clean(lines[0].Where+": "+lines[0].Against()))
		}
		s.Blocks = append(s.Blocks, tableBlock(t))
	}
	if len(d.Lines) == 0 {
		s.Blocks = append(s.Blocks, paragraph("No treatment of these campaigns has the same name and conditions."))
	} else {
		s.Blocks = append([]Block{paragraph(wording.Sentence(report.DifferencesMethod))}, s.Blocks...)
	}
	if text := d.AloneText(); text != "" {
		s.Blocks = append(s.Blocks, paragraph(text))
	}
	return s
}

// addDifferences adds a row a line, with further cells before those of the first.
func addDifferences(t *Table, lines []report.Difference, rate wording.RateUnit, first ...string) {
	for i := range lines {
		l := &lines[i]
		label := wording.Clean(l.Label)
		t.Rows = append(t.Rows, Row{Group: i == 0, Cells: append(append(append(make([]string, 0, len(t.Columns)), first...), label), l.Cells(rate)...)})
		if s := l.Remarks(); s != "" {
			t.note(label + ": " + strings.TrimSuffix(wording.Clean(s), ".") + ".")
		}
		clear(first)
	}
}
