package render

import (
	"cmp"
	"fmt"
	"strings"

	"linktrial/internal/unit"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/wording"
)

// markdownEscaper keeps text of others from being read as markup.
var markdownEscaper = strings.NewReplacer(
	`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", `\<`, ">", `\>`, "|", `\|`, "#", `\#`, "&", `\&`, "~", `\~`,
)

func md(s string) string { return markdownEscaper.Replace(wording.Clean(s)) }

// mdTable writes a table whose first column is text and whose others are numbers.
func mdTable(b *strings.Builder, header []string, rows [][]string) {
	b.WriteString("| " + strings.Join(header, " | ") + " |\n|---" + strings.Repeat("|--:", len(header)-1) + "|\n")
	for _, r := range rows {
		b.WriteString("| " + strings.Join(r, " | ") + " |\n")
	}
	b.WriteString("\n")
}

var markdownFormat = &Format{Name: "markdown", Title: "Markdown", File: "results.md", MediaType: markdown,
	Holds:     "the tables, with comparisons and published values",
	bootstrap: true, write: inMemory(renderMarkdown)}

func renderMarkdown(v *report.Analysis) ([]byte, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "# Results of %s\n\n", md(cmp.Or(v.Dataset.Plan, "a plan without a name")))
	fmt.Fprintf(&b, "Campaign %s, created %s", md(v.Dataset.Campaign), unit.Moment(v.Dataset.Created))
	if !v.Dataset.Complete {
		b.WriteString(", **partial**: it has not ended")
	}
	rate := v.RateUnit()
	fmt.Fprintf(&b, ".\n\nThroughput is in %s; %s. ", rate.Name, rate.Meaning())
	b.WriteString("Valid: the last attempt succeeded and every byte was verified. ")
	b.WriteString("SD: of the sample (n−1). 95 % CI: of the average, by Student's t (not below 0) and by the bootstrap (BCa). ")
	b.WriteString("Of Ideal: the time an all-knowing sender would have needed on the same channel realisation over the time taken, averaged. ")
	b.WriteString("Of coded bound: the same of a sender who knows the statistics of the channel but not its future, and has an ideal code.\n\n")
	for i := range v.Tables {
		mdRun(&b, &v.Tables[i], rate)
	}
	mdOverRuns(&b, v)
	for _, n := range v.Dataset.Notes {
		fmt.Fprintf(&b, "- %s\n", md(n))
	}
	return []byte(strings.TrimRight(b.String(), "\n") + "\n"), nil
}

func mdRun(b *strings.Builder, t *report.RunTable, rate wording.RateUnit) {
	fmt.Fprintf(b, "## %s\n\n", md(t.Heading()))
	if s := t.PartialNote(); s != "" {
		fmt.Fprintf(b, "**%s**\n\n", md(s))
	}
	var rows [][]string
	for i := range t.Rows {
		r := &t.Rows[i]
		if r.Missing != "" {
			rows = append(rows, []string{md(r.Label), "missing", wording.None, wording.None, wording.None, wording.None, wording.None, wording.None, wording.None, wording.None, wording.None})
			continue
		}
		rows = append(rows, []string{
			md(r.Label), r.ValidOf(), rate.Write(r.AverageKBps), rate.Write(r.MaxKBps), rate.Write(r.MinKBps), rate.Write(r.SDKBps), rate.Write(r.MedianKBps),
			r.MeanCI.Text(rate.Write), r.BootstrapCI.Text(rate.Write), wording.Percent(r.ShareOfIdeal, 1), wording.Percent(r.ShareOfCodedBound, 1),
		})
	}
	if len(rows) > 0 || len(t.Probes) == 0 {
		mdTable(b, []string{"Treatment", "Valid", "Average, " + rate.Name, "Max", "Min", "SD", "Median", "95 % CI, t", "95 % CI, bootstrap", "Of Ideal", "Of coded bound"}, rows)
	}
	if t.Has(report.HasDelivery) {
		mdDelivery(b, t, rate)
	}
	if t.Conclusion != "" {
		b.WriteString(md(t.Conclusion) + "\n\n")
	}
	for _, note := range t.Notes {
		b.WriteString(md(note) + "\n\n")
	}
	notes := 0
	for i := range t.Rows {
		r := &t.Rows[i]
		note := r.Remarks()
		if r.Missing != "" {
			note = "missing: " + r.Missing
		}
		if note != "" {
			fmt.Fprintf(b, "- %s: %s\n", md(r.Label), md(note))
			notes++
		}
	}
	if notes > 0 {
		b.WriteString("\n")
	}
	if t.Has(report.HasComparison) {
		mdComparison(b, t, rate)
	}
	if t.Has(report.HasPublished) {
		mdPublished(b, t, rate)
	}
	if t.BoundsUnknown != "" {
		b.WriteString(t.BoundsUnknown + "\n\n")
	}
	for _, note := range []string{t.ControlNote, t.HostNote} {
		if note != "" {
			b.WriteString(md(note) + "\n\n")
		}
	}
	if len(t.Probes) > 0 {
		mdProbes(b, t)
	}
	mdRequirements(b, t)
	fmt.Fprintf(b, "Run %s, sheet %s.\n\n", md(t.Run), md(t.SheetHash))
}

func mdComparison(b *strings.Builder, t *report.RunTable, rate wording.RateUnit) {
	fmt.Fprintf(b, "Against %s, %s:\n\n", md(t.ReferenceLabel()), report.ComparisonMethod)
	var rows [][]string
	for i := range t.Rows {
		if r := &t.Rows[i]; r.Comparison != nil {
			rows = append(rows, append([]string{md(r.Label)}, r.Comparison.Cells(rate)...))
		}
	}
	mdTable(b, append([]string{"Treatment"}, report.ComparisonHeader()...), rows)
}

func mdPublished(b *strings.Builder, t *report.RunTable, rate wording.RateUnit) {
	b.WriteString("Beside the published values:\n\n")
	var rows [][]string
	for i := range t.Rows {
		r := &t.Rows[i]
		if p := r.Published; p != nil {
			rows = append(rows, []string{
				md(r.Label), rate.Write(r.AverageKBps), rate.Write(&p.AvgKBps), wording.Deviation(p.AvgDeviation), rate.Write(r.MaxKBps), rate.Write(&p.MaxKBps), wording.Deviation(p.MaxDeviation),
				rate.Write(r.MinKBps), rate.Write(&p.MinKBps), wording.Deviation(p.MinDeviation), rate.Write(r.SDKBps), rate.Write(&p.SDKBps), md(p.Source),
			})
		}
	}
	mdTable(b, []string{"Treatment", "Average", "published", "off by", "Max", "published", "off by", "Min", "published", "off by", "SD", "published", "Source"}, rows)
}
