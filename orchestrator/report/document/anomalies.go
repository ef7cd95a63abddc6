package document

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"linktrial/executor/journal"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/wording"
)

// mostBreaches is how many breaches of the driver contract a report names.
const mostBreaches = 100

func anomalies(v *report.Analysis) ([]Section, error) {
	if len(v.Tables) == 0 && len(v.Dataset.Notes) == 0 {
		return nil, nil
	}
	names := runNames(v)
	chapter := Section{ID: "anomalies", Title: "Anomalies", Level: 1}
	for _, n := range v.Dataset.Notes {
		chapter.Blocks = append(chapter.Blocks, paragraph(wording.Clean(n)))
	}
	troubles, quiet := troublesPart(v, names)
	if quiet && len(v.Tables) > 0 {
		chapter.Blocks = append(chapter.Blocks, paragraph("No trial was repeated, failed or excluded."))
	}
	out := []Section{chapter}
	for _, s := range []Section{troubles, unknownPart(v, names), readingsPart(v, names), apparatusPart(v, names), breachesPart(v, names)} {
		if len(s.Blocks) > 0 {
			out = append(out, s)
		}
	}
	return out, nil
}

// troublesPart is which trials were repeated, failed, were excluded or have not ended; quiet:
// none but the last.
func troublesPart(v *report.Analysis, names []string) (s Section, quiet bool) {
	var runs []ofRun
	quiet = true
	for i := range v.Tables {
		r := ofRun{run: i}
		for _, row := range append(slices.Clone(v.Tables[i].Rows), aloneTrials(&v.Dataset.Runs[i])) {
			trouble := row.Failed+row.Excluded+row.ExtraAttempts+len(row.Failures) > 0
			quiet = quiet && !trouble
			if !trouble && row.NotEnded == 0 {
				continue
			}
			cells := []string{wording.Clean(row.Label)}
			for _, n := range []int{row.Trials, row.Valid, row.Failed, row.Excluded, row.NotEnded, row.ExtraAttempts} {
				cells = append(cells, strconv.Itoa(n))
			}
			r.rows = append(r.rows, append(cells, strings.Join(row.FailureTexts(), "; ")))
		}
		if len(r.rows) > 0 {
			r.notes = []string{"Excluded: the trial tells nothing of its protocol, because of a fault of the apparatus, a rule of validity, a mark, or because people ended it. Repeats: attempts beyond the first of each trial."}
			runs = append(runs, r)
		}
	}
	columns := slices.Concat([]column{textColumn("Treatment")}, numberColumns("Trials", "Valid", "Failed", "Excluded", "Not ended", "Repeats"), []column{textColumn("Attempts without a valid value")})
	s = Section{ID: "anomalies-trials", Title: "Trials that were repeated, failed, excluded or did not end", Level: 2}
	s.Blocks = tablesOf(names, "Trials that did not go as planned", columns, runs)
	return s, quiet
}

// aloneTrials is what became of the trials of a run that have probes alone.
func aloneTrials(r *report.Run) report.Row {
	row := report.Row{Label: "Probes, alone"}
	count := map[report.Failure]int{}
	for i := range r.Trials {
		t := &r.Trials[i]
		if !r.ProbesAlone(t) || r.NotNeeded(t) {
			continue
		}
		row.Trials++
		row.ExtraAttempts += max(0, len(t.Attempts)-1)
		for k := range t.Attempts {
			if a := &t.Attempts[k]; a.Verdict != "" && a.Verdict != journal.Succeeded {
				count[report.Failure{Verdict: a.Verdict, Reason: a.Reason}]++
			}
		}
		verdict := t.Verdict
		if a := lastOf(t); a != nil {
			verdict = a.Verdict
		}
		switch verdict {
		case "":
			row.NotEnded++
		case journal.Succeeded:
			row.Valid++
		case journal.Invalid, journal.Aborted:
			row.Excluded++
		default:
			row.Failed++
		}
	}
	for f, n := range count {
		f.Attempts = n
		row.Failures = append(row.Failures, f)
	}
	slices.SortFunc(row.Failures, func(a, b report.Failure) int {
		return cmp.Or(b.Attempts-a.Attempts, cmp.Compare(a.Verdict, b.Verdict), cmp.Compare(a.Reason, b.Reason))
	})
	return row
}

