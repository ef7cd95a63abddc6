package trial

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/setting"
	"linktrial/cmd/linktrial/terminal"
)

func newTelemetry(s *setting.Settings) *cobra.Command {
	return &cobra.Command{
		Use:     "telemetry [NODE…]",
		GroupID: setting.GroupNodes,
		Short:   "Show the newest telemetry of the nodes' radios: signal, counters, position, power",
		Example: `  linktrial telemetry
  linktrial telemetry client server`,
		RunE: func(cmd *cobra.Command, args []string) error {
			res, err := client.New(s.Orchestrator).ListNodes(cmd.Context(), connect.NewRequest(&linktrialv1.ListNodesRequest{}))
			if err != nil {
				return client.Error(s.Orchestrator, err)
			}
			if !slices.ContainsFunc(res.Msg.Nodes, func(n *linktrialv1.Node) bool {
				return len(n.Telemetry) > 0 && (len(args) == 0 || slices.Contains(args, n.Name))
			}) {
				fmt.Println("No telemetry yet. Connected agents read their radios as the radio profiles say: linktrial profiles NAME --json")
				return nil
			}
			return terminal.Columns("NODE\tSOURCE\tMETRIC\tVALUE\tAGE", func(w io.Writer) {
				for _, n := range res.Msg.Nodes {
					if len(args) == 0 || slices.Contains(args, n.Name) {
						printTelemetry(w, n)
					}
				}
			})
		},
	}
}

func printTelemetry(w io.Writer, n *linktrialv1.Node) {
	for _, t := range n.Telemetry {
		age := time.Duration(t.AgeSeconds * float64(time.Second)).Round(time.Second)
		for _, v := range t.Values {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", n.Name, t.Source, v.Name, strings.TrimSpace(fmt.Sprintf("%.10g %s", v.Value, v.Unit)), age)
		}
		if t.Error != "" {
			fmt.Fprintf(w, "%s\t%s\t–\t%s\t\n", n.Name, t.Source, t.Error)
		}
	}
}
