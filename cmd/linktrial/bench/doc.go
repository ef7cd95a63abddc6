// Package bench measures the product itself, with real packets through real
// namespaces: emulated radio, drivers, executor, store, pages, agents, TLS. What it
// prints are the figures of the documentation.
package bench

import (
	"github.com/spf13/cobra"

	"linktrial/cmd/linktrial/setting"
)

// Commands are the subcommands of this package.
func Commands(s *setting.Settings) []*cobra.Command {
	return []*cobra.Command{newBench(s)}
}
