// Package trial has a test director's commands: plans, runs and commands to them,
// results, and what the orchestrator knows of nodes, radios and topologies.
package trial

import (
	"github.com/spf13/cobra"

	"linktrial/cmd/linktrial/setting"
)

// Commands returns the commands of this package, those under their earlier names
// included.
func Commands(s *setting.Settings) []*cobra.Command {
	all := []*cobra.Command{newPlan(s), newRun(s), newResults(s), newImport(s), newAuditRun(s), newNodes(s), newProfiles(s), newPreflight(s), newTelemetry(s), newTopology(s)}
	for _, sub := range runSubcommands(s) {
		earlier := sub.Name()
		switch earlier {
		case "start": // 'linktrial run FILE' stays
			continue
		case "list":
			earlier = "runs"
		case "commands":
			earlier = "orders"
		}
		all = append(all, setting.Renamed(earlier, "run "+sub.Name(), sub))
	}
	return all
}
