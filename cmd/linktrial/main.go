// Command linktrial plans, runs, measures and reports field trials of
// transport protocols over tactical radios, and rehearses them on emulated ones.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"
)

// version is set by the build (-ldflags -X main.version=…).
var version = "development"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal the default comes back: a second one ends at once.
	context.AfterFunc(ctx, stop)
	err := newRoot().ExecuteContext(ctx)
	stop()
	if err == nil {
		return
	}
	var code exitCode
	if errors.As(err, &code) {
		os.Exit(int(code))
	}
	fmt.Fprintln(os.Stderr, "linktrial:", err)
	os.Exit(1)
}

// exitCode ends the program without a further message.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// settings are the flags that several subcommands share.
type settings struct {
	orchestrator string // URL
	drivers      string
	data         string
	ca           string // file with the authority of the orchestrator, for people's commands
	verbose      bool
}

func newRoot() *cobra.Command {
	s := &settings{}
	root := &cobra.Command{
		Use:   "linktrial",
		Short: "Field trials of transport protocols over tactical radios",
		Long: `Linktrial plans, runs, measures and reports field trials of transport protocols
over tactical radios, and rehearses the same trials on emulated radios.

Start here:  linktrial rehearse plans/quickstart.yaml`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       buildVersion(),
		PersistentPreRun: func(*cobra.Command, []string) {
			peopleTrust = trust{caFile: s.ca, data: s.data}
		},
	}
	f := root.PersistentFlags()
	f.StringVar(&s.orchestrator, "orchestrator", envOr("LINKTRIAL_ORCHESTRATOR", defaultOrchestrator), "URL of the orchestrator")
	f.StringVar(&s.drivers, "drivers", envOr("LINKTRIAL_DRIVERS", defaultDrivers()), "folder with a folder for each protocol driver")
	f.StringVar(&s.data, "data", envOr("LINKTRIAL_DATA", defaultData()), "folder for the private database and for agents' journals")
	f.StringVar(&s.ca, "ca", os.Getenv("LINKTRIAL_CA"), "certificate of the orchestrator's authority, in PEM (default: what 'linktrial trust' kept)")
	f.BoolVarP(&s.verbose, "verbose", "v", false, "log more")
	root.AddCommand(
		newServe(s), newAgent(s), newLab(s), newPlan(s), newRun(s), newRehearse(s),
		newResults(s), newProtocol(s), newNodes(s), newRuns(s), newProfiles(s), newBench(s), newBundle(s), newStore(s),
		newPause(s), newResume(s), newSkip(s), newRepeat(s), newMark(s), newUnmark(s), newContinue(s), newAbort(s), newOrders(s), newPreflight(s), newTelemetry(s), newTopology(s), newNode(s), newTrust(s), newSigning(s),
		newHealth(s), newLogin(s), newLogout(s), newUser(s), newToken(s), newAudit(s),
	)
	return root
}

const defaultOrchestrator = "http://127.0.0.1:7700"

func envOr(name, def string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return def
}

// defaultDrivers is the folder beside the program, or the one of an installed package.
func defaultDrivers() string {
	if exe, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(exe), "drivers")
		if st, err := os.Stat(beside); err == nil && st.IsDir() {
			return beside
		}
	}
	return "/usr/lib/linktrial/drivers"
}

func defaultData() string {
	if os.Geteuid() == 0 {
		return "/var/lib/linktrial"
	}
	if home, err := os.UserHomeDir(); err == nil {
		return filepath.Join(home, ".local", "share", "linktrial")
	}
	return "linktrial-data"
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

func (s *settings) logger() *slog.Logger {
	level := slog.LevelInfo
	if s.verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
}
