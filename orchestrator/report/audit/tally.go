package audit

import (
	"cmp"
	"slices"
	"strings"
)

// tally counts things by their names.
type tally map[string]int

func newTally() tally { return tally{} }

func (t tally) add(name string) { t[name]++ }

// note adds a line for each name to a check, the most frequent first.
func (t tally) note(c *Check, of string) {
	names := make([]string, 0, len(t))
	for name := range t {
		names = append(names, name)
	}
	slices.SortFunc(names, func(x, y string) int { return cmp.Or(t[y]-t[x], strings.Compare(x, y)) })
	for _, name := range names {
		c.note("%s: %d %s", of, t[name], name)
	}
}
