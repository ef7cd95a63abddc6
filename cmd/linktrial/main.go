// Command linktrial plans, runs, measures and reports field trials of
// transport protocols over tactical radios, and rehearses them on emulated ones.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/driver"
	"linktrial/cmd/linktrial/lab"
	"linktrial/cmd/linktrial/laptop"
	"linktrial/cmd/linktrial/node"
	"linktrial/cmd/linktrial/orchestrator"
	"linktrial/cmd/linktrial/people"
	"linktrial/cmd/linktrial/setting"
	"linktrial/cmd/linktrial/terminal"
	"linktrial/cmd/linktrial/trial"
	"linktrial/installation"
	"linktrial/internal/vitals"
)

// version is set by the build (-ldflags -X main.version=…).
var version = "development"

func main() {
	vitals.Serve()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal the default comes back: a second one ends at once.
	context.AfterFunc(ctx, stop)
	err := newRoot().ExecuteContext(ctx)
	stop()
	code, message := exitOf(err)
	if message != "" {
		fmt.Fprintln(os.Stderr, "linktrial:", terminal.Printable(message))
	}
	os.Exit(code)
}

// exitOf is the exit code of the program after an error, and what it says of it; empty:
// nothing.
func exitOf(err error) (code int, message string) {
	var quiet setting.ExitCode
	var failed setting.Failed
	switch {
	case err == nil:
		return 0, ""
	case errors.As(err, &quiet):
		return int(quiet), ""
	case errors.As(err, &failed):
		return failed.Code, err.Error()
	}
	return 1, err.Error()
}

func newRoot() *cobra.Command {
	s := &setting.Settings{Version: buildVersion()}
	root := &cobra.Command{
		Use:   "linktrial",
		Short: "Field trials of transport protocols over tactical radios",
		Long: `Linktrial plans, runs, measures and reports field trials of transport protocols
over tactical radios, and rehearses the same trials on emulated radios.

Start here:  linktrial rehearse plans/quickstart.yaml, or on a laptop with the package
sudo linktrial start`,
		Example: `  linktrial rehearse plans/quickstart.yaml    # a whole trial on emulated radios
  linktrial serve                             # the orchestrator, and its pages
  linktrial run plans/quickstart.yaml         # the same plan on connected nodes
  linktrial results                           # the newest results`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       s.Version,
		PersistentPreRun: func(*cobra.Command, []string) {
			client.Trusted = client.Trust{CAFile: s.CA, Data: s.Data, Packaged: installation.OrchestratorData}
		},
	}
	s.Register(root.PersistentFlags())
	root.AddGroup(setting.Groups()...)
	root.SetHelpCommandGroupID(setting.GroupService)
	root.SetCompletionCommandGroupID(setting.GroupService)
	for _, commands := range []func(*setting.Settings) []*cobra.Command{
		laptop.Commands, orchestrator.Commands, node.Commands, driver.Commands, lab.Commands, trial.Commands, people.Commands,
	} {
		root.AddCommand(commands(s)...)
	}
	root.SetUsageTemplate(usageTemplate(root))
	requireSubcommand(root)
	return root
}

func buildVersion() string {
	if version != "development" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, kv := range info.Settings {
			if kv.Key == "vcs.revision" && len(kv.Value) >= 12 {
				return version + "-" + kv.Value[:12]
			}
		}
	}
	return version
}
