package trial

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/setting"
	"linktrial/cmd/linktrial/terminal"
	"linktrial/executor/runsheet"
	"linktrial/internal/inputfile"
	"linktrial/internal/unit"
	"linktrial/internal/yamldoc"
	"linktrial/lab/uml"
	"linktrial/orchestrator/plan"
	"linktrial/orchestrator/sheet"
)

func newPlan(s *setting.Settings) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "plan",
		GroupID: setting.GroupTrial,
		Short:   "Write, check and explain plans; save them at the orchestrator, and schedule their start",
	}
	cmd.AddCommand(newPlanNew(s), newPlanCheck(s), newPlanExplain(s), newSchema("plan", "plans", "linktrial plan check", plan.Language), newPlanList(s), newPlanShow(s), newPlanSave(s), newPlanDelete(s),
		newPlanSchedule(s), newPlanSchedules(s), newPlanUnschedule(s), newPlanPauseSchedule(s), newPlanResumeSchedule(s))
	return cmd
}

// ReadPlan reads the text of a plan from a file, or from standard input where the
// file is "-", and returns it with the name that messages use.
func ReadPlan(file string) (text []byte, name string, err error) {
	if file == "-" {
		text, err = inputfile.ReadStream(os.Stdin, shownFile(file), yamldoc.MaxText)
		return text, shownFile(file), err
	}
	text, err = inputfile.Read(file, yamldoc.MaxText)
	return text, file, err
}

// shownFile is what messages call a file of [ReadPlan].
func shownFile(file string) string {
	if file == "-" {
		return "standard input"
	}
	return file
}

// CompileText compiles a plan that was read, without an orchestrator, until ctx ends.
// Problems of the plan are [yamldoc.Problems]; those of what it names, such as a
// radio profile, are not.
func CompileText(ctx context.Context, s *setting.Settings, name string, text []byte) (*plan.Plan, []*runsheet.Sheet, error) {
	cat, err := s.LoadCatalog()
	var broken yamldoc.Problems
	if errors.As(err, &broken) {
		return nil, nil, fmt.Errorf("%s of radio profiles, topologies or drivers; the plan was not read:\n%s", terminal.Count(len(broken), "problem"), broken.Error())
	}
	if err != nil {
		return nil, nil, err
	}
	p, err := plan.Parse(ctx.Err, name, text, cat)
	if err != nil {
		return nil, nil, err
	}
	sheets, err := sheet.Compile(ctx.Err, p)
	return p, sheets, err
}

// askTime bounds the question to an orchestrator that may be out of reach.
const askTime = 5 * time.Second

// compileAnywhere reads a plan and compiles it, which may name radios and topologies of the
// orchestrator's catalogue: it is asked where the plan names some that are not here. by says
// for people whose answer it is, or why only this program was asked.
func compileAnywhere(ctx context.Context, s *setting.Settings, file string) (sheets []*runsheet.Sheet, by string, err error) {
	text, name, err := readNamed(ctx, s, file, os.Stderr)
	if err != nil {
		return nil, "", err
	}
	_, sheets, err = CompileText(ctx, s, name, text)
	var here yamldoc.Problems
	if !errors.As(err, &here) || !slices.ContainsFunc(here, func(p yamldoc.Problem) bool { return ofCatalog(p.Message) }) {
		return sheets, "", err
	}
	limited, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	res, failed := client.New(s.Orchestrator).ExplainPlan(limited, connect.NewRequest(&linktrialv1.ExplainPlanRequest{File: name, Text: text}))
	if failed != nil {
		return nil, fmt.Sprintf(". Radios and topologies were looked for in this program%s, and not at the orchestrator: %v", folders(s.Catalog), client.Error(s.Orchestrator, failed)), err
	}
	by = fmt.Sprintf(" by the catalogue of the orchestrator %s", s.Orchestrator)
	if there := res.Msg.Problems; len(there) > 0 {
		problems := make(yamldoc.Problems, len(there))
		for i, p := range there {
			problems[i] = yamldoc.Problem{File: p.File, Line: int(p.Line), Column: int(p.Column), Path: p.Path, Message: p.Message}
		}
		return nil, by + addTo, problems
	}
	for _, summary := range res.Msg.Sheets {
		sh, err := runsheet.Decode(summary.Sheet)
		if err != nil {
			return nil, "", fmt.Errorf("sheet of the orchestrator: %w", err)
		}
		sheets = append(sheets, sh)
	}
	return sheets, by, nil
}

// addTo says how radios and topologies come to an orchestrator.
const addTo = ". Name a folder with radio profiles and topologies of your own to it (linktrial serve --catalog); 'linktrial profiles save' and 'linktrial topology save' add one of them"

// ofCatalog reports whether a plan's problem is that a radio or a topology is not known.
func ofCatalog(message string) bool {
	return strings.Contains(message, `unknown radio "`) || strings.Contains(message, `unknown topology "`)
}

func folders(catalog []string) string {
	if len(catalog) == 0 {
		return " (no folder was named with --catalog)"
	}
	return " and in " + strings.Join(catalog, ", ")
}

func newPlanCheck(s *setting.Settings) *cobra.Command {
	return &cobra.Command{
		Use:   "check PLAN",
		Short: "Check a plan and list all its errors, with line and column",
		Long: `Check reads a plan and lists its errors. Where it names a radio or a topology that neither
this program nor a folder of --catalog has, the orchestrator is asked, whose catalogue may
have it.

` + namedPlan,
		Example: `  linktrial plan check plans/quickstart.yaml
  linktrial plan check evening
  linktrial plan check - < plans/quickstart.yaml`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			sheets, by, err := compileAnywhere(cmd.Context(), s, args[0])
			var ps yamldoc.Problems
			if errors.As(err, &ps) {
				fmt.Fprintln(os.Stderr, ps.Error())
				return fmt.Errorf("%s is refused: %s%s", ps[0].File, terminal.Count(ps.Number(), "problem"), by)
			}
			if err != nil {
				return err
			}
			trials, total, flows := 0, time.Duration(0), 0
			for _, sh := range sheets {
				trials += len(sh.Trials)
				flows = max(flows, sh.MostAtOnce())
				for _, d := range sheet.Estimate(sh) {
					total += d
				}
			}
			fmt.Printf("%s is in order%s: %s, %s, %s %s\n", shownFile(args[0]), by, terminal.Count(len(sheets), "run"), terminal.Count(trials, "trial"), about(sheets...), terminal.ForPeople(total.Seconds()))
			if flows > 1 {
				sayVirtual(flows)
			}
			return nil
		},
	}
}

// sayVirtual says what trials of several flows at once take in virtual time.
func sayVirtual(flows int) {
	memory, err := uml.MemoryFor(flows)
	if err != nil {
		fmt.Printf("Not in virtual time: %v\n", err)
		return
	}
	fmt.Printf("Trials have up to %d flows and probes at once (virtual time has room for %d); a guest of the virtual-time lab has %s of memory for them.\n", flows, uml.MostFlows, unit.FormatBytes(memory))
}
