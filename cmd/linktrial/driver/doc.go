// Package driver has the commands for protocol drivers and their images, for the
// approval of their digests, for the keys that sign run sheets, and for what of both
// waits for a second person.
package driver

import (
	"github.com/spf13/cobra"

	"linktrial/cmd/linktrial/setting"
)

// Commands returns the commands of this package.
func Commands(s *setting.Settings) []*cobra.Command {
	return []*cobra.Command{newProtocol(s), newSigning(s), newRequest(s)}
}
