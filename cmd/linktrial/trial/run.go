package trial

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/setting"
	"linktrial/cmd/linktrial/terminal"
	"linktrial/internal/backoff"
)

// newRun is the parent of what acts on runs. 'linktrial run FILE' is short for
// 'linktrial run start FILE'.
func newRun(s *setting.Settings) *cobra.Command {
	cmd := newRunStart(s)
	start := cmd.RunE
	cmd.Use, cmd.GroupID = "run [FILE]", setting.GroupTrial
	cmd.Short = "Start runs, watch them, and give commands to them"
	cmd.Long = `Run starts the runs of a plan and watches them, as 'linktrial run start' does. Its
subcommands list runs and give commands to them.`
	cmd.Example = `  linktrial run plans/quickstart.yaml
  linktrial run list
  linktrial run pause m4t7xk2p-1`
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 && !isFile(args[0]) {
			return setting.UnknownCommand(cmd, args[0])
		}
		return cobra.MaximumNArgs(1)(cmd, args)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return start(cmd, args)
	}
	cmd.AddCommand(newRunStart(s), newRunList(s), newRunPause(s), newRunResume(s), newRunContinue(s), newRunSkip(s), newRunRepeat(s),
		newRunExclude(s), newRunInclude(s), newRunAbort(s), newRunCommands(s))
	return cmd
}

// isFile reports whether an argument of 'linktrial run' names a file, perhaps one that
// does not exist, and not a subcommand.
func isFile(arg string) bool {
	_, err := os.Stat(arg)
	return !errors.Is(err, fs.ErrNotExist) || strings.ContainsAny(arg, "./")
}

func newRunStart(s *setting.Settings) *cobra.Command {
	var name string
	var detach, confirm, without bool
	var nodes int
	cmd := &cobra.Command{
		Use:   "start PLAN",
		Short: "Start the runs of a plan on the connected nodes, and watch them",
		Long: `Start hands a plan to the orchestrator, which runs it on the connected nodes, shows
every trial as it ends, and prints the results. Interrupting it ends only the view:
the runs continue. A treatment that the nodes cannot run is left out; the exit code is
then 1, unless the plan gives a reason for it with missing.

` + namedPlan,
		Example: `  linktrial run start plans/quickstart.yaml
  linktrial run start quickstart                        # the plan of that name at the orchestrator
  linktrial run start plans/quickstart.yaml --nodes 3 --name evening
  linktrial run start plans/quickstart.yaml --detach    # prints the campaign's identity`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, file, err := readNamed(cmd.Context(), s, args[0], os.Stderr)
			if err != nil {
				return err
			}
			ctx, c := cmd.Context(), client.New(s.Orchestrator)
			if err := awaitNodes(ctx, s.Orchestrator, c, nodes); err != nil {
				return err
			}
			req := startRequest(file, text, name, confirm)
			if !without {
				req.Preflight = askedPreflight()
			}
			return startAndFollow(ctx, s.Orchestrator, c, req, "linktrial preflight --plan "+terminal.Printable(req.File), detach)
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "name of the campaign (default: the plan's)")
	cmd.Flags().BoolVar(&confirm, "confirm-moves", false, "wait for 'linktrial run continue' before the first run, and before each run whose topology differs from that of the run before (default: only the latter, and only on real radios)")
	cmd.Flags().BoolVar(&without, "without-preflight", false, "do not ask where no preflight of the last hours has carried a transfer of each treatment on these nodes; every result says so (default: ask, on a terminal)")
	cmd.Flags().IntVar(&nodes, "nodes", 0, "wait until this many nodes are connected")
	cmd.Flags().BoolVar(&detach, "detach", false, "print the campaign's identity and return at once")
	return cmd
}

// askedPreflight requires a preflight where a person can be asked to do without.
func askedPreflight() linktrialv1.StartPlanRequest_Preflight {
	if term.IsTerminal(int(os.Stdin.Fd())) {
		return linktrialv1.StartPlanRequest_PREFLIGHT_REQUIRED
	}
	return linktrialv1.StartPlanRequest_PREFLIGHT_UNSPECIFIED
}

