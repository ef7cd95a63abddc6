package trial

import (
	"context"
	"fmt"
	"io"
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

func newPreflight(s *setting.Settings) *cobra.Command {
	var req linktrialv1.StartPreflightRequest
	var file string
	cmd := &cobra.Command{
		Use:     "preflight [NODE…]",
		GroupID: setting.GroupTrial,
		Short:   "Check the nodes, and the radio network between them, before a run",
		Long: `Preflight has the nodes check what would spoil a run: control link, clocks, disk,
battery, drivers, the radio's interface, other traffic on it, and, over the radio,
which nodes reach each other, how fast and up to which packet size. With --plan they
carry one small transfer of each treatment, with the drivers, addresses and ports of the
run: it says of each whether it works, is blocked (and where), or is not supported.

The exit code is 0 where no check failed, and 1 otherwise. Each finding says what to
do about it.`,
		Example: `  linktrial preflight
  linktrial preflight --topology vip-lot --radio prc-117g-anw2c
  linktrial preflight client server --plan plans/quickstart.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			req.Nodes = args
			if file != "" {
				text, name, err := readNamed(cmd.Context(), s, file, os.Stderr)
				if err != nil {
					return err
				}
				req.PlanFile, req.PlanText = name, text
			}
			failed, err := showPreflight(cmd.Context(), s.Orchestrator, &req)
			if err != nil {
				return err
			}
			if failed {
				return setting.ExitCode(1)
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&req.Topology, "topology", "", "topology: each of its roles must have a node")
	f.StringVar(&req.Radio, "radio", "", "radio profile: packets of its MTU must pass")
	f.StringVar(&file, "plan", "", "a plan, by its file or its name at the orchestrator: a small transfer of each of its treatments is carried, and its radio and its topology with the most nodes are checked")
	return cmd
}

// showPreflight makes one, prints it, and reports whether a check has failed.
func showPreflight(ctx context.Context, base string, req *linktrialv1.StartPreflightRequest) (failed bool, err error) {
	c := linktrialv1connect.NewFleetServiceClient(client.HTTP(), base, connect.WithGRPC())
	p, err := preflight(ctx, c, req, stepsOn(os.Stderr, term.IsTerminal(int(os.Stderr.Fd()))))
	if err != nil {
		return false, client.Error(base, err)
	}
	links, err := c.Links(ctx, connect.NewRequest(&linktrialv1.LinksRequest{}))
	if err != nil {
		return false, client.Error(base, err)
	}
	return printPreflight(p, links.Msg.Links)
}

// preflight starts one and waits for its end, and tells what is done meanwhile. The error
// lists all problems of its plan.
func preflight(ctx context.Context, c linktrialv1connect.FleetServiceClient, req *linktrialv1.StartPreflightRequest, say func(step string, left time.Duration)) (*linktrialv1.GetPreflightResponse, error) {
	started, err := c.StartPreflight(ctx, connect.NewRequest(req))
	if err != nil {
		return nil, err
	}
	if err := Refused(req.PlanFile, started.Msg.Problems); err != nil {
		return nil, err
	}
	for {
		res, err := c.GetPreflight(ctx, connect.NewRequest(&linktrialv1.GetPreflightRequest{Id: started.Msg.Id}))
		if err != nil {
			return nil, err
		}
		if res.Msg.Ended != nil {
			say("", 0)
			return res.Msg, nil
		}
		step := res.Msg.Step
		if len(res.Msg.WaitingFor) > 0 {
			step += " (waiting for " + strings.Join(res.Msg.WaitingFor, ", ") + ")"
		}
		say(step, time.Duration(res.Msg.LeftSeconds*float64(time.Second)))
		if !backoff.Sleep(ctx, 200*time.Millisecond) {
			return nil, ctx.Err()
		}
	}
}

// stepsOn shows what a preflight does: on a terminal in one line that changes, elsewhere
// with a line for each step.
func stepsOn(w io.Writer, terminal bool) func(step string, left time.Duration) {
	shown := ""
	return func(step string, left time.Duration) {
		if terminal {
			fmt.Fprint(w, "\r\033[K")
			if step != "" {
				fmt.Fprintf(w, "%s, about %s left", step, left.Round(time.Second))
			}
			return
		}
		what, _, _ := strings.Cut(step, " (waiting")
		if what != shown && what != "" {
			fmt.Fprintf(w, "%s, about %s left\n", what, left.Round(time.Second))
		}
		shown = what
	}
}

var checkWords = map[linktrialv1.CheckState]string{
	linktrialv1.CheckState_CHECK_STATE_UNSPECIFIED: "not checked",
	linktrialv1.CheckState_CHECK_STATE_OK:          "ok",
	linktrialv1.CheckState_CHECK_STATE_WARNING:     "warning",
	linktrialv1.CheckState_CHECK_STATE_FAILED:      "FAILED",
	linktrialv1.CheckState_CHECK_STATE_UNKNOWN:     "unknown",
}

// printPreflight prints the table, what to do about each finding, and the links. It
// reports whether a check failed.
func printPreflight(p *linktrialv1.GetPreflightResponse, links []*linktrialv1.Link) (bool, error) {
	err := terminal.Columns("NODE\tPEER\tCHECK\tSTATE\tFOUND", func(w io.Writer) {
		for _, c := range p.Checks {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", c.Node, c.Peer, c.Kind, checkWords[c.State], c.Found)
		}
	})
	if err != nil {
		return false, err
	}
	n := map[linktrialv1.CheckState]int{}
	for _, c := range p.Checks {
		n[c.State]++
		switch c.State {
		case linktrialv1.CheckState_CHECK_STATE_WARNING, linktrialv1.CheckState_CHECK_STATE_FAILED, linktrialv1.CheckState_CHECK_STATE_UNKNOWN:
			fmt.Printf("\n%s: %s", terminal.Printable(strings.TrimSpace(c.Node+" "+c.Peer)), terminal.Printable(c.Found))
			for _, line := range [][2]string{{"expected", c.Expected}, {"means   ", c.Meaning}, {"do      ", c.Remedy}} {
				if line[1] != "" {
					fmt.Printf("\n  %s %s", line[0], terminal.Printable(line[1]))
				}
			}
			fmt.Println()
		}
	}
	var rows [][]string
	for _, l := range links {
		if slices.Contains(p.Nodes, l.From) && slices.Contains(p.Nodes, l.To) {
			rtt := "–"
			if l.Reachable {
				rtt = fmt.Sprintf("%.1f ms", l.RttSeconds*1e3)
			}
			rows = append(rows, []string{l.From, l.To, rtt, fmt.Sprintf("%.0f %%", 100*l.Loss), terminal.Moment(l.At)})
		}
	}
	if len(rows) > 0 {
		fmt.Println()
		err = terminal.Columns("FROM\tTO\tROUND TRIP\tLOST\tPROBED", func(w io.Writer) {
			for _, r := range rows {
				fmt.Fprintln(w, strings.Join(r, "\t"))
			}
		})
	}
	failed := n[linktrialv1.CheckState_CHECK_STATE_FAILED]
	fmt.Printf("\n%s: %d ok, %d warnings, %d failed, %d unknown\n", terminal.Count(len(p.Checks), "check"), n[linktrialv1.CheckState_CHECK_STATE_OK],
		n[linktrialv1.CheckState_CHECK_STATE_WARNING], failed, n[linktrialv1.CheckState_CHECK_STATE_UNKNOWN])
	return failed > 0, err
}
