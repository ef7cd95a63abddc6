// Package node has the commands that make a machine a node and run its agent:
// agent, enrolment, joining by a code, and install bundles for machines without internet.
package node

import (
	"github.com/spf13/cobra"

	"linktrial/cmd/linktrial/setting"
)

// Commands returns the commands of this package.
func Commands(s *setting.Settings) []*cobra.Command {
	return []*cobra.Command{newAgent(s), newNode(s), newJoin(s), newBundle(s)}
}