// startAndFollow starts a plan, shows its trials as they end, and prints the table with its
// conclusion; detached, it prints the campaign's identity alone. The error says which
// treatments the nodes lack. carry is the command that makes a preflight of the plan.
func startAndFollow(ctx context.Context, base string, c linktrialv1connect.OperatorServiceClient, req *linktrialv1.StartPlanRequest, carry string, detach bool) error {
	campaign, err := startAsking(ctx, base, c, req, carry, os.Stdin, os.Stderr)
	if err != nil {
		return err
	}
	// What follows only asks, and the campaign goes on whoever is down.
	ctx = client.Waiting(ctx, client.NewOutage(base, func(line string) { fmt.Fprintln(os.Stderr, line) }))
	missing, err := FindMissing(ctx, base, campaign, req.Text)
	if err != nil {
		return err
	}
	missing.Say()
	if detach {
		fmt.Println(campaign)
		return nil
	}
	if err := Follow(ctx, base, c, campaign); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("the view has ended; the campaign continues: linktrial results %s", campaign)
		}
		return err
	}
	if err := PrintTable(ctx, base, c, campaign, os.Stdout); err != nil {
		return err
	}
	return missing.Err()
}

// awaitNodes blocks until want nodes are connected, or ctx ends.
func awaitNodes(ctx context.Context, base string, c linktrialv1connect.OperatorServiceClient, want int) error {
	for told := false; want > 0; {
		res, err := c.ListNodes(ctx, connect.NewRequest(&linktrialv1.ListNodesRequest{}))
		if err != nil {
			return client.Error(base, err)
		}
		have := 0
		for _, n := range res.Msg.Nodes {
			if n.Connected {
				have++
			}
		}
		if have >= want {
			return nil
		}
		if !told {
			fmt.Fprintf(os.Stderr, "%d of %d nodes are connected; waiting for the rest\n", have, want)
			told = true
		}
		if !backoff.Sleep(ctx, 500*time.Millisecond) {
			return ctx.Err()
		}
	}
	return nil
}

// Start has the orchestrator run a plan, and returns the identity of the campaign.
// The error lists every problem of the plan.
func Start(ctx context.Context, base string, c linktrialv1connect.OperatorServiceClient, file string, text []byte, name string, confirmMoves bool) (string, error) {
	res, err := start(ctx, base, c, startRequest(file, text, name, confirmMoves))
	if err != nil {
		return "", err
	}
	return res.CampaignId, nil
}

func startRequest(file string, text []byte, name string, confirmMoves bool) *linktrialv1.StartPlanRequest {
	req := &linktrialv1.StartPlanRequest{File: file, Text: text, Name: name}
	if confirmMoves {
		req.Moves = linktrialv1.StartPlanRequest_MOVES_CONFIRM
	}
	return req
}

func start(ctx context.Context, base string, c linktrialv1connect.OperatorServiceClient, req *linktrialv1.StartPlanRequest) (*linktrialv1.StartPlanResponse, error) {
	res, err := c.StartPlan(ctx, connect.NewRequest(req))
	if err != nil {
		return nil, client.Error(base, err)
	}
	return res.Msg, Refused(req.File, res.Msg.Problems)
}

// startAsking is [Start] that says what the plan lacks of a fresh preflight. Where the
// request requires one, nothing was started, and in answers whether to start without it.
func startAsking(ctx context.Context, base string, c linktrialv1connect.OperatorServiceClient, req *linktrialv1.StartPlanRequest, carry string, in io.Reader, out io.Writer) (string, error) {
	res, err := start(ctx, base, c, req)
	if err != nil {
		return "", err
	}
	for _, why := range res.WithoutPreflight {
		fmt.Fprintln(out, terminal.Printable(why))
	}
	if len(res.WithoutPreflight) == 0 {
		return res.CampaignId, nil
	}
	advice := fmt.Sprintf("'%s' carries a small transfer of each treatment and says what works", carry)
	if res.CampaignId != "" {
		fmt.Fprintf(out, "The runs have started without one, which is said with every result; %s.\n", advice)
		return res.CampaignId, nil
	}
	fmt.Fprintf(out, "%s. Start without it, and have that said with every result? [y/N] ", advice)
	answer, _ := bufio.NewReader(in).ReadString('\n') // no answer is none
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return "", errors.New("nothing was started: make the preflight, or start with --without-preflight")
	}
	req.Preflight = linktrialv1.StartPlanRequest_PREFLIGHT_UNSPECIFIED
	if res, err = start(ctx, base, c, req); err != nil {
		return "", err
	}
	return res.CampaignId, nil
}

