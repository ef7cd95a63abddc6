package render

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/wording"
)

const oneCampaign = "Differences are between campaigns: name two or more."

const differencesMethod = "n: valid trials of the two campaigns. Difference: of the averages, with Welch's 95 % interval; p is of Welch's test, which that interval inverts, " +
	"Holm-corrected for all lines; * is p < 0.05. The trials of two campaigns count as independent of each other."

// alone says what has nothing to be held against.
func alone(d *report.Differences) string {
	if d.Alone == 0 {
		return ""
	}
	return fmt.Sprintf("Without a counterpart in the other campaign: %s, each under its conditions.", wording.Plural(d.Alone, "treatment", "treatments"))
}

// differencesHeader and differenceCells are the table for people.
func differencesHeader() []string {
	return []string{"", "n", "reference", "campaign", "difference", "95 % CI", "change", "p"}
}

func differenceCells(d *report.Difference, rate wording.RateUnit) []string {
	star := ""
	if d.Decided() {
		star = "*"
	}
	return []string{wording.Clean(d.Label), fmt.Sprintf("%d, %d", d.ReferenceValid, d.Valid), rate.Write(d.ReferenceKBps), rate.Write(d.AverageKBps),
		signed(d.DifferenceKBps, rate), span(d.CI, rate.Write), wording.Deviation(d.ChangePercent), wording.PValue(d.PHolm) + star}
}

// signed is a difference of throughputs, with its sign.
func signed(x *float64, rate wording.RateUnit) string {
	s := rate.Write(x)
	if x != nil && *x > 0 {
		return "+" + s
	}
	return s
}

// sections are the lines of the same conditions and campaign, in the order of their first.
func sections(lines []report.Difference) (out [][]report.Difference) {
	same := func(a, b *report.Difference) bool { return a.Where == b.Where && a.Campaign == b.Campaign }
	for i := range lines {
		if k := slices.IndexFunc(out, func(s []report.Difference) bool { return same(&s[0], &lines[i]) }); k >= 0 {
			out[k] = append(out[k], lines[i])
			continue
		}
		out = append(out, []report.Difference{lines[i]})
	}
	return out
}

var differencesFormat = &Format{Name: "differences", Title: "Plain text, differences of campaigns", File: "differences.txt", MediaType: plain, Of: OfSeveral,
	Holds: "each treatment that two campaigns have under the same conditions, held against the first campaign",
	write: inMemory(renderDifferences)}

var differencesCSVFormat = &Format{Name: "differences-csv", Title: "CSV, a row a difference of campaigns", File: "differences.csv", MediaType: csvText, Of: OfSeveral,
	Holds: "the same, a row for each difference",
	write: renderDifferencesCSV}

var differencesMarkdownFormat = &Format{Name: "differences-markdown", Title: "Markdown, differences of campaigns", File: "differences.md", MediaType: markdown, Of: OfSeveral,
	Holds: "the same as tables",
	write: inMemory(renderDifferencesMarkdown)}

func renderDifferences(v *report.Analysis) ([]byte, error) {
	d := report.HoldCampaigns(v)
	if len(d.Campaigns) < 2 {
		return []byte(oneCampaign + "\n"), nil
	}
	var b strings.Builder
	rate := v.RateUnit()
	paragraph(&b, "Campaigns compared with "+d.Campaigns[0]+", throughput in "+rate.Name)
	for _, lines := range sections(d.Lines) {
		b.WriteString("\n")
		paragraph(&b, wording.Clean(lines[0].Where)+": "+against(&lines[0]))
		g := grid{header: differencesHeader()}
		var notes []string
		for i := range lines {
			l := &lines[i]
			g.rows = append(g.rows, gridRow{cells: differenceCells(l, rate)})
			if s := remarks(l); s != "" {
				notes = append(notes, wording.Clean(l.Label)+": "+s)
			}
		}
		g.write(&b)
		for _, n := range notes {
			paragraph(&b, n)
		}
	}
	b.WriteString("\n")
	if len(d.Lines) == 0 {
		paragraph(&b, "No treatment of these campaigns has the same name and conditions.")
	} else {
		paragraph(&b, differencesMethod+" "+rate.Meaning()+".")
	}
	if s := alone(d); s != "" {
		paragraph(&b, s)
	}
	writeNotes(&b, v)
	return []byte(b.String()), nil
}

// against names the two campaigns of a line, and which of them was imported.
func against(d *report.Difference) string {
	name := func(campaign string, x *report.Import) string {
		if x == nil {
			return campaign
		}
		return campaign + " (imported)"
	}
	return name(d.Campaign, d.Imported) + " against " + name(d.Reference, d.ReferenceImported)
}

