package trial

import (
	"cmp"
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
which nodes reach each other, how fast and up to which packet size.

The exit code is 0 where no check failed, and 1 otherwise. Each finding says what to
do about it.`,
		Example: `  linktrial preflight
  linktrial preflight --topology vip-lot --radio prc-117g-anw2c
  linktrial preflight client server --plan plans/quickstart.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			req.Nodes = args
			if file != "" {
				if err := ofPlan(cmd.Context(), s, file, &req); err != nil {
					return err
				}
			}
			c := linktrialv1connect.NewFleetServiceClient(client.HTTP(), s.Orchestrator, connect.WithGRPC())
			p, err := preflight(cmd.Context(), c, &req)
			if err != nil {
				return client.Error(s.Orchestrator, err)
			}
			links, err := c.Links(cmd.Context(), connect.NewRequest(&linktrialv1.LinksRequest{}))
			if err != nil {
				return client.Error(s.Orchestrator, err)
			}
			failed, err := printPreflight(p, links.Msg.Links)
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
	f.StringVar(&file, "plan", "", "file of a plan: its radio, its topology with the most nodes, and its protocols are checked")
	return cmd
}

// ofPlan fills in what a plan needs, where the flags leave it open.
func ofPlan(ctx context.Context, s *setting.Settings, file string, req *linktrialv1.StartPreflightRequest) error {
	p, sheets, err := Compile(ctx, s, file)
	if err != nil {
		return err
	}
	radio, topology, stations := sheets[0].Cell.Radio, "", 0
	for _, sh := range sheets {
		if sh.Cell.Radio != radio {
			radio = "" // several: nobody knows which is attached first
		}
		if n := len(sh.Topology.Stations); n > stations {
			topology, stations = sh.Cell.Topology, n
		}
	}
	req.Radio, req.Topology = cmp.Or(req.Radio, radio), cmp.Or(req.Topology, topology)
	for _, protocol := range p.Protocols() {
		if !slices.Contains(req.Protocols, protocol) {
			req.Protocols = append(req.Protocols, protocol)
		}
	}
	return nil
}

// preflight starts one and waits for its end.
func preflight(ctx context.Context, c linktrialv1connect.FleetServiceClient, req *linktrialv1.StartPreflightRequest) (*linktrialv1.GetPreflightResponse, error) {
	started, err := c.StartPreflight(ctx, connect.NewRequest(req))
	if err != nil {
		return nil, err
	}
	shown := ""
	say := func(text string) {
		if text != shown && term.IsTerminal(int(os.Stderr.Fd())) {
			fmt.Fprintf(os.Stderr, "\r\033[K%s", terminal.Printable(text))
		}
		shown = text
	}
	defer say("")
	for {
		res, err := c.GetPreflight(ctx, connect.NewRequest(&linktrialv1.GetPreflightRequest{Id: started.Msg.Id}))
		if err != nil {
			return nil, err
		}
		if res.Msg.Ended != nil {
			return res.Msg, nil
		}
		say("waiting for " + strings.Join(res.Msg.WaitingFor, ", "))
		if !backoff.Sleep(ctx, 200*time.Millisecond) {
			return nil, ctx.Err()
		}
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