// Refused returns one error that lists all problems of a plan, or nil for none.
func Refused(file string, ps []*linktrialv1.Problem) error {
	if len(ps) == 0 {
		return nil
	}
	var b strings.Builder
	for _, p := range ps {
		if p.Line > 0 {
			fmt.Fprintf(&b, "\n%s:%d:%d: %s", p.File, p.Line, p.Column, p.Message)
		} else {
			fmt.Fprintf(&b, "\n%s: %s", cmp.Or(p.File, file), p.Message)
		}
	}
	if slices.ContainsFunc(ps, func(p *linktrialv1.Problem) bool { return ofCatalog(p.Message) }) {
		b.WriteString("\nThe orchestrator looks in its own catalogue" + addTo + ".")
	}
	return fmt.Errorf("the plan is refused:%s", b.String())
}

// Follow shows a campaign until it has ended. It says when the orchestrator or its
// database is away, and connects again, until ctx ends.
func Follow(ctx context.Context, base string, c linktrialv1connect.OperatorServiceClient, campaign string) error {
	return FollowOn(ctx, base, c, campaign, terminal.NewProgress(os.Stdout))
}

// FollowOn is [Follow] that shows the campaign on p, on which others may write lines.
func FollowOn(ctx context.Context, base string, c linktrialv1connect.OperatorServiceClient, campaign string, p *terminal.Progress) error {
	defer p.Finish()
	shown := newSeen()
	outage := client.NewOutage(base, func(line string) { p.Line("%s", line) })
	ctx = client.Saying(ctx, outage)
	retry := client.Retry()
	for {
		err := followOnce(ctx, c, campaign, func(ev *linktrialv1.WatchResponse) {
			retry.Reset()
			outage.Over()
			if shown.first(ev) {
				p.Show(ev)
			}
		})
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			return nil
		case client.Final(err):
			return client.Error(base, err)
		}
		outage.Failed(err)
		if !retry.Wait(ctx) {
			return ctx.Err()
		}
	}
}

var errStreamEnded = errors.New("the stream ended before the campaign did")

func followOnce(ctx context.Context, c linktrialv1connect.OperatorServiceClient, campaign string, show func(*linktrialv1.WatchResponse)) error {
	stream, err := c.Watch(ctx, connect.NewRequest(&linktrialv1.WatchRequest{CampaignId: campaign}))
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }() // nothing was written to it
	states := map[string]linktrialv1.RunState{}
	for stream.Receive() {
		ev := stream.Msg()
		if r := ev.GetRun(); r != nil {
			states[r.Id] = r.State
		}
		show(ev)
	}
	if err := stream.Err(); err != nil {
		return err
	}
	for _, st := range states {
		if !terminal.Over(st) {
			return errStreamEnded
		}
	}
	if len(states) == 0 {
		return errStreamEnded
	}
	return nil
}

// seen keeps a view that reconnects from showing an attempt twice; one whose verdict has
// changed, as that of an attempt that is marked, is shown again.
type seen struct{ attempts map[[2]any]string }

func newSeen() *seen { return &seen{attempts: map[[2]any]string{}} }

func (s *seen) first(ev *linktrialv1.WatchResponse) bool {
	e := ev.GetTrialEnded()
	if e == nil {
		return true
	}
	key := [2]any{e.RunId, [2]int32{e.Trial, e.Attempt.Attempt}}
	now := e.Attempt.Verdict + " " + e.Attempt.Reason
	if s.attempts[key] == now {
		return false
	}
	s.attempts[key] = now
	return true
}
