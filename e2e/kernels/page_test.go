//go:build kernels

package kernels

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"linktrial/e2e/kernels/machine"
)

var update = flag.Bool("update", false, "write the tables into docs/kernels.md")

var pageFile = filepath.Join("..", "..", "docs", "kernels.md")

// group is one table of the page.
type group struct {
	name, title string
	values      []string // what a cell lists
}

var groups = []group{
	{"drivers", "Drivers", []string{"checks passed", "1 MiB without a limit", "64 KiB over the bad link"}},
	{"westwood", "Westwood+ and Veno: the kernel's and those of eBPF", []string{"seconds, eBPF", "seconds, kernel", "difference of the means"}},
	{"netem", "netem and the emulated radio", []string{"netem", "emulated radio"}},
	{"probes", "Probes over netem", []string{"packets", "losses", "one-way delay"}},
	{"sockets", "Sockets of the kernel", nil},
	{"confinement", "Confinement", nil},
}

// The tables stand between these lines of the page.
const (
	beginMark = "<!-- begin: make test-kernels -->"
	endMark   = "<!-- end: make test-kernels -->"
)

// booted is the last run of a kernel in which everything passed.
type booted struct {
	Release         string
	Package         string
	Version         string
	Date            string
	ComputedSeconds float64
	Records         []machine.Record
}

const resultFile = "result.json"

// keep writes a run into its kernel's folder.
func keep(t *testing.T, dir string, b booted) {
	text, err := json.MarshalIndent(b, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, resultFile), text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// showPage writes the tables of every kernel's last run for make test-kernels to
// print, because go test hides what a test that passes prints, and into the page
// where it is asked to.
func showPage(t *testing.T) {
	var boots []booted
	for _, release := range releases {
		text, err := os.ReadFile(filepath.Join(outputFolder(t, release), resultFile))
		if err != nil {
			t.Fatal(err)
		}
		var b booted
		if err := json.Unmarshal(text, &b); err != nil {
			t.Fatal(err)
		}
		boots = append(boots, b)
	}
	text := tables(boots)
	if err := os.WriteFile(filepath.Join(outputFolder(t, "."), "tables.md"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := updatePage(pageFile, text); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPage writes the page anew from the last runs, without another one.
func TestPage(t *testing.T) {
	if !*update {
		t.Skip("writes docs/kernels.md, with -update alone")
	}
	showPage(t)
}

// tables is what the last runs found, for docs/kernels.md.
func tables(boots []booted) string {
	var b strings.Builder
	for _, k := range boots {
		fmt.Fprintf(&b, "- %s %s on %s: %d passed, %d not supported", k.Package, k.Version, k.Date,
			count(k.Records, machine.Passed), count(k.Records, machine.NotSupported))
		if k.ComputedSeconds > 0 { // unknown of runs that were made before it was measured
			fmt.Fprintf(&b, "; %.0f s of processor time", k.ComputedSeconds)
		}
		b.WriteString("\n")
	}
	for _, g := range groups {
		g.write(&b, boots)
	}
	return b.String()
}

func count(records []machine.Record, o machine.Outcome) (n int) {
	for _, r := range records {
		if r.Outcome == o {
			n++
		}
	}
	return n
}

// write writes the group's table: a row for each thing, a column for each kernel.
func (g group) write(b *strings.Builder, boots []booted) {
	var names []string
	rows := map[string][]string{}
	for i, k := range boots {
		for _, r := range k.Records {
			if r.Group != g.name {
				continue
			}
			if rows[r.Name] == nil {
				names = append(names, r.Name)
				rows[r.Name] = make([]string, len(boots))
			}
			rows[r.Name][i] = cell(r)
			if i > 0 && rows[r.Name][i] == rows[r.Name][0] {
				rows[r.Name][i] = "the same"
			}
		}
	}
	if len(names) == 0 {
		return
	}
	fmt.Fprintf(b, "\n### %s\n\n", g.title)
	if len(g.values) > 0 {
		fmt.Fprintf(b, "In each cell: %s.\n\n", strings.Join(g.values, "; "))
	}
	b.WriteString("|  |")
	for _, k := range boots {
		fmt.Fprintf(b, " %s |", k.Release)
	}
	fmt.Fprintf(b, "\n|%s\n", strings.Repeat("---|", 1+len(boots)))
	for _, n := range names {
		fmt.Fprintf(b, "| %s | %s |\n", n, strings.Join(rows[n], " | "))
	}
}

// cell is what one kernel has shown; the outcome is passed where it names none.
func cell(r machine.Record) string {
	empty := func(s string) bool { return s == "" }
	text := strings.Join(slices.DeleteFunc(append(slices.Clone(r.Values), r.Detail), empty), "; ")
	switch {
	case r.Outcome != machine.Passed:
		return string(r.Outcome) + ": " + text
	case text == "":
		return string(r.Outcome)
	}
	return text
}

// updatePage puts the tables between the marks of the page.
func updatePage(file, text string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, begins := strings.Cut(string(b), beginMark)
	_, after, ends := strings.Cut(rest, endMark)
	if !begins || !ends {
		return fmt.Errorf("%s: expected the lines %q and %q", file, beginMark, endMark)
	}
	return os.WriteFile(file, []byte(before+beginMark+"\n\n"+text+"\n"+endMark+after), 0o644)
}

// Every record has a table, or nobody would see it.
func TestGroups(t *testing.T) {
	for _, g := range groups {
		k := booted{Release: "6.1", Package: "linux-image-x", Records: []machine.Record{
			{Group: g.name, Name: "thing", Outcome: machine.NotSupported, Detail: "because"},
		}}
		if text := tables([]booted{k}); !strings.Contains(text, "|  | 6.1 |") || !strings.Contains(text, "| thing | not supported: because |") {
			t.Errorf("%s: %s", g.name, text)
		}
	}
}
