package trial

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/cmd/linktrial/setting"
)

// judging is an orchestrator whose results are the same whatever is asked for.
type judging struct {
	linktrialv1connect.UnimplementedOperatorServiceHandler
	linktrialv1connect.UnimplementedResultServiceHandler
	runs        []*linktrialv1.RunSummary
	differences []*linktrialv1.CampaignDifference
	lacking     []*linktrialv1.LackingTreatment
	err         error
	ids         []string // that were asked for last
}

func (j *judging) ListRuns(context.Context, *connect.Request[linktrialv1.ListRunsRequest]) (*connect.Response[linktrialv1.ListRunsResponse], error) {
	return connect.NewResponse(&linktrialv1.ListRunsResponse{}), nil
}

func (j *judging) Summarize(_ context.Context, q *connect.Request[linktrialv1.SummarizeRequest]) (*connect.Response[linktrialv1.SummarizeResponse], error) {
	j.ids = q.Msg.Ids
	return connect.NewResponse(&linktrialv1.SummarizeResponse{Runs: j.runs, Differences: j.differences, DifferencesLacking: j.lacking}), j.err
}

// results runs the command against the orchestrator.
func (j *judging) results(t *testing.T, args ...string) (string, error) {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle(linktrialv1connect.NewOperatorServiceHandler(j))
	mux.Handle(linktrialv1connect.NewResultServiceHandler(j))
	return runAgainst(t, mux, newResults, args...)
}

// runAgainst runs a command against an orchestrator, and returns what it prints.
func runAgainst(t *testing.T, orchestrator http.Handler, command func(*setting.Settings) *cobra.Command, args ...string) (string, error) {
	t.Helper()
	srv := httptest.NewUnstartedServer(orchestrator)
	srv.Config.Protocols = new(http.Protocols)
	srv.Config.Protocols.SetUnencryptedHTTP2(true)
	srv.Start()
	defer srv.Close()
	cmd := command(&setting.Settings{Orchestrator: srv.URL, Data: filepath.Join(t.TempDir(), "none")})
	var out bytes.Buffer
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

// judgedRun is a run with requirements that have these outcomes.
func judgedRun(outcomes ...linktrialv1.RequiredOutcome) *linktrialv1.RunSummary {
	run := &linktrialv1.RunSummary{Run: &linktrialv1.Run{Id: "c-1", SizeBytes: 64 << 10}, Group: "files", RadioTitle: "MPU4", TopologyTitle: "VIP Lot", Settings: []*linktrialv1.AxisValue{{Axis: "loss", Label: "5 %"}}}
	for i, o := range outcomes {
		run.Requirements = append(run.Requirements, &linktrialv1.Requirement{Entry: int32(i + 1), Label: "Haul", Outcome: o, Text: "average 139 KB/s"})
	}
	return run
}

const (
	passes    = linktrialv1.RequiredOutcome_REQUIRED_OUTCOME_PASS
	fails     = linktrialv1.RequiredOutcome_REQUIRED_OUTCOME_FAIL
	undecided = linktrialv1.RequiredOutcome_REQUIRED_OUTCOME_UNDECIDED
)

// All requirements of all runs pass, or the exit code says what is not so.
func TestCheck(t *testing.T) {
	const heading = "c-1 · files · loss 5 % · MPU4 at VIP Lot · 64 KiB\n"
	line := func(word string) string { return "  " + word + "  Haul: average 139 KB/s\n" }
	for _, c := range []struct {
		runs []*linktrialv1.RunSummary
		want error
		out  string
	}{
		{[]*linktrialv1.RunSummary{judgedRun(passes, passes)}, nil, heading + line("pass     ") + line("pass     ") + "pass: of 2, 2 pass, 0 fail, 0 undecided\n"},
		{[]*linktrialv1.RunSummary{judgedRun(passes), judgedRun(), judgedRun(undecided)}, setting.ExitCode(2), heading + line("pass     ") + heading + line("undecided") + "undecided: of 2, 1 pass, 0 fail, 1 undecided\n"},
		{[]*linktrialv1.RunSummary{judgedRun(fails, undecided), judgedRun(passes)}, setting.ExitCode(1), heading + line("fail     ") + line("undecided") + heading + line("pass     ") + "fail: of 3, 1 pass, 1 fail, 1 undecided\n"},
	} {
		j := &judging{runs: c.runs}
		out, err := j.results(t, "c", "d", "--check")
		require.Equal(t, c.want, err)
		require.Equal(t, c.out, out)
		require.Equal(t, []string{"c", "d"}, j.ids)
	}
}

// Whatever keeps requirements from being judged has an exit code that no outcome has.
func TestNotChecked(t *testing.T) {
	one := []*linktrialv1.RunSummary{judgedRun(passes)}
	for _, c := range []struct {
		j    judging
		args []string
		want string
	}{
		{judging{runs: []*linktrialv1.RunSummary{judgedRun()}}, []string{"--check"}, "these results have no requirements: their plan states none (require, docs/plans.md)"},
		{judging{}, []string{"--check"}, "these results have no requirements"},
		{judging{err: connect.NewError(connect.CodeNotFound, errors.New("no run or campaign x"))}, []string{"x", "--check"}, "no run or campaign x"},
		{judging{runs: []*linktrialv1.RunSummary{judgedRun(linktrialv1.RequiredOutcome(9))}}, []string{"--check"}, "an outcome that this version does not know"},
		{judging{runs: one}, []string{"--check", "--format", "csv"}, "--check prints outcomes alone, by all trials: it does not go with --format"},
		{judging{runs: one}, []string{"--check", "--leave-out", "haul"}, "it does not go with --leave-out"},
		{judging{runs: one}, []string{"--chek"}, "unknown flag: --chek"},
	} {
		_, err := c.j.results(t, c.args...)
		var failed setting.Failed
		require.ErrorAs(t, err, &failed, c.want)
		require.Equal(t, 3, failed.Code)
		require.ErrorContains(t, err, c.want)
	}
}
