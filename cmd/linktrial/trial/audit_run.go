package trial

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"linktrial/cmd/linktrial/setting"
	"linktrial/cmd/linktrial/terminal"
	"linktrial/orchestrator/report/audit"
)

func newAuditRun(s *setting.Settings) *cobra.Command {
	var req AuditRequest
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "audit-run [RUN|CAMPAIGN]",
		GroupID: setting.GroupResults,
		Short:   "Hold a run's journals, store and exports against each other (default: the newest campaign)",
		Long: `Audit-run proves that nothing of a run was lost, repeated or mislabelled. It reads
what the orchestrator has of the run, the journals of its nodes where --journals names
folders with them, exported files, and the list of injected faults, and holds them
against each other (docs/audit.md). What was not given is not checked, and the table
says so.

The exit code is 0 without findings, and 1 with some. Where no orchestrator runs, one
is started on the data folder for as long as the command lasts.`,
		Example: `  linktrial audit-run
  linktrial audit-run m4t7xk2p-1 --journals .linktrial/agents/rehearsal
  linktrial audit-run m4t7xk2p --journals client --journals server --exports results/m4t7xk2p`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				req.ID = args[0]
			}
			o, err := openOrchestrator(cmd.Context(), s, cmd.Flags().Changed("orchestrator"))
			if err != nil {
				return err
			}
			defer o.close()
			var shown func()
			req.Progress, shown = auditProgress(os.Stderr)
			reports, err := Audit(cmd.Context(), o.base, req)
			shown()
			if err != nil {
				return err
			}
			if asJSON {
				enc := json.NewEncoder(cmd.OutOrStdout())
				enc.SetIndent("", "  ")
				if err := enc.Encode(reports); err != nil {
					return err
				}
			} else if err := PrintAudit(cmd.OutOrStdout(), reports); err != nil {
				return err
			}
			for _, r := range reports {
				if r.Findings() > 0 {
					return setting.ExitCode(1)
				}
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&req.Journals, "journals", nil, "folder with nodes' journals, such as an agent's state folder; can be given several times")
	f.StringVar(&req.Exports, "exports", "", "folder of exported results, to be checked as well")
	f.StringVar(&req.Faults, "faults", "", "the list of faults that were injected (default: faults.jsonl in the folder of --exports, if it is there)")
	f.BoolVar(&asJSON, "json", false, "print the reports as JSON")
	return cmd
}

// progressAfter is how long a command is silent.
const progressAfter = 2 * time.Second

// auditProgress shows what is being done on a terminal, in one line, once it has taken
// a while. The second function removes the line.
func auditProgress(out *os.File) (show func(string), done func()) {
	if !term.IsTerminal(int(out.Fd())) {
		return func(string) {}, func() {}
	}
	began, shown := time.Now(), false
	return func(text string) {
			if time.Since(began) < progressAfter {
				return
			}
			shown = true
			fmt.Fprintf(out, "\r\x1b[K%s", terminal.Printable(text))
		}, func() {
			if shown {
				fmt.Fprint(out, "\r\x1b[K")
			}
		}
}

// PrintAudit prints a table of checks for each run, and findings below it.
func PrintAudit(out io.Writer, reports []*audit.Report) error {
	out = terminal.Escaped(out) // findings quote journals, and files that were copied from nodes
	for i, r := range reports {
		if i > 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintf(out, "run %s\n", r.Run)
		if err := printChecks(out, r.Checks); err != nil {
			return err
		}
	}
	return nil
}

// printChecks prints a table of checks, and findings below it.
func printChecks(out io.Writer, checks []*audit.Check) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "CHECK\tRESULT\tLOOKED AT\tFINDINGS")
	for _, c := range checks {
		fmt.Fprintf(w, "%s\t%s\t%d %s\t%d\n", c.Code, c.State, c.Objects, c.Unit, len(c.Findings)+c.More)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, c := range checks {
		printCheck(out, c)
	}
	return nil
}

// printCheck prints what a check has to say beyond its row.
func printCheck(out io.Writer, c *audit.Check) {
	if len(c.Findings)+len(c.Notes)+len(c.Why) == 0 {
		return
	}
	fmt.Fprintf(out, "\n%s: %s\n", c.Code, c.Proves)
	line := func(text string) {
		fmt.Fprintln(out, "  "+strings.ReplaceAll(strings.TrimRight(terminal.Printable(text), "\n"), "\n", " "))
	}
	for _, f := range c.Findings {
		line("FINDING " + f.String())
	}
	if c.More > 0 {
		line(fmt.Sprintf("and %d findings more", c.More))
	}
	for _, why := range c.Why {
		line("not checked: " + why)
	}
	for _, n := range c.Notes {
		line(n)
	}
}
