package render

import (
	"strings"

	"linktrial/orchestrator/report"
)

// writeOverRuns writes how treatments compare over several runs.
func writeOverRuns(b *strings.Builder, v *report.Analysis) {
	for i, text := range report.OverRunsTexts(report.HoldRuns(v)) {
		if i == 0 {
			b.WriteString("\n")
		}
		paragraph(b, text)
	}
}

// mdOverRuns is the same in Markdown.
func mdOverRuns(b *strings.Builder, v *report.Analysis) {
	for _, text := range report.OverRunsTexts(report.HoldRuns(v)) {
		b.WriteString(md(text) + "\n\n")
	}
}
