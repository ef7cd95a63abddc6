package node

import (
	"context"
	"fmt"
	"os"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/setting"
	"linktrial/internal/unit"
)

func newNodeCode(s *setting.Settings) *cobra.Command {
	var valid time.Duration
	var end bool
	cmd := &cobra.Command{
		Use:   "code",
		Short: "Open a short code by which laptops join, and print it",
		Long: `Code opens a code of four digits and two words, which is spoken over a radio and typed
on the other laptop: 'linktrial join CODE'. At most one code is open: a new one closes the
one before. It ends after its time, after five wrong tries, and with --close.`,
		Example: `  linktrial node code
  linktrial node code --close`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c := linktrialv1connect.NewJoinServiceClient(client.HTTP(), s.Orchestrator, connect.WithGRPC())
			if end {
				return closeCode(cmd.Context(), s, c)
			}
			if valid < time.Second {
				return fmt.Errorf("--valid %s, expected 1m to 1h", valid)
			}
			res, err := c.OpenJoining(cmd.Context(), connect.NewRequest(&linktrialv1.OpenJoiningRequest{ValidSeconds: int64(valid / time.Second)}))
			if err != nil {
				return client.Error(s.Orchestrator, err)
			}
			fmt.Println(res.Msg.Code) // alone on standard output, for scripts
			fmt.Fprintf(os.Stderr, "Spoken: %s\nLaptops can join until %s, or until %d wrong tries. On each of them:\n  linktrial join %s\n",
				res.Msg.Spoken, unit.Moment(res.Msg.Expires.AsTime()), res.Msg.Tries, res.Msg.Code)
			return nil
		},
	}
	cmd.Flags().DurationVar(&valid, "valid", 10*time.Minute, "how long laptops can join by the code, 1m to 1h")
	cmd.Flags().BoolVar(&end, "close", false, "close the code that is open")
	cmd.MarkFlagsMutuallyExclusive("valid", "close")
	return cmd
}

func closeCode(ctx context.Context, s *setting.Settings, c linktrialv1connect.JoinServiceClient) error {
	res, err := c.CloseJoining(ctx, connect.NewRequest(&linktrialv1.CloseJoiningRequest{}))
	if err != nil {
		return client.Error(s.Orchestrator, err)
	}
	if !res.Msg.Closed {
		fmt.Println("No code was open")
		return nil
	}
	fmt.Println("The code is closed")
	return nil
}
