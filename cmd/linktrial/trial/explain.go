package trial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"linktrial/cmd/linktrial/setting"
	"linktrial/cmd/linktrial/terminal"
	"linktrial/executor/runsheet"
	"linktrial/internal/inputfile"
	"linktrial/internal/unit"
	"linktrial/internal/yamldoc"
	"linktrial/orchestrator/plan"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/sheet"
)

func newPlanExplain(s *setting.Settings) *cobra.Command {
	var asked powerFlags
	cmd := &cobra.Command{
		Use:   "explain PLAN",
		Short: "Show the run sheets: every trial in order, how long it will take, and what the plan can find",
		Long: `Explain compiles a plan, without an orchestrator, and prints its run sheets: every
trial in the order in which it will run. TRIAL is the number that 'linktrial run exclude',
the pages and the exports use, too: the first trial of a run has number 0. ABOUT is an
estimate, and STARTS AFTER the sum of the estimates before.

After the sheets, explain prints the smallest difference between a treatment and the
reference of its run that is found with 80 % and with 95 % chance. It depends on how much the
ratio of the two varies from iteration to iteration: the spread, which is the standard
deviation of the logarithm of the ratio. --spread-of takes it from results of an earlier
campaign, or of a rehearsal in virtual time: of runs of the same radio, topology, size and
settings that have the same two treatments. Where there are none, --spread is assumed.

Of a run with a rule to stop by, explain prints when the rule looks and how many iterations a
comparison takes by it on average. Its sheet and the estimates are of all iterations, and so
at most what it takes.

` + namedPlan,
		Example: `  linktrial plan explain plans/quickstart.yaml
  linktrial plan explain plans/breedy-2015.yaml --spread-of results.json --effect 10%`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := asked.options()
			if err != nil {
				return err
			}
			sheets, by, err := compileAnywhere(cmd.Context(), s, args[0])
			if ps := (yamldoc.Problems)(nil); errors.As(err, &ps) {
				return fmt.Errorf("the plan is refused%s:\n%w", by, err)
			}
			if err != nil {
				return err
			}
			var all time.Duration
			for _, sh := range sheets {
				d, err := explain(sh)
				if err != nil {
					return err
				}
				all += d
			}
			fmt.Printf("In all %s, %s %s.\n", terminal.Count(len(sheets), "run"), about(sheets...), terminal.ForPeople(all.Seconds()))
			return explainPower(cmd.Context(), sheets, o)
		},
	}
	cmd.Flags().StringVar(&asked.spread, "spread", "", "assumed spread of the ratio of two treatments from iteration to iteration, such as 20% (the default)")
	cmd.Flags().StringVar(&asked.of, "spread-of", "", "results.json of an earlier campaign or rehearsal, to take spreads from")
	cmd.Flags().StringVar(&asked.effect, "effect", "", "difference for which to print the needed iterations, such as 10%")
	return cmd
}

// powerFlags are what a person asks of a plan's power.
type powerFlags struct{ spread, of, effect string }

func (f *powerFlags) options() (o report.PowerOptions, err error) {
	if o.Assumed, err = share("--spread", f.spread); err != nil {
		return o, err
	}
	if o.Effect, err = share("--effect", f.effect); err != nil || f.of == "" {
		return o, err
	}
	b, err := inputfile.Read(f.of, report.MaxImport)
	if err != nil {
		return o, fmt.Errorf("--spread-of: %w", err)
	}
	if o.Earlier, err = report.ReadSpreads(filepath.Base(f.of), b); err != nil {
		return o, fmt.Errorf("--spread-of %w", err)
	}
	return o, nil
}

// share reads a flag with a percentage; 0 where it is not set.
func share(flag, text string) (float64, error) {
	if text == "" {
		return 0, nil
	}
	number, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	x, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if x /= 100; err != nil || !percent || !(x >= report.LeastShare && x <= report.MostShare) {
		return 0, fmt.Errorf("%s %q: expected %g%% to %g%%, such as 20%%", flag, text, 100*report.LeastShare, 100*report.MostShare)
	}
	return x, nil
}