// remarks are what a reader must know of a line beside its values.
func remarks(d *report.Difference) string {
	var out []string
	if d.Changed != "" {
		out = append(out, d.Changed)
	}
	if d.Partial {
		out = append(out, "partial: trials have not ended")
	}
	return strings.Join(out, "; ")
}

func renderDifferencesMarkdown(v *report.Analysis) ([]byte, error) {
	d := report.HoldCampaigns(v)
	if len(d.Campaigns) < 2 {
		return []byte(oneCampaign + "\n"), nil
	}
	var b strings.Builder
	rate := v.RateUnit()
	fmt.Fprintf(&b, "# Campaigns compared with %s\n\nThroughput in %s; %s. %s\n\n", md(d.Campaigns[0]), rate.Name, rate.Meaning(), strings.ReplaceAll(differencesMethod, "*", `\*`))
	for _, lines := range sections(d.Lines) {
		fmt.Fprintf(&b, "## %s: %s\n\n", md(lines[0].Where), md(against(&lines[0])))
		header := append(differencesHeader(), "remarks")
		header[0] = "treatment"
		var rows [][]string
		for i := range lines {
			cells := append(differenceCells(&lines[i], rate), remarks(&lines[i]))
			for k := range cells {
				cells[k] = md(cells[k])
			}
			rows = append(rows, cells)
		}
		mdTable(&b, header, rows)
	}
	if s := alone(d); s != "" {
		b.WriteString(md(s) + "\n")
	}
	mdNotes(&b, v)
	return []byte(strings.TrimRight(b.String(), "\n") + "\n"), nil
}

// differenceColumns are those of differences.csv; docs/exports.md describes them.
func differenceColumns() []column[*report.Difference] {
	number := func(x func(*report.Difference) *float64) func(*report.Difference) string {
		return func(d *report.Difference) string { return nine(x(d)) }
	}
	return []column[*report.Difference]{
		{"where", func(d *report.Difference) string { return d.Where }},
		{"treatment", func(d *report.Difference) string { return d.Treatment }},
		{"label", func(d *report.Difference) string { return d.Label }},
		{"reference", func(d *report.Difference) string { return d.Reference }},
		{"campaign", func(d *report.Difference) string { return d.Campaign }},
		{"reference_run", func(d *report.Difference) string { return d.ReferenceRun }},
		{"run", func(d *report.Difference) string { return d.Run }},
		{"reference_valid", func(d *report.Difference) string { return strconv.Itoa(d.ReferenceValid) }},
		{"valid", func(d *report.Difference) string { return strconv.Itoa(d.Valid) }},
		{"reference_average_kb_per_s", number(func(d *report.Difference) *float64 { return d.ReferenceKBps })},
		{"average_kb_per_s", number(func(d *report.Difference) *float64 { return d.AverageKBps })},
		{"difference_kb_per_s", number(func(d *report.Difference) *float64 { return d.DifferenceKBps })},
		{"difference_ci95_low_kb_per_s", number(func(d *report.Difference) *float64 { return low(d.CI) })},
		{"difference_ci95_high_kb_per_s", number(func(d *report.Difference) *float64 { return high(d.CI) })},
		{"change_percent", number(func(d *report.Difference) *float64 { return d.ChangePercent })},
		{"welch_p", number(func(d *report.Difference) *float64 { return d.P })},
		{"welch_p_holm", number(func(d *report.Difference) *float64 { return d.PHolm })},
		{"changed", func(d *report.Difference) string { return d.Changed }},
		{"partial", func(d *report.Difference) string { return strconv.FormatBool(d.Partial) }},
		{"reference_imported", func(d *report.Difference) string { return d.ReferenceImported.Text() }},
		{"imported", func(d *report.Difference) string { return d.Imported.Text() }},
		{"change_ci95_low_percent", number(func(d *report.Difference) *float64 { return low(d.ChangeCI) })},
		{"change_ci95_high_percent", number(func(d *report.Difference) *float64 { return high(d.ChangeCI) })},
		{"reference_failed", func(d *report.Difference) string { return strconv.Itoa(d.ReferenceFailed) }},
		{"failed", func(d *report.Difference) string { return strconv.Itoa(d.Failed) }},
	}
}

func renderDifferencesCSV(w io.Writer, v *report.Analysis) error {
	d := report.HoldCampaigns(v)
	rows := make([]*report.Difference, len(d.Lines))
	for i := range d.Lines {
		rows[i] = &d.Lines[i]
	}
	return writeCSV(w, differenceColumns(), rows)
}
