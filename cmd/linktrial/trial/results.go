package trial

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/cmd/linktrial/setting"
	"linktrial/orchestrator/report/render"
)

// formatHelp is for --help; the orchestrator checks the format.
func formatHelp() string {
	names := map[render.Of][]string{}
	var only []render.Of
	for _, f := range render.Formats() {
		name := f.Name
		if f.Numbered == render.ByIteration {
			name += " (of an iteration: " + f.Name + ":3)"
		}
		if names[f.Of] == nil && f.Of != render.OfAll {
			only = append(only, f.Of)
		}
		names[f.Of] = append(names[f.Of], name)
	}
	text := strings.Join(names[render.OfAll], ", ")
	for _, of := range only {
		text += "; with " + string(of) + ": " + strings.Join(names[of], ", ")
	}
	return text + ". A figure of more than 12 panels has parts: svg:2 is the second, and --out writes all"
}

func newResults(s *setting.Settings) *cobra.Command {
	var out, against string
	var judge bool
	q := &linktrialv1.ResultsRequest{}
	cmd := &cobra.Command{
		Use:     "results [RUN|CAMPAIGN...]",
		GroupID: setting.GroupResults,
		Short:   "Print or export results (default: of the newest campaign)",
		Long: `Print or export the results of runs or campaigns, which the beginnings of their
identities name. Several are compared: side by side, with the same statistics, and
with the same scales in figures. Where no orchestrator runs, one is started on the
data folder for as long as the command lasts.`,
		Example: `  linktrial results
  linktrial results m4t7xk2p-1 --format markdown
  linktrial results m4t7xk2p --leave-out udt,sctp
  linktrial results m4t7xk2p h8w3rnbz            # two campaigns, side by side
  linktrial results m4t7xk2p h8w3rnbz --format differences    # and the second against the first
  linktrial results m4t7xk2p --out results       # all formats, as files
  linktrial results --against published
  linktrial results m4t7xk2p --check             # exit code 0, 1, 2: pass, fail, undecided
  linktrial results m4t7xk2p h8w3rnbz --check --worse-than 5%    # the second against the first`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if judge {
				return notChecked(check(ctx, s, cmd, args))
			}
			if cmd.Flags().Changed(worseFlag) {
				return notChecked(errors.New("--worse-than goes with --check"))
			}
			if against != "" {
				format, err := againstFormat(against, q.Format)
				if err != nil {
					return err
				}
				q.Format = format
			}
			// before the orchestrator may be started and asked
			if out == "" && term.IsTerminal(int(os.Stdout.Fd())) {
				if err := printable(q.Format); err != nil {
					return err
				}
			}
			if out != "" {
				if err := Writable(out); err != nil {
					return err
				}
			}
			o, err := openOrchestrator(ctx, s, cmd.Flags().Changed("orchestrator"))
			if err != nil {
				return err
			}
			defer o.close()
			if len(args) > 0 {
				q.RunId, q.MoreIds = args[0], args[1:]
			}
			if out == "" {
				return printResults(ctx, o.base, o.client, q, os.Stdout, os.Stderr)
			}
			var formats []string // all
			if cmd.Flags().Changed("format") || against != "" {
				formats = []string{q.Format}
			}
			files, err := Export(ctx, o.base, o.client, q, out, formats)
			if err != nil {
				return err
			}
			fmt.Println(strings.Join(files, "\n"))
			return nil
		},
	}
	// A wrong flag may be before --check.
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return notChecked(err) })
	f := cmd.Flags()
	f.BoolVar(&judge, "check", false, "print the outcomes of the plan's requirements alone, and exit with 0 (pass), 1 (fail), 2 (undecided) or 3 (any other error)")
	f.String(worseFlag, "", "with --check: by how much throughputs of the second campaign may be below those of the first, as 5%; exit with 0 where no treatment is worse, 1 where one is, 2 (undecided) or 3 (any other error)")
	f.StringVar(&q.Format, "format", "table", formatHelp())
	f.StringVar(&against, "against", "", "published: compare with the values of the paper, and list what deviates")
	f.StringVar(&q.Reference, "reference", "", "treatment that the others are compared with (default: the first of each run)")
	f.StringVar(&q.Axis, "axis", "", "of sweep and sweep-svg: the axis to draw over (default: as the published values have it)")
	f.StringVar(&q.Metric, "metric", "", "of sweep and sweep-svg: throughput, normalised, share-of-ideal, share-of-coded-bound, gain or timeouts (default: as the published values have it)")
	f.StringSliceVar(&q.LeaveOut, "leave-out", nil, "treatments that tables, figures and files do not have, separated by commas; statistics and conclusions stay those of all")
	f.StringVar(&out, "out", "", "write files into this folder instead of printing: all formats that apply to the results, or the one of --format")
	return cmd
}

// printable refuses a format that a terminal cannot show.
func printable(format string) error {
	f := render.Find(format)
	if f == nil || f.Text() { // the orchestrator refuses what there is not
		return nil
	}
	return fmt.Errorf("--format %s is not text: --out FOLDER writes it as %s", f.Name, f.File)
}

// againstFormat returns the format of the comparison with published values that
// belongs to a format of results.
func againstFormat(against, format string) (string, error) {
	if against != "published" {
		return "", fmt.Errorf("--against %q, expected published", against)
	}
	f := "against-" + format
	if format == "table" {
		f = "against"
	}
	if render.Find(f) == nil {
		return "", fmt.Errorf("--format %q, expected table, csv, json or markdown with --against", format)
	}
	return f, nil
}
