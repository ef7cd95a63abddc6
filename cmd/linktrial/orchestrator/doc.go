// Package orchestrator has the commands of the orchestrator's own machine: serve,
// backup and restore of its store, and the health check of containers.
package orchestrator

import (
	"github.com/spf13/cobra"

	"linktrial/cmd/linktrial/setting"
)

// Commands returns the commands of this package.
func Commands(s *setting.Settings) []*cobra.Command {
	return []*cobra.Command{newServe(s), newBackup(s), newHealth(s)}
}
