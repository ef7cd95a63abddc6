package driver

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"linktrial/agents/runner"
	"linktrial/cmd/linktrial/setting"
	"linktrial/cmd/linktrial/terminal"
)

func newProtocolImages(s *setting.Settings) *cobra.Command {
	var engine, reason string
	var approve bool
	cmd := &cobra.Command{
		Use:   "images",
		Short: "List the driver images of this machine's container engine, with their digests",
		Example: `  linktrial protocol images
  linktrial protocol images --approve`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var found []runner.State
			var err error
			if approve {
				found, err = ApproveImages(cmd.Context(), s.Orchestrator, engine, reason, s.Logger())
			} else {
				found, err = images(cmd.Context(), engine, s.Logger())
			}
			if err != nil {
				return err
			}
			return terminal.Columns("PROTOCOL\tVERSION\tDIGEST\tNOTE", func(w io.Writer) {
				for _, i := range found {
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", i.Driver.Name, i.Driver.Version, i.Driver.Digest, i.Driver.Unsupported)
				}
			})
		},
	}
	cmd.Flags().StringVar(&engine, "engine", "", "address of the container engine (default: DOCKER_HOST, else its usual socket)")
	cmd.Flags().BoolVar(&approve, "approve", false, "approve these images at the orchestrator, for new run sheets")
	cmd.Flags().StringVar(&reason, "reason", "image of the orchestrator's own machine", "the reason, which is recorded; with --approve")
	return cmd
}
