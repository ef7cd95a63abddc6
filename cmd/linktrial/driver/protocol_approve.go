package driver

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/setting"
	"linktrial/cmd/linktrial/terminal"
	"linktrial/internal/driverdigest"
)

// driverName parses NAME@DIGEST.
func driverName(text string) (protocol, digest string, err error) {
	protocol, rest, ok := strings.Cut(text, "@")
	if !ok || protocol == "" {
		return "", "", fmt.Errorf("%q, expected NAME@DIGEST such as tcp@sha256:…: 'linktrial protocol approvals' lists what the nodes have", text)
	}
	d, err := driverdigest.Parse(rest)
	return protocol, string(d), err
}

func newProtocolApprove(s *setting.Settings) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "approve NAME@DIGEST",
		Short: "Approve a driver that the orchestrator does not have itself, for new run sheets",
		Long: `Approve adds one more digest of a protocol's driver to the run sheets that are made
from now on. Agents run only drivers whose digest is in the run sheet; those of the
orchestrator's own drivers always are.`,
		Example: `  linktrial protocol approve tcp@sha256:0f343b0931126a20f133d67c2b018a3b1b7d0d8f3f5a6f2c4e0a7a0b4b6f5f3e --reason "build of the vendor's laptop"`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			protocol, digest, err := driverName(args[0])
			if err != nil {
				return err
			}
			if err := approveDriver(cmd.Context(), s.Orchestrator, protocol, digest, reason); err != nil {
				return err
			}
			fmt.Printf("Driver %s@%s is approved for run sheets that are made from now on.\n", protocol, digest)
			return nil
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "the reason, which is recorded")
	return cmd
}

// approveDriver approves one digest, in the name of the user of this machine.
func approveDriver(ctx context.Context, base, protocol, digest, reason string) error {
	if _, err := newTrustClient(base).ApproveDriver(ctx, connect.NewRequest(&linktrialv1.ApproveDriverRequest{
		Protocol: protocol, Digest: digest, Reason: reason, By: client.UserName()})); err != nil {
		return client.Error(base, err)
	}
	return nil
}

func newProtocolUnapprove(s *setting.Settings) *cobra.Command {
	return &cobra.Command{
		Use:     "unapprove NAME@DIGEST",
		Short:   "Withdraw an approval, for new run sheets",
		Example: `  linktrial protocol unapprove tcp@sha256:0f343b0931126a20f133d67c2b018a3b1b7d0d8f3f5a6f2c4e0a7a0b4b6f5f3e`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			protocol, digest, err := driverName(args[0])
			if err != nil {
				return err
			}
			if _, err := newTrustClient(s.Orchestrator).UnapproveDriver(cmd.Context(), connect.NewRequest(&linktrialv1.UnapproveDriverRequest{
				Protocol: protocol, Digest: digest, By: client.UserName()})); err != nil {
				return client.Error(s.Orchestrator, err)
			}
			fmt.Printf("Driver %s@%s is no longer approved for new run sheets; existing ones stay as they are.\n", protocol, digest)
			return nil
		},
	}
}

func newProtocolApprovals(s *setting.Settings) *cobra.Command {
	return &cobra.Command{
		Use:     "approvals",
		Short:   "List the approved drivers, and the drivers on the nodes",
		Example: `  linktrial protocol approvals`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			res, err := newTrustClient(s.Orchestrator).ListApprovals(cmd.Context(), connect.NewRequest(&linktrialv1.ListApprovalsRequest{}))
			if err != nil {
				return client.Error(s.Orchestrator, err)
			}
			if err := terminal.Columns("ACCEPTED DRIVER\tWHY\tBY\tSINCE", func(w io.Writer) {
				for _, a := range res.Msg.Accepted {
					if a.Own {
						fmt.Fprintf(w, "%s@%s\tthe orchestrator's own\t\t\n", a.Protocol, a.Digest)
						continue
					}
					fmt.Fprintf(w, "%s@%s\t%s\t%s\t%s\n", a.Protocol, a.Digest, cmp.Or(a.Reason, "approved"), a.By, terminal.Moment(a.ApprovedAt))
				}
			}); err != nil {
				return err
			}
			if len(res.Msg.OnNodes) == 0 {
				return nil
			}
			fmt.Println()
			return terminal.Columns("NODE\tDRIVER\tVERSION\tACCEPTED", func(w io.Writer) {
				for _, d := range res.Msg.OnNodes {
					accepted := "yes"
					if !d.Accepted {
						accepted = "no"
					}
					fmt.Fprintf(w, "%s\t%s@%s\t%s\t%s\n", d.Node, d.Protocol, d.Digest, d.Version, accepted)
				}
			})
		},
	}
}
