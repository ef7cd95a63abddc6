// Package bench measures the product itself, with real packets through real
// namespaces: emulated radio, drivers, executor, store, pages, agents, TLS. The
// figures in the documentation come from it.
package bench

import (
	"github.com/spf13/cobra"

	"linktrial/cmd/linktrial/setting"
)

// Commands returns the commands of this package.
func Commands(s *setting.Settings) []*cobra.Command {
	return []*cobra.Command{newBench(s)}
}
