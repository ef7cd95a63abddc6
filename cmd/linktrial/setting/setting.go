// Package setting holds what all commands share: the flags for orchestrator, folders
// and log level, and the groups of the help. In: flags and the environment. Out: a
// logger, the catalog, the configuration of an orchestrator on the data folder.
package setting

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"linktrial/installation"
	"linktrial/internal/driverfolder"
	"linktrial/orchestrator/catalog"
	"linktrial/orchestrator/security/access"
	"linktrial/orchestrator/server"
	"linktrial/plans"
)

// ExitCode ends the program without a further message.
type ExitCode int

// Error implements error.
func (c ExitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// Failed is an error that ends the program with an exit code of its own.
type Failed struct {
	Code int
	Err  error
}

// Error implements error.
func (f Failed) Error() string { return f.Err.Error() }

// Unwrap implements errors.Unwrap.
func (f Failed) Unwrap() error { return f.Err }

// Settings are the flags that all commands share.
type Settings struct {
	Orchestrator string   // URL
	Drivers      string   // folders with a folder for each protocol driver, as PATH has it (internal/driverfolder)
	Data         string   // folder
	Catalog      []string // further folders with radio profiles and topologies
	CA           string   // file with the authority of the orchestrator, for people's commands
	Verbose      bool

	Version string // of this program
	Program string // what other processes of Linktrial are started from; "": this program
}

// Executable returns the program that other processes of Linktrial are started from.
func (s *Settings) Executable() (string, error) {
	if s.Program != "" {
		return s.Program, nil
	}
	return os.Executable()
}

// Register adds the flags. The environment gives their defaults.
func (s *Settings) Register(f *pflag.FlagSet) {
	f.StringVar(&s.Orchestrator, "orchestrator", envOr("LINKTRIAL_ORCHESTRATOR", defaultOrchestrator(installation.Own())), "URL of the orchestrator (or LINKTRIAL_ORCHESTRATOR)")
	f.Var(newDrivers(&s.Drivers, os.Getenv("LINKTRIAL_DRIVERS"), s.ownDrivers()), "drivers", "folder with a folder for each protocol driver of your own, searched before those of the program; can be given several times (or LINKTRIAL_DRIVERS)")
	f.StringVar(&s.Data, "data", envOr("LINKTRIAL_DATA", defaultData()), "folder of the private database and of agents' journals (or LINKTRIAL_DATA)")
	f.StringSliceVar(&s.Catalog, "catalog", filepath.SplitList(os.Getenv("LINKTRIAL_CATALOG")), "folder with radio-profiles/ and topologies/ of your own, in addition to those of the program; can be given several times (or LINKTRIAL_CATALOG)")
	f.StringVar(&s.CA, "ca", os.Getenv("LINKTRIAL_CA"), "certificate of the orchestrator's authority, in PEM (or LINKTRIAL_CA; default: the one of 'linktrial trust')")
	f.BoolVarP(&s.Verbose, "verbose", "v", false, "log more")
}

// DefaultOrchestrator is where 'linktrial serve' listens.
const DefaultOrchestrator = "http://127.0.0.1:7700"

// defaultOrchestrator returns the URL of the orchestrator that a package has installed on
// this machine where that runs and this user may read its data, else [DefaultOrchestrator].
func defaultOrchestrator(m *installation.Machine) string {
	f, err := os.Open(filepath.Join(m.OrchestratorData(), access.LocalTokenFile))
	if err != nil {
		return DefaultOrchestrator
	}
	f.Close()
	if base, err := m.LocalURL(); err == nil {
		return base
	}
	return DefaultOrchestrator
}

func envOr(name, def string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return def
}

// drivers is the value of --drivers: every folder that is given is searched before
// those of the environment, and these before the program's own.
type drivers struct {
	list  *string
	given string
	rest  string // of the list
	own   string // the program's
}

func newDrivers(list *string, environment, own string) *drivers {
	d := &drivers{list: list, rest: environment, own: own}
	// A program without drivers of its own, as in a container, has those named to it.
	if isDir(own) || environment == "" {
		d.rest = driverfolder.Join(environment, own)
	}
	*list = d.rest
	return d
}

func (d *drivers) Set(folder string) error {
	if len(driverfolder.Split(folder)) == 0 {
		return errors.New("expected a folder")
	}
	d.given = driverfolder.Join(d.given, folder)
	rest := d.rest
	if !isDir(d.own) && rest == d.own {
		rest = "" // there are none beside the named ones
	}
	*d.list = driverfolder.Join(d.given, rest)
	return nil
}

func (d *drivers) String() string {
	if d.list == nil {
		return ""
	}
	return *d.list
}

func (d *drivers) Type() string { return "folder" }

func isDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

// ownDrivers returns the folder beside the program, that of the package which the program is
// of, wherever it was unpacked, or that of an installed program.
func (s *Settings) ownDrivers() string {
	if exe, err := s.Executable(); err == nil {
		dir := filepath.Dir(exe)
		for _, own := range []string{filepath.Join(dir, "drivers"), filepath.Join(dir, "..", "lib", "linktrial", "drivers")} {
			if isDir(own) {
				return own
			}
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

// Require makes flags of a command required.
func Require(cmd *cobra.Command, flags ...string) {
	for _, f := range flags {
		if err := cmd.MarkFlagRequired(f); err != nil {
			panic(err) // there is no such flag
		}
	}
}

// Logger writes to standard error.
func (s *Settings) Logger() *slog.Logger {
	level := slog.LevelInfo
	if s.Verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
}

// Folders returns the flags that give another process of this program the same drivers
// and catalog.
func (s *Settings) Folders() []string {
	args := []string{"--drivers", s.Drivers}
	for _, dir := range s.Catalog {
		args = append(args, "--catalog", dir)
	}
	return args
}

// LoadCatalog reads the drivers, radio profiles and topologies of the folders.
func (s *Settings) LoadCatalog() (*catalog.Catalog, error) {
	return catalog.Load(catalog.Config{DriversDir: s.Drivers, ExtraDirs: s.Catalog, SavedDir: filepath.Join(s.Data, "topologies"),
		SavedProfilesDir: filepath.Join(s.Data, "radio-profiles")})
}

// ServerConfig returns the configuration of an orchestrator on the data folder.
func (s *Settings) ServerConfig(listen, database string, cat *catalog.Catalog, log *slog.Logger) server.Config {
	return server.Config{Listen: listen, DatabaseURL: database, DataDir: s.Data, Catalog: cat, Plans: plans.Files, Version: s.Version, Logger: log}
}

// DriverReads are the files and folders that confined drivers read beyond the system's and
// their own where the command line names none: LINKTRIAL_DRIVER_READS, a list.
func DriverReads() []string { return filepath.SplitList(os.Getenv("LINKTRIAL_DRIVER_READS")) }
