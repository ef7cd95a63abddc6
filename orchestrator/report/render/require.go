package render

import (
	"fmt"
	"strings"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/wording"
)

// requirementText is a requirement with its outcome: "pass: TCP CUBIC: average …".
func requirementText(j *report.Judgement) string {
	return string(j.Outcome) + ": " + wording.Clean(j.Label) + ": " + j.Text
}

func writeRequirements(b *strings.Builder, t *report.RunTable) {
	if len(t.Requirements) == 0 {
		return
	}
	b.WriteString("\n")
	paragraph(b, report.OutcomesText(t.Requirements))
	for i := range t.Requirements {
		paragraph(b, requirementText(&t.Requirements[i]))
	}
}

func mdRequirements(b *strings.Builder, t *report.RunTable) {
	if len(t.Requirements) == 0 {
		return
	}
	b.WriteString(md(report.OutcomesText(t.Requirements)) + "\n\n")
	for i := range t.Requirements {
		j := &t.Requirements[i]
		fmt.Fprintf(b, "- **%s**: %s: %s\n", j.Outcome, md(j.Label), md(j.Text))
	}
	b.WriteString("\n")
}

// compactRequirements are those that a campaign of many runs does not pass; those that it
// passes are counted alone.
func compactRequirements(b *strings.Builder, v *report.Analysis) {
	all, passed := 0, 0
	var rest []string
	for i := range v.Tables {
		t := &v.Tables[i]
		for k := range t.Requirements {
			if all++; t.Requirements[k].Outcome == report.Pass {
				passed++
				continue
			}
			rest = append(rest, t.Heading()+": "+requirementText(&t.Requirements[k]))
		}
	}
	if all == 0 {
		return
	}
	b.WriteString("\n")
	paragraph(b, fmt.Sprintf("Required: %d of %s pass.", passed, wording.Plural(all, "requirement", "requirements")))
	for _, text := range rest {
		paragraph(b, text)
	}
}
