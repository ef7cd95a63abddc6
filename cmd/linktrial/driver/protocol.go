package driver

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"linktrial/agents/runner"
	"linktrial/cmd/linktrial/setting"
	"linktrial/cmd/linktrial/terminal"
	"linktrial/internal/driverfolder"
	"linktrial/internal/inputfile"
	"linktrial/internal/yamldoc"
	"linktrial/protocols/contract"
	"linktrial/protocols/protocoltest"
)

func newProtocol(s *setting.Settings) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "protocol",
		GroupID: setting.GroupProtocols,
		Short:   "Write, list, check and approve protocol drivers",
	}
	cmd.AddCommand(newProtocolNew(), newProtocolList(s), newProtocolCheck(s), newProtocolImages(s), newProtocolApprove(s), newProtocolUnapprove(s), newProtocolApprovals(s))
	return cmd
}

func newProtocolList(s *setting.Settings) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the drivers on this machine, and why one does not run here",
		Example: `  linktrial protocol list`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			states, err := runner.List(cmd.Context(), s.Drivers)
			if err != nil {
				return err
			}
			if len(states) == 0 {
				return fmt.Errorf("no drivers in %s: build them with 'make drivers', or add a folder with --drivers", driverfolder.Shown(s.Drivers))
			}
			if err := printDrivers(states); err != nil {
				return err
			}
			if err := printOptions(states); err != nil {
				return err
			}
			return printRemarks(states)
		},
	}
}

