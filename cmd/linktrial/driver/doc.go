// Package driver has the commands for protocol drivers and their images, for the
// approval of their digests, and for the keys that sign run sheets.
package driver

import (
	"github.com/spf13/cobra"

	"linktrial/cmd/linktrial/setting"
)

// Commands returns the commands of this package.
func Commands(s *setting.Settings) []*cobra.Command {
	return []*cobra.Command{newProtocol(s), newSigning(s)}
}
