package trial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/setting"
	"linktrial/cmd/linktrial/terminal"
	"linktrial/internal/unit"
)

// Exit codes of --check. All other errors of the command have codeNotChecked, so that none of
// them looks like a requirement that results fail.
const (
	codeFail       = 1
	codeUndecided  = 2
	codeNotChecked = 3
)

// notChecked gives an error of --check its exit code.
func notChecked(err error) error {
	var code setting.ExitCode
	if err == nil || errors.As(err, &code) {
		return err
	}
	return setting.Failed{Code: codeNotChecked, Err: err}
}

// alone refuses flags that say what is exported: --check exports nothing, and judges by all
// treatments.
func alone(cmd *cobra.Command) error {
	for _, name := range []string{"format", "out", "against", "reference", "axis", "metric", "leave-out"} {
		if cmd.Flags().Changed(name) {
			return fmt.Errorf("--check prints outcomes alone, by all trials: it does not go with --%s", name)
		}
	}
	return nil
}

// check prints the outcome of every requirement of runs and campaigns, or, with
// --worse-than, of one campaign held against another. The error is an exit code where not all of them pass.
func check(ctx context.Context, s *setting.Settings, cmd *cobra.Command, ids []string) error {
	if err := alone(cmd); err != nil {
		return err
	}
	write := func(there *linktrialv1.SummarizeResponse) (linktrialv1.RequiredOutcome, error) {
		return writeOutcomes(cmd.OutOrStdout(), there.Runs)
	}
	if cmd.Flags().Changed(worseFlag) {
		percent, err := parseWorseThan(cmd.Flag(worseFlag).Value.String(), ids)
		if err != nil {
			return err
		}
		write = func(there *linktrialv1.SummarizeResponse) (linktrialv1.RequiredOutcome, error) {
			return writeWorse(cmd.OutOrStdout(), there, percent)
		}
	}
	o, err := openOrchestrator(ctx, s, cmd.Flags().Changed("orchestrator"))
	if err != nil {
		return err
	}
	defer o.close()
	there, err := summarized(ctx, o.base, ids)
	if err != nil {
		return err
	}
	outcome, err := write(there)
	switch {
	case err != nil:
		return err
	case outcome == linktrialv1.RequiredOutcome_REQUIRED_OUTCOME_FAIL:
		return setting.ExitCode(codeFail)
	case outcome == linktrialv1.RequiredOutcome_REQUIRED_OUTCOME_UNDECIDED:
		return setting.ExitCode(codeUndecided)
	}
	return nil
}

// summarized are the values of runs and campaigns; of no identity those of the newest campaign.
func summarized(ctx context.Context, base string, ids []string) (*linktrialv1.SummarizeResponse, error) {
	c := linktrialv1connect.NewResultServiceClient(client.HTTP(), base, client.Options())
	var res *connect.Response[linktrialv1.SummarizeResponse]
	err := client.Repeat(ctx, func() (err error) {
		res, err = c.Summarize(ctx, connect.NewRequest(&linktrialv1.SummarizeRequest{Ids: ids}))
		return err
	})
	if err != nil {
		return nil, client.Error(base, err)
	}
	return res.Msg, nil
}

var outcomeWords = map[linktrialv1.RequiredOutcome]string{
	linktrialv1.RequiredOutcome_REQUIRED_OUTCOME_PASS:      "pass",
	linktrialv1.RequiredOutcome_REQUIRED_OUTCOME_FAIL:      "fail",
	linktrialv1.RequiredOutcome_REQUIRED_OUTCOME_UNDECIDED: "undecided",
}

// writeOutcomes writes a line for every requirement of the runs, and returns the outcome of
// all.
func writeOutcomes(w io.Writer, runs []*linktrialv1.RunSummary) (all linktrialv1.RequiredOutcome, err error) {
	count := map[linktrialv1.RequiredOutcome]int{}
	sum := 0
	for _, run := range runs {
		if len(run.Requirements) == 0 {
			continue
		}
		if _, err := fmt.Fprintln(w, terminal.Printable(runHeading(run))); err != nil {
			return 0, err
		}
		for _, r := range run.Requirements {
			word, known := outcomeWords[r.Outcome]
			if !known {
				return 0, fmt.Errorf("the orchestrator says an outcome that this version does not know (%s): use the version of the orchestrator", r.Outcome)
			}
			count[r.Outcome]++
			sum++
			if _, err := fmt.Fprintf(w, "  %-9s  %s\n", word, terminal.Printable(r.Label+": "+r.Text)); err != nil {
				return 0, err
			}
		}
	}
	if sum == 0 {
		return 0, errors.New("these results have no requirements: their plan states none (require, docs/plans.md)")
	}
	return writeCounted(w, count)
}

// writeCounted writes what all outcomes together come to, and returns it: one that fails makes
// it fail, else one that is undecided makes it undecided.
func writeCounted(w io.Writer, count map[linktrialv1.RequiredOutcome]int) (all linktrialv1.RequiredOutcome, err error) {
	const pass, fail, undecided = linktrialv1.RequiredOutcome_REQUIRED_OUTCOME_PASS, linktrialv1.RequiredOutcome_REQUIRED_OUTCOME_FAIL, linktrialv1.RequiredOutcome_REQUIRED_OUTCOME_UNDECIDED
	all = pass
	for _, o := range []linktrialv1.RequiredOutcome{undecided, fail} {
		if count[o] > 0 {
			all = o
		}
	}
	_, err = fmt.Fprintf(w, "%s: of %d, %d pass, %d fail, %d undecided\n", outcomeWords[all], count[pass]+count[fail]+count[undecided], count[pass], count[fail], count[undecided])
	return all, err
}

// runHeading names a run in one line.
func runHeading(run *linktrialv1.RunSummary) string {
	parts := []string{run.Run.GetId(), run.Group}
	for _, s := range run.Settings {
		parts = append(parts, s.Axis+" "+s.Label)
	}
	parts = append(parts, run.RadioTitle+" at "+run.TopologyTitle, unit.FormatPayload(run.Run.GetSizeBytes()))
	out := parts[:0]
	for _, p := range parts {
		if p != "" {
			out = append(out, p)
		}
	}
	return strings.Join(out, " · ")
}