// printDrivers prints which drivers there are, and whether they run here.
func printDrivers(states []runner.State) error {
	return terminal.Columns("PROTOCOL\tVERSION\tROLES\tCAPABILITIES\tRUNS HERE\tIMPLEMENTATION\tFOLDER", func(w io.Writer) {
		for _, st := range states {
			runs := "yes"
			if !st.Runs() {
				runs = "no: " + st.Driver.Unsupported
			}
			var roles []string
			capabilities := ""
			if st.Manifest != nil {
				capabilities = cmp.Or(strings.Join(st.Manifest.Capabilities, ","), "none")
				for _, r := range st.Manifest.AllRoles() {
					roles = append(roles, string(r))
				}
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", st.Driver.Name, st.Driver.Version, strings.Join(roles, ","), capabilities, runs, st.Driver.Implementation, st.Dir)
		}
	})
}

// printOptions prints the options of each driver, with the values among which some choose.
func printOptions(states []runner.State) error {
	fmt.Println()
	return terminal.Columns("PROTOCOL\tOPTIONS", func(w io.Writer) {
		for _, st := range states {
			if st.Manifest == nil || len(st.Manifest.Options) == 0 {
				continue
			}
			var options []string
			for _, o := range st.Manifest.Options {
				text := o.Name
				if c := st.Choices[o.Name]; len(c) > 0 {
					text += "=" + strings.Join(c, "|")
				}
				options = append(options, text)
			}
			fmt.Fprintf(w, "%s\t%s\n", st.Driver.Name, strings.Join(options, " "))
		}
	})
}

// printRemarks prints what drivers say of single values of their options.
func printRemarks(states []runner.State) error {
	if !slices.ContainsFunc(states, func(st runner.State) bool { return len(st.Remarks()) > 0 }) {
		return nil
	}
	fmt.Println()
	return terminal.Columns("PROTOCOL\tVALUE\tHERE", func(w io.Writer) {
		for _, st := range states {
			remarks := st.Remarks()
			for _, value := range slices.Sorted(maps.Keys(remarks)) {
				fmt.Fprintf(w, "%s\t%s\t%s\n", st.Driver.Name, value, remarks[value])
			}
		}
	})
}

func newProtocolCheck(s *setting.Settings) *cobra.Command {
	var quick bool
	var engine string
	var only, reads []string
	cmd := &cobra.Command{
		Use:   "check NAME|PATH|IMAGE",
		Short: "Run the conformance suite against a driver",
		Long: `Check runs the conformance suite of the driver contract (docs/driver-contract.md)
against a driver: one of the folder of drivers, any folder with a driver.yaml, or a
container image. Drivers in folders are confined as an agent confines them; who
started them looks like one.`,
		Example: `  linktrial protocol check tcp
  linktrial protocol check protocols/udt --quick
  linktrial protocol check linktrial/tcp:latest`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			target, done, err := checkTarget(cmd.Context(), s, args[0], engine)
			if err != nil {
				return err
			}
			defer done()
			target.Reads = reads
			m := target.Manifest
			fmt.Printf("%s %s: %s\n", m.Name, m.Version, m.Summary)
			total := len(protocoltest.Selected(m, only))
			n, began := 0, time.Now()
			rep, err := protocoltest.Run(cmd.Context(), target, protocoltest.Options{
				Quick: quick, Only: only,
				Progress: func(c protocoltest.Check) {
					n++
					mark := map[protocoltest.Outcome]string{protocoltest.Passed: "ok  ", protocoltest.Failed: "FAIL", protocoltest.Skipped: "skip"}[c.Outcome]
					fmt.Printf("%2d/%d %s %-28s %6.1f s  %s\n", n, total, mark, c.Name, c.Elapsed.Seconds(), terminal.Printable(c.Detail))
					if c.Outcome == protocoltest.Failed {
						fmt.Printf("          expected: %s (driver contract, %s)\n", c.About, strings.Join(c.Holds, ", "))
					}
				},
			})
			if err != nil {
				return err
			}
			if rep.Unsupported != "" {
				return fmt.Errorf("%s does not run on this node: %s", m.Name, rep.Unsupported)
			}
			if !rep.Passed() {
				return fmt.Errorf("%s does not conform to the driver contract (docs/driver-contract.md); the failed checks are above", m.Name)
			}
			fmt.Printf("%s conforms to the driver contract (%s, %s)\n", m.Name, rep.Network, terminal.ForPeople(time.Since(began).Seconds()))
			return nil
		},
	}
	cmd.Flags().BoolVar(&quick, "quick", false, "smaller transfers and a shorter cut of the link")
	cmd.Flags().StringArrayVar(&reads, "driver-reads", setting.DriverReads(), "file or folder that the driver reads and executes, beyond the system's and its own, as an agent's; can be given several times (or LINKTRIAL_DRIVER_READS)")
	cmd.Flags().StringVar(&engine, "engine", "", "address of the container engine, for an image (default: DOCKER_HOST, else its usual socket)")
	cmd.Flags().StringSliceVar(&only, "only", nil, "only these checks, and manifest and probe, which the others need: "+strings.Join(protocoltest.Names(), ", "))
	return cmd
}

// Find returns the folder and the manifest of a driver. The argument is a path, or a
// name in the folder of drivers.
func Find(s *setting.Settings, arg string) (string, *contract.Manifest, error) {
	dir, _ := driverfolder.Find(s.Drivers, arg)
	if strings.ContainsRune(arg, os.PathSeparator) || arg == "." {
		dir = arg
	}
	file := filepath.Join(dir, driverfolder.Manifest)
	if dir == "" {
		file = filepath.Join(driverfolder.Split(s.Drivers)[0], arg, driverfolder.Manifest) // which is not there
	}
	b, err := inputfile.Read(file, yamldoc.MaxText)
	if errors.Is(err, fs.ErrNotExist) {
		names, err := driverfolder.Names(s.Drivers)
		if err != nil {
			return "", nil, err
		}
		return "", nil, fmt.Errorf("no driver %q; in %s there are: %s; or give the path of a folder with a driver.yaml", arg, driverfolder.Shown(s.Drivers), strings.Join(names, ", "))
	}
	if err != nil {
		return "", nil, err
	}
	m, err := contract.ParseManifest(file, b)
	return dir, m, err
}
