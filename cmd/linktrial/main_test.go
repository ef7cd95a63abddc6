package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// What a command's help says begins with what the command does, and names every
// command once.
func TestHelp(t *testing.T) {
	seen := 0
	var look func(c *cobra.Command)
	look = func(c *cobra.Command) {
		seen++
		if c.Short == "" {
			t.Errorf("%s says nothing of itself", c.CommandPath())
		}
		if strings.HasPrefix(c.Long, "A prefix") || strings.HasPrefix(c.Long, "What was measured") {
			t.Errorf("the help of %s begins with a detail:\n%s", c.CommandPath(), c.Long)
		}
		names := map[string]bool{}
		for _, s := range c.Commands() {
			if names[s.Name()] {
				t.Errorf("%s has %s twice", c.CommandPath(), s.Name())
			}
			names[s.Name()] = true
			look(s)
		}
	}
	look(newRoot())
	if seen < 60 {
		t.Errorf("only %d commands", seen)
	}
}