// explainPower prints what the comparisons of the runs can find.
func explainPower(ctx context.Context, sheets []*runsheet.Sheet, o report.PowerOptions) error {
	lines, err := report.Power(ctx.Err, sheets, o)
	if err != nil {
		return err
	}
	if len(lines) == 0 {
		fmt.Println("\nNo run compares treatments.")
		return nil
	}
	fmt.Println("\nWhat the comparisons can find:")
	for _, l := range lines {
		fmt.Printf("%s: %s\n", report.RunNumbers(l.Runs, len(sheets)), terminal.Printable(l.Text))
	}
	fmt.Println(report.PowerNote)
	return nil
}

func optionText(options map[string]any) string {
	var opts []string
	for k, v := range options {
		opts = append(opts, fmt.Sprintf("%s=%v", k, v))
	}
	return strings.Join(slices.Sorted(slices.Values(opts)), " ")
}

func explain(sh *runsheet.Sheet) (time.Duration, error) {
	encoded, err := sh.Encode()
	if err != nil {
		return 0, err
	}
	fmt.Printf("Run %d of plan %s: radio %s, topology %s, %s, %s order, seed %d\n", sh.Cell.Index+1, sh.Plan,
		sh.Cell.Radio, sh.Cell.Topology, unit.FormatPayload(sh.Cell.SizeBytes), sh.Order, sh.Seed)
	fmt.Printf("run sheet %s\n", runsheet.Hash(encoded))
	for _, t := range sh.Treatments {
		if t.Missing != "" {
			fmt.Printf("missing: %s: %s\n", terminal.Printable(t.Label), terminal.Printable(t.Missing))
			continue
		}
		mark := ""
		if t.DSCP != 0 {
			mark = " DSCP " + plan.CodePoint(t.DSCP)
		}
		fmt.Printf("treatment %s (%s): protocol %s %s on port %d %s%s\n", t.Name, t.Label, t.Protocol, t.DriverVersion, t.Port, optionText(t.Options), mark)
		for _, v := range t.Via {
			fmt.Printf("  passes the %s: protocol %s %s on port %d %s\n", v.At, v.Protocol, v.DriverVersion, v.Port, optionText(v.Options))
		}
	}
	for _, rule := range sh.Valid.Describe() {
		fmt.Printf("rule of validity %s\n", rule)
	}
	for _, line := range sh.Required() {
		fmt.Printf("required of %s\n", terminal.Printable(line))
	}
	if sh.Stop != nil {
		fmt.Printf("rule to stop by: it looks %s\n", report.StopLooks(sh.Stop))
	}
	fmt.Println()
	estimates := sheet.Estimate(sh)
	var total time.Duration
	err = terminal.Columns("TRIAL\tITERATION\tTREATMENT\tFLOW\tSIZE\tABOUT\tSTARTS AFTER", func(w io.Writer) {
		for i, t := range sh.Trials {
			for _, f := range t.Flows {
				fmt.Fprintf(w, "%d\t%d\t%s\t%s → %s\t%s\t%s\t%s\n", t.Index, t.Iteration, t.Treatment, f.From, f.To,
					unit.FormatPayload(f.SizeBytes), terminal.ForPeople(estimates[i].Seconds()), total.Round(time.Second))
			}
			for _, f := range t.Probes {
				fmt.Fprintf(w, "%d\t%d\t%s\t%s → %s\t%s\t%s\t%s\n", t.Index, t.Iteration, t.Treatment, f.From, f.To,
					"probe "+f.Treatment, terminal.ForPeople(estimates[i].Seconds()), total.Round(time.Second))
			}
			total += estimates[i]
		}
	})
	fmt.Printf("\nIt takes %s %s.\n\n", about(sh), terminal.ForPeople(total.Seconds()))
	return total, err
}

// about is how exact the estimate of all trials of the sheets is: a rule to stop by may leave some
// out.
func about(sheets ...*runsheet.Sheet) string {
	if slices.ContainsFunc(sheets, func(sh *runsheet.Sheet) bool { return sh.Stop != nil }) {
		return "at most about"
	}
	return "about"
}
