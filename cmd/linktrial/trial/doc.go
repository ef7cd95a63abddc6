// Package trial has a test director's commands: plans, runs and commands to them,
// results, and what the orchestrator knows of nodes, radios and topologies.
package trial

import (
	"github.com/spf13/cobra"

	"linktrial/cmd/linktrial/setting"
)

// Commands returns the commands of this package.
func Commands(s *setting.Settings) []*cobra.Command {
	return []*cobra.Command{newPlan(s), newRun(s), newResults(s), newReport(s), newEvidence(s), newImport(s), newAuditRun(s), newDay(s), newMeasure(s), newCompare(s), newNodes(s), newProfiles(s), newPreflight(s), newTelemetry(s), newTopology(s)}
}
