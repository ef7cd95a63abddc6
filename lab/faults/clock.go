package faults

import (
	"errors"
	"fmt"
	"os"

	"linktrial/internal/radio"
	"linktrial/internal/wallclock"
	"linktrial/lab/netns"
)

// Clocks gives every node of a lab a clock of its own, before its agent is started. The
// nodes share the kernel's time of day, and time namespaces have no offset of it: each
// agent adds its own, from a file whose path begins as given ([wallclock.Path]).
func Clocks(prefix string, nodes []netns.NodeState) (map[radio.Role]*wallclock.Offset, error) {
	out := map[radio.Role]*wallclock.Offset{}
	for _, n := range nodes {
		c, err := wallclock.NewOffset(wallclock.Path(prefix, string(n.Role)))
		if err != nil {
			return nil, err
		}
		out[n.Role] = c
	}
	return out, nil
}

// RemoveClocks takes these clocks away, once the agents have ended.
func RemoveClocks(prefix string, clocks map[radio.Role]*wallclock.Offset) (err error) {
	for role, c := range clocks {
		err = errors.Join(err, c.Close(), os.Remove(wallclock.Path(prefix, string(role))))
	}
	return err
}

// clockStep sets a node's clock, and sets it right again. No outcome and no value of an
// attempt depends on it: those are measured with clocks that nobody steps.
func (l *Lab) clockStep(i Injection) (Injected, error) {
	c := l.Clock(i.Node)
	if c == nil {
		return Injected{}, fmt.Errorf("the clock of %s cannot be stepped", i.Node)
	}
	return l.during(i, "the clock stepped by "+signed(i.Step), func() (func() error, error) {
		c.Step(i.Step)
		return func() error { c.Step(-i.Step); return nil }, nil
	})
}
