//go:build kernels

package kernels

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"linktrial/e2e/kernels/machine"
)

var update = flag.Bool("update", false, "write the tables into docs/kernels.md")

var pageFile = filepath.Join("..", "..", "docs", "kernels.md")

// group is one table of the page.
type group struct {
	name, title string
	head        []string // of the columns after name, kernel and outcome
}

var groups = []group{
	{"drivers", "Drivers", []string{"checks passed", "1 MiB without a limit", "64 KiB over the bad link"}},
}

// The tables stand between these lines of the page.
const (
	beginMark = "<!-- begin: make test-kernels -->"
	endMark   = "<!-- end: make test-kernels -->"
)

// tables is what a run found, for docs/kernels.md.
func tables(boots []booted, at time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured on %s:\n\n", at.UTC().Format(time.DateOnly))
	for _, k := range boots {
		fmt.Fprintf(&b, "- %s %s: %d passed, %d not supported\n", k.kernel.Package, k.kernel.Version,
			count(k.result.Records, machine.Passed), count(k.result.Records, machine.NotSupported))
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

// write writes the group's table; each row of the first kernel is followed by that
// of the next one.
func (g group) write(b *strings.Builder, boots []booted) {
	var names []string
	rows := map[string][]string{}
	for _, k := range boots {
		for _, r := range k.result.Records {
			if r.Group != g.name {
				continue
			}
			if rows[r.Name] == nil {
				names = append(names, r.Name)
			}
			cells := append([]string{r.Name, k.release, string(r.Outcome)}, r.Figures...)
			for len(cells) < 3+len(g.head) {
				cells = append(cells, "")
			}
			if r.Detail != "" {
				cells[len(cells)-1] += r.Detail
			}
			rows[r.Name] = append(rows[r.Name], "| "+strings.Join(cells, " | ")+" |\n")
		}
	}
	if len(names) == 0 {
		return
	}
	head := append([]string{"", "kernel", "outcome"}, g.head...)
	fmt.Fprintf(b, "\n### %s\n\n| %s |\n|%s\n", g.title, strings.Join(head, " | "), strings.Repeat("---|", len(head)))
	for _, n := range names {
		b.WriteString(strings.Join(rows[n], ""))
	}
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
		k := booted{"6.1", &machine.Kernel{Package: "linux-image-x", Version: "1"}, &machine.Result{Records: []machine.Record{
			{Group: g.name, Name: "thing", Outcome: machine.NotSupported, Detail: "because"},
		}}}
		if text := tables([]booted{k}, time.Unix(0, 0)); !strings.Contains(text, "| thing | 6.1 | not supported |") || !strings.Contains(text, "because |") {
			t.Errorf("%s: %s", g.name, text)
		}
	}
}
