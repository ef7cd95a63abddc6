package trial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/setting"
	"linktrial/cmd/linktrial/terminal"
	"linktrial/internal/backoff"
)

func newRun(s *setting.Settings) *cobra.Command {
	var name string
	var detach, confirm bool
	var nodes int
	cmd := &cobra.Command{
		Use:   "run FILE",
		Short: "Run a plan on the connected nodes, against a running orchestrator",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := os.ReadFile(args[0])
			if err != nil {
				return err
			}
			ctx, c := cmd.Context(), client.New(s.Orchestrator)
			if err := awaitNodes(ctx, s.Orchestrator, c, nodes); err != nil {
				return err
			}
			campaign, err := Start(ctx, s.Orchestrator, c, args[0], text, name, confirm)
			if err != nil {
				return err
			}
			if detach {
				fmt.Println(campaign)
				return nil
			}
			if err := Follow(ctx, s.Orchestrator, c, campaign); err != nil {
				if ctx.Err() != nil {
					return fmt.Errorf("no longer watching; the campaign goes on without you: linktrial results %s", campaign)
				}
				return err
			}
			return PrintResults(ctx, s.Orchestrator, c, campaign, "table", os.Stdout)
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "name of the campaign (default: the plan's)")
	cmd.Flags().BoolVar(&confirm, "confirm-moves", false, "wait for 'linktrial continue' before the first run and before each with another topology than the one before (default: only the latter, and only on real radios)")
	cmd.Flags().IntVar(&nodes, "nodes", 0, "wait until so many nodes are connected")
	cmd.Flags().BoolVar(&detach, "detach", false, "print the campaign's identity and return at once")
	return cmd
}

// awaitNodes waits until as many nodes are connected.
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
			fmt.Fprintf(os.Stderr, "%d of %d nodes are connected; waiting for the others\n", have, want)
			told = true
		}
		if !backoff.Sleep(ctx, 500*time.Millisecond) {
			return ctx.Err()
		}
	}
	return nil
}

// Start hands the plan over; what is wrong with it is printed in full.
func Start(ctx context.Context, base string, c linktrialv1connect.OperatorServiceClient, file string, text []byte, name string, confirmMoves bool) (string, error) {
	req := &linktrialv1.StartPlanRequest{File: file, Text: text, Name: name}
	if confirmMoves {
		req.Moves = linktrialv1.StartPlanRequest_MOVES_CONFIRM
	}
	res, err := c.StartPlan(ctx, connect.NewRequest(req))
	if err != nil {
		return "", client.Error(base, err)
	}
	if err := Refused(file, res.Msg.Problems); err != nil {
		return "", err
	}
	return res.Msg.CampaignId, nil
}

// Refused says in one error all that is wrong with a plan; nil where nothing is.
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
	return fmt.Errorf("the plan is refused:%s", b.String())
}

// Follow shows a campaign until it has ended. A lost connection to the
// orchestrator is said and tried again, for as long as ctx lasts.
func Follow(ctx context.Context, base string, c linktrialv1connect.OperatorServiceClient, campaign string) error {
	p := terminal.NewProgress(os.Stdout)
	defer p.Finish()
	shown := newSeen()
	var lostAt time.Time
	for {
		err := followOnce(ctx, c, campaign, func(ev *linktrialv1.WatchResponse) {
			if !lostAt.IsZero() {
				p.Line("the orchestrator is back after %s", terminal.ForPeople(time.Since(lostAt).Seconds()))
				lostAt = time.Time{}
			}
			if shown.first(ev) {
				p.Show(ev)
			}
		})
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			return nil
		case connect.CodeOf(err) == connect.CodeNotFound:
			return client.Error(base, err)
		}
		if lostAt.IsZero() {
			lostAt = time.Now()
			p.Line("no word from the orchestrator; the agents go on by themselves, and so will this view when it is back")
		}
		if !backoff.Sleep(ctx, 500*time.Millisecond) {
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
	defer func() { _ = stream.Close() }() // it was only read
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

// seen keeps a view that reconnects from showing an attempt twice.
type seen struct{ attempts map[[2]any]bool }

func newSeen() *seen { return &seen{attempts: map[[2]any]bool{}} }

func (s *seen) first(ev *linktrialv1.WatchResponse) bool {
	e := ev.GetTrialEnded()
	if e == nil {
		return true
	}
	key := [2]any{e.RunId, [2]int32{e.Trial, e.Attempt.Attempt}}
	if s.attempts[key] {
		return false
	}
	s.attempts[key] = true
	return true
}
