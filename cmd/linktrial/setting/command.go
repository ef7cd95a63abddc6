package setting

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// The groups of commands in 'linktrial --help'.
const (
	GroupLaptop    = "laptop"
	GroupTrial     = "trial"
	GroupResults   = "results"
	GroupNodes     = "nodes"
	GroupLab       = "lab"
	GroupProtocols = "protocols"
	GroupPeople    = "people"
	GroupService   = "service"
)

// Groups returns all groups with their titles, in the order of the help.
func Groups() []*cobra.Group {
	return []*cobra.Group{
		{ID: GroupLaptop, Title: "This laptop:"},
		{ID: GroupTrial, Title: "Trial:"},
		{ID: GroupResults, Title: "Results:"},
		{ID: GroupNodes, Title: "Nodes and radios:"},
		{ID: GroupLab, Title: "Lab:"},
		{ID: GroupProtocols, Title: "Protocols:"},
		{ID: GroupPeople, Title: "People and trust:"},
		{ID: GroupService, Title: "Service:"},
	}
}

// UnknownCommand returns the error for a name that is no subcommand of c. It lists
// the subcommands of c.
func UnknownCommand(c *cobra.Command, name string) error {
	var names []string
	for _, sub := range c.Commands() {
		if !sub.Hidden {
			names = append(names, sub.Name())
		}
	}
	similar := ""
	c.SuggestionsMinimumDistance = 2
	if s := c.SuggestionsFor(name); len(s) > 0 {
		similar = fmt.Sprintf(" Did you mean %s?", strings.Join(s, " or "))
	}
	return fmt.Errorf("unknown command %q for %q.%s Its commands are: %s", name, c.CommandPath(), similar, strings.Join(names, ", "))
}