// unknownPart is of which attempts it is not known whether rules of validity were broken.
func unknownPart(v *report.Analysis, names []string) Section {
	var runs []ofRun
	for i := range v.Dataset.Runs {
		run := &v.Dataset.Runs[i]
		count := map[[2]string]int{}
		for k := range run.Trials {
			t := &run.Trials[k]
			for m := range t.Attempts {
				for _, rule := range t.Attempts[m].Undecided {
					count[[2]string{wording.Clean(run.LabelOf(t.Treatment)), wording.Clean(rule)}]++
				}
			}
		}
		r := ofRun{run: i}
		for _, key := range slices.SortedFunc(maps.Keys(count), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
			r.rows = append(r.rows, []string{key[0], key[1], strconv.Itoa(count[key])})
		}
		if len(r.rows) > 0 {
			r.notes = []string{"These attempts count."}
			runs = append(runs, r)
		}
	}
	columns := slices.Concat([]column{textColumn("Treatment"), textColumn("Rule, and why it is not known")}, numberColumns("Attempts"))
	return Section{ID: "anomalies-unknown", Title: "Rules of validity that are not decided", Level: 2, Blocks: tablesOf(names, "Attempts of which it is not known whether a rule was broken", columns, runs)}
}

// apparatusPart is what is known of clocks, hosts, control packets and emulators, and a drift.
func apparatusPart(v *report.Analysis, names []string) Section {
	s := Section{ID: "anomalies-apparatus", Title: "Apparatus, load and drift", Level: 2}
	var all []string
	for i := range v.Tables {
		t := &v.Tables[i]
		notes := append([]string{t.HostNote, lateNote(&v.Dataset.Runs[i]), t.ControlNote, t.DriftNote}, cleaned(t.ProbeCaveats())...)
		for _, n := range notes {
			if n != "" {
				all = append(all, wording.Sentence(names[i]+": "+wording.Clean(n)))
			}
		}
	}
	shown, rest := bounded(all, "%d more such sentences are in results.json.")
	if len(shown) > 0 {
		s.Blocks = append(s.Blocks, list(shown...))
	}
	if rest != "" {
		s.Blocks = append(s.Blocks, paragraph(rest))
	}
	return s
}

// lateNote says by how much the emulated radio gave packets out late; empty: it did not, or
// that was not measured.
func lateNote(r *report.Run) string {
	attempts, longest := 0, time.Duration(0)
	for i := range r.Trials {
		for k := range r.Trials[i].Attempts {
			if radio := r.Trials[i].Attempts[k].Radio; radio != nil && radio.Late != nil && radio.Late.Missed > 0 {
				attempts, longest = attempts+1, max(longest, radio.Late.Longest)
			}
		}
	}
	if attempts == 0 {
		return ""
	}
	ms := float64(longest.Nanoseconds()) / 1e6
	return fmt.Sprintf("The emulated radio gave packets out late in %s, by %s ms at most.", wording.Plural(attempts, "attempt", "attempts"), wording.Delay(&ms))
}

// breachesPart is what drivers did wrong without deciding an attempt by it.
func breachesPart(v *report.Analysis, names []string) Section {
	s := Section{ID: "anomalies-breaches", Title: "Breaches of the driver contract", Level: 2}
	t := plainTable("Breaches of the driver contract that decided no attempt", slices.Concat([]column{textColumn("Run"), textColumn("Treatment"), textColumn("Node")}, numberColumns("Trial", "Attempt"), []column{textColumn("What the driver did")}))
	all := 0
	for i := range v.Dataset.Runs {
		run := &v.Dataset.Runs[i]
		name := names[i]
		for k := range run.Breaches {
			if all++; all > mostBreaches {
				continue
			}
			b := &run.Breaches[k]
			trial, attempt := "", ""
			if b.Trial != nil {
				trial, attempt = strconv.Itoa(*b.Trial), strconv.Itoa(b.Attempt)
			}
			t.Rows = append(t.Rows, Row{Group: k == 0, Cells: []string{name, wording.Clean(run.LabelOf(b.Treatment)), wording.Clean(b.Node), trial, attempt, wording.Clean(b.Message)}})
			name = ""
		}
	}
	if all == 0 {
		return s
	}
	if more := all - mostBreaches; more > 0 {
		t.Notes = []string{wording.Plural(more, "more breach is", "more breaches are") + " in breaches.csv."}
	}
	s.Blocks = []Block{tableBlock(t)}
	return s
}
