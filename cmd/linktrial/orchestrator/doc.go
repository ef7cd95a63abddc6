// Package orchestrator has the commands of the orchestrator's own machine: serve,
// backup and restore of its store, and the health check of containers.
package orchestrator

import (
	"github.com/spf13/cobra"

	"linktrial/cmd/linktrial/setting"
)

// Commands returns the commands of this package, those under their earlier names
// included.
func Commands(s *setting.Settings) []*cobra.Command {
	store := &cobra.Command{Use: "store", Short: "Earlier name of backup", Deprecated: "use 'linktrial backup' instead"}
	store.AddCommand(setting.Renamed("backup", "backup create", newBackupCreate(s)), setting.Renamed("restore", "backup restore", newBackupRestore(s)))
	return []*cobra.Command{newServe(s), newBackup(s), newHealth(s), store}
}
