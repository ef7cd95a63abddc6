// Package lab has the commands for nodes and emulated radios on this machine: labs
// in real and in virtual time, rehearsals in them, and the lab of the web pages.
package lab

import (
	"github.com/spf13/cobra"

	"linktrial/cmd/linktrial/setting"
)

// Commands returns the commands of this package.
func Commands(s *setting.Settings) []*cobra.Command {
	return []*cobra.Command{newLab(s), newRehearse(s)}
}
