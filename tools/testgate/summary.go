package main

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

const (
	// mostUnsteady is how many unsteady tests a green gate has at most.
	mostUnsteady = 5
	// mostListed is how many tests the list of unsteady ones has at most.
	mostListed   = 15
	slowestShown = 8
	// failuresShown keeps the end of the log short enough to be read whole.
	failuresShown = 20
)

// verdict is what the gate makes of the results.
type verdict struct {
	failed, unsteady, listed []failure
	unexpected               []string // skips
}

// judge divides the failures: a test on the list of unsteady ones is told, and does not
// count.
func (r *results) judge(skips, unsteady map[string]bool) verdict {
	var v verdict
	for _, f := range r.merged() {
		switch {
		case f.test != "" && unsteady[f.pkg+"/"+f.top()] || unsteady[f.pkg]:
			v.listed = append(v.listed, f)
		case f.unsteady():
			v.unsteady = append(v.unsteady, f)
		default:
			v.failed = append(v.failed, f)
		}
	}
	for name := range r.skipped {
		if !skips[name] {
			v.unexpected = append(v.unexpected, name)
		}
	}
	slices.Sort(v.unexpected)
	return v
}

func (v verdict) red() bool {
	return len(v.failed) > 0 || len(v.unsteady) > mostUnsteady || len(v.unexpected) > 0
}

// merged are the failures with a failed subtest and its test as one.
func (r *results) merged() []failure {
	var out []failure
	for i, f := range r.failures {
		deeper := slices.ContainsFunc(r.failures, func(o failure) bool {
			return o.pkg == f.pkg && f.test != "" && strings.HasPrefix(o.test, f.test+"/")
		})
		crashed := f.test == "" && i > 0 && final.MatchString(f.output)
		if !deeper || crashed || final.MatchString(f.output) {
			out = append(out, f)
		}
	}
	return out
}

// place is a file and line that a test prints before what was wrong.
var place = regexp.MustCompile(`[\w./-]+\.(?:go|ts):\d+`)

// firstLine is the first line of a failure that says something, with its place.
func firstLine(output string) string {
	for _, line := range strings.Split(output, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "===") || strings.HasPrefix(line, "---") || strings.HasPrefix(line, "Error Trace:") {
			continue
		}
		if place.FindString(line) == strings.TrimSuffix(line, ":") {
			continue // testify: what was wrong stands below
		}
		if at := place.FindString(output); at != "" && !strings.Contains(line, at) {
			line = at + ": " + line
		}
		return shorten(line, 200)
	}
	return "no word"
}

func shorten(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

// print prints the end of the log, which says it all: the skipped, where the time went,
// the failed and the unsteady, and the counts as the last line.
func (r *results) print(v verdict, out io.Writer) {
	names := make([]string, 0, len(r.skipped))
	for name := range r.skipped {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		mark := "expected"
		if slices.Contains(v.unexpected, name) {
			mark = "NOT EXPECTED (tools/testgate/expected-skips.txt)"
		}
		fmt.Fprintf(out, "skip  %s: %s: %s\n", name, mark, r.skipped[name])
	}
	printSlowest(out, "package", r.packages)
	printSlowest(out, "test", r.tests)
	for _, p := range r.parts {
		fmt.Fprintf(out, "part  %6.1f min  %s\n", p.seconds/60, p.name)
	}
	printFailures(out, "FAILED", v.failed)
	printFailures(out, "unsteady (passed alone)", v.unsteady)
	printFailures(out, "on the list of unsteady tests (tools/testgate/unsteady.txt)", v.listed)
	if len(v.unsteady) > mostUnsteady {
		fmt.Fprintf(out, "%d tests were unsteady, and a green gate has %d at most\n", len(v.unsteady), mostUnsteady)
	}
	if r.passed == 0 {
		fmt.Fprintln(out, "no test was executed")
	}
	fmt.Fprintf(out, "%d passed, %d failed, %d skipped\n", r.passed, len(v.failed), len(r.skipped))
}

// printRan prints a table of the tests that ran, with their time and what came of each,
// the longest first.
func (r *results) printRan(out io.Writer) {
	type row struct {
		timing
		outcome string
	}
	var rows []row
	for _, t := range r.tests {
		rows = append(rows, row{t, "passed"})
	}
	for _, f := range r.failures {
		if !strings.Contains(f.test, "/") {
			rows = append(rows, row{timing{f.name(), f.seconds}, "FAILED"})
		}
	}
	for name := range r.skipped {
		rows = append(rows, row{timing{name: name}, "skipped"})
	}
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(b.seconds, a.seconds), cmp.Compare(a.name, b.name))
	})
	for _, t := range rows {
		fmt.Fprintf(out, "ran   %-60s %7.1f s  %s\n", t.name, t.seconds, t.outcome)
	}
}

func printFailures(out io.Writer, what string, failures []failure) {
	if len(failures) == 0 {
		return
	}
	fmt.Fprintf(out, "%s: %d\n", what, len(failures))
	for i, f := range failures {
		if i == failuresShown {
			fmt.Fprintf(out, "  and %d more\n", len(failures)-i)
			break
		}
		load := ""
		if f.load != "" {
			load = ", " + f.load
		}
		fmt.Fprintf(out, "  %s (%.1f s%s)%s\n    %s\n", shorten(f.name(), 200), f.seconds, load, tried(f.again), firstLine(f.output))
	}
}

func tried(again []attempt) string {
	var b strings.Builder
	for _, a := range again {
		word := "failed"
		if a.passed {
			word = "passed"
		}
		fmt.Fprintf(&b, "; alone: %s in %.1f s, %s", word, a.seconds, a.load)
	}
	return b.String()
}

// printSlowest prints the slowest of what was timed, so that a gate that grows slow shows where.
func printSlowest(out io.Writer, what string, timed []timing) {
	sums := map[string]float64{}
	for _, t := range timed {
		sums[t.name] += t.seconds // some packages have several processes
	}
	var all []timing
	for name, s := range sums {
		all = append(all, timing{name, s})
	}
	slices.SortFunc(all, func(a, b timing) int {
		return cmp.Or(cmp.Compare(b.seconds, a.seconds), cmp.Compare(a.name, b.name))
	})
	for i, t := range all {
		if i == slowestShown || t.seconds < 1 {
			break
		}
		fmt.Fprintf(out, "slow  %-8s %6.1f s  %s\n", what, t.seconds, t.name)
	}
}
