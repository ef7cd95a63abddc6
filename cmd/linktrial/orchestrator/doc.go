// Package orchestrator has the commands of the orchestrator's own machine: serve,
// backup and restore of its store, and the question whether it is well.
package orchestrator

import (
	"github.com/spf13/cobra"

	"linktrial/cmd/linktrial/setting"
)

// Commands are the subcommands of this package.
func Commands(s *setting.Settings) []*cobra.Command {
	return []*cobra.Command{newServe(s), newStore(s), newHealth(s)}
}
