package day

import (
	"fmt"
	"strings"
	"time"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/internal/unit"
	"linktrial/orchestrator/report/render"
	"linktrial/orchestrator/report/wording"
)

// readme says what was found and what is in the archive, in Markdown.
func readme(s *linktrialv1.DaySummary, formats []*linktrialv1.Format, version string, made time.Time) string {
	b := &strings.Builder{}
	fmt.Fprintf(b, "# %s\n\n", s.Date)
	fmt.Fprintf(b, "What ended on %s (%s), which is from %s to %s by the orchestrator's clock. Made by linktrial %s at %s.\n\n",
		s.Date, s.Zone, unit.Moment(s.From.AsTime()), unit.Moment(s.To.AsTime()), wording.Clean(version), unit.Moment(made))
	writeCampaigns(b, s)
	writeList(b, "Not complete", s.Incomplete)
	writeFindings(b, s)
	writeFailures(b, s)
	writeContents(b, s, formats)
	return b.String()
}

func writeList(b *strings.Builder, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(b, "## %s\n\n", title)
	for _, line := range lines {
		fmt.Fprintf(b, "- %s\n", line1(line))
	}
	fmt.Fprintln(b)
}

// line1 is a text of nodes or people as one line of Markdown.
func line1(s string) string { return wording.Clean(strings.ReplaceAll(s, "\n", "; ")) }

func writeCampaigns(b *strings.Builder, s *linktrialv1.DaySummary) {
	if len(s.Campaigns) == 0 {
		fmt.Fprint(b, "No campaign ended on this day.\n\n")
		return
	}
	fmt.Fprint(b, "| campaign | run | radio and topology | ended as | audit |\n|---|---|---|---|---|\n")
	cell := func(s string) string { return strings.ReplaceAll(line1(s), "|", `\|`) }
	for _, c := range s.Campaigns {
		for _, r := range c.Runs {
			fmt.Fprintf(b, "| %s (`%s`) | `%s` | %s, %s | %s | %s |\n", cell(nameOf(c.Name, c.Plan)), c.Id, r.Id, cell(r.Radio), cell(r.Topology), r.State, cell(AuditText(r)))
		}
	}
	fmt.Fprint(b, "\nAn audit here has the orchestrator's store and the exported files. The nodes' own journals are not at the orchestrator: checks that need them are *not checked* or *partly checked*, and `linktrial audit-run CAMPAIGN --journals FOLDER` makes them. The check `faults` needs the list of a fault campaign, which rehearsals alone have.\n\n")
}

// AuditText is the outcome of a run's audit in a line.
func AuditText(r *linktrialv1.DayRun) string {
	if r.Failure != "" {
		return "not audited: " + r.Failure
	}
	found := "no findings"
	if r.Findings > 0 {
		found = wording.Plural(int(r.Findings), "finding", "findings")
	}
	text := found + "; " + wording.Plural(int(r.Passed), "check passed", "checks passed")
	if r.Partly > 0 {
		text += fmt.Sprintf(", %d partly checked", r.Partly)
	}
	if r.NotChecked > 0 {
		text += fmt.Sprintf(", %d not checked", r.NotChecked)
	}
	return text
}

func writeFindings(b *strings.Builder, s *linktrialv1.DaySummary) {
	var lines []string
	for _, c := range s.Campaigns {
		for _, r := range c.Runs {
			for _, f := range r.First {
				lines = append(lines, "run "+r.Id+", "+f)
			}
			if more := int(r.Findings) - len(r.First); more > 0 && len(r.First) > 0 {
				lines = append(lines, fmt.Sprintf("run %s: and %d more, in %s/audit.json", r.Id, more, c.Id))
			}
		}
	}
	writeList(b, "Findings", lines)
}

func writeFailures(b *strings.Builder, s *linktrialv1.DaySummary) {
	var lines []string
	for _, c := range s.Campaigns {
		for _, f := range c.Failures {
			lines = append(lines, "campaign "+c.Id+", "+f)
		}
	}
	if s.Backup.GetFailure() != "" {
		lines = append(lines, "backup: "+s.Backup.Failure)
	}
	writeList(b, "What could not be made", lines)
}

func writeContents(b *strings.Builder, s *linktrialv1.DaySummary, formats []*linktrialv1.Format) {
	fmt.Fprint(b, "## What is in this archive\n\nA drawing of many panels has several files, such as `results-1.svg` and `results-2.svg`.\n\n| file | what is in it |\n|---|---|\n")
	fmt.Fprint(b, "| `summary.json` | what this page says, for programs |\n")
	if len(s.Campaigns) > 0 {
		fmt.Fprint(b, "| `CAMPAIGN/audit.json` | the audit of each run, with all findings, as `linktrial audit-run --json` prints it |\n")
	}
	for _, f := range formats {
		holds := f.Title
		if known := render.Find(f.Name); known != nil {
			holds = known.Holds
		}
		fmt.Fprintf(b, "| `CAMPAIGN/results/%s` | %s |\n", f.FileName, holds)
	}
	if k := s.Backup; k != nil && k.Failure == "" {
		fmt.Fprintf(b, "| `backup/linktrial-backup-%s.tar.gz` | the orchestrator's store and keys; `linktrial backup restore` reads it. It has secret keys: keep it where nobody else can read it. It is signed by the key `%s`; write that down apart from it |\n", s.Date, k.Fingerprint)
	} else if k == nil {
		fmt.Fprint(b, "\nThere is no backup in it: none was asked for.\n")
	}
}
