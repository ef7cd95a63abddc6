// Package node has the commands that make a machine a node and run its agent, and
// those that bring it what it needs: enrolment and bundles.
package node

import (
	"github.com/spf13/cobra"

	"linktrial/cmd/linktrial/setting"
)

// Commands are the subcommands of this package.
func Commands(s *setting.Settings) []*cobra.Command {
	return []*cobra.Command{newAgent(s), newNode(s), newBundle(s)}
}
