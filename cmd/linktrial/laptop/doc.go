// Package laptop has the commands for a laptop on which the package is installed: start,
// stop and status of the orchestrator, the agent and the pages.
package laptop

import (
	"github.com/spf13/cobra"

	"linktrial/cmd/linktrial/setting"
)

// Commands returns the commands of this package.
func Commands(s *setting.Settings) []*cobra.Command {
	return []*cobra.Command{newStart(s), newStop(s), newStatus(s)}
}
