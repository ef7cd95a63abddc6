// Package trial has a test director's commands: plans, runs under way and orders
// to them, results, and what the orchestrator knows of nodes, radios and
// topologies.
package trial

import (
	"github.com/spf13/cobra"

	"linktrial/cmd/linktrial/setting"
)

// Commands are the subcommands of this package.
func Commands(s *setting.Settings) []*cobra.Command {
	return []*cobra.Command{newPlan(s), newRun(s), newResults(s), newNodes(s), newRuns(s), newProfiles(s), newPause(s), newResume(s), newSkip(s), newRepeat(s), newMark(s), newUnmark(s), newContinue(s), newAbort(s), newOrders(s), newPreflight(s), newTelemetry(s), newTopology(s)}
}
