// Package driver has the commands about what is run and why nodes trust it: the
// drivers and images of protocols, the approval of their digests, and the keys
// that sign run sheets.
package driver

import (
	"github.com/spf13/cobra"

	"linktrial/cmd/linktrial/setting"
)

// Commands are the subcommands of this package.
func Commands(s *setting.Settings) []*cobra.Command {
	return []*cobra.Command{newProtocol(s), newSigning(s)}
}
