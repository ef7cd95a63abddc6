package trial

import (
	"cmp"
	"fmt"
	"io"
	"text/tabwriter"

	"linktrial/cmd/linktrial/terminal"
	"linktrial/internal/unit"
	"linktrial/orchestrator/evidence"
	"linktrial/orchestrator/report/audit"
)

// maxSigned is how many signatures the command prints; JSON has all.
const maxSigned = 40

// printVerdict prints what the check of a bag found: the checks with their findings, who
// signed what, what that proves, and what making the exported files again came to.
func printVerdict(out io.Writer, v *evidence.Verdict, notMade string, asJSON bool) error {
	if asJSON {
		text, err := encodeVerdict(v, notMade)
		if err == nil {
			_, err = out.Write(text)
		}
		return err
	}
	out = terminal.Escaped(out) // a bag is anybody's
	fmt.Fprintf(out, "%s: campaign %s, plan %s, packed at %s by Linktrial %s\n", v.Bag, v.Campaign, v.Plan, unit.Moment(v.Packed), v.Version)
	if err := printChecks(out, asAudit(v.Checks)); err != nil {
		return err
	}
	if err := printSigned(out, v.Signed); err != nil {
		return err
	}
	fmt.Fprintln(out)
	for _, text := range v.Means {
		fmt.Fprintln(out, text)
	}
	printRebuilt(out, v.Rebuilt, notMade)
	return nil
}

// asAudit is the checks of a bag as those of a run.
func asAudit(list []*evidence.Check) []*audit.Check {
	out := make([]*audit.Check, len(list))
	for i, c := range list {
		out[i] = &audit.Check{Code: c.Code, Proves: c.Proves, State: audit.State(c.State), Objects: c.Objects, Unit: c.Unit, Why: c.Why, Notes: c.Notes, More: c.More}
		for _, f := range c.Findings {
			out[i].Findings = append(out[i].Findings, audit.Finding{File: f.File, Message: f.Message})
		}
	}
	return out
}

func printSigned(out io.Writer, list []evidence.Signed) error {
	if len(list) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SIGNED\tBY\tKEY\tKNOWN HERE\tAT")
	for _, x := range list[:min(len(list), maxSigned)] {
		known, at := "no", "–"
		if x.Known {
			known = "yes"
		}
		if !x.At.IsZero() {
			at = unit.Moment(x.At)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", x.What, x.By, x.Key, known, at)
	}
	if n := len(list) - maxSigned; n > 0 {
		fmt.Fprintf(w, "and %d more, which --json has\n", n)
	}
	return w.Flush()
}

func printRebuilt(out io.Writer, r *evidence.Rebuilt, notMade string) {
	if notMade != "" {
		fmt.Fprintf(out, "\nThe exported files were not made again: %s.\n", notMade)
	}
	if r == nil {
		return
	}
	same, left := 0, 0
	for _, f := range r.Files {
		switch {
		case f.Same:
			same++
		case f.NotMade != "":
			left++
		}
	}
	fmt.Fprintf(out, "\nOf %s, %d are made again from the journals byte for byte the same, %d differ, %d were not made again.\n", terminal.Count(len(r.Files), "exported file"), same, len(r.Files)-same-left, left)
	for _, f := range r.Files {
		if text := cmp.Or(f.Differs, f.NotMade); !f.Same {
			fmt.Fprintf(out, "  %s: %s\n", f.File, text)
		}
	}
	for _, list := range [][]string{r.Problems, r.Notes} {
		for _, text := range list {
			fmt.Fprintf(out, "  %s\n", text)
		}
	}
}
