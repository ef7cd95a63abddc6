package people

import (
	"context"
	"fmt"
	"io"
	"os"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/setting"
	"linktrial/cmd/linktrial/terminal"
)

func newNotificationClient(base string) linktrialv1connect.NotificationServiceClient {
	return linktrialv1connect.NewNotificationServiceClient(client.HTTP(), base, client.Options())
}

func newNotifications(s *setting.Settings) *cobra.Command {
	var limit int32
	var follow, texts bool
	cmd := &cobra.Command{
		Use:     "notifications",
		GroupID: setting.GroupPeople,
		Short:   "List what there was to tell people, and set by which channels they are told",
		Long: `Notifications lists what there was to tell people, newest first: runs that ended, failed
or wait for people, nodes without contact, and what docs/notifications.md lists.
Notification channels, webhooks and e-mail, send it to where people are.`,
		Example: `  linktrial notifications
  linktrial notifications --follow --texts`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c := newNotificationClient(s.Orchestrator)
			if follow {
				return client.Error(s.Orchestrator, followNotifications(cmd.Context(), s.Orchestrator, c, cmd.OutOrStdout(), texts))
			}
			res, err := c.ListNotifications(cmd.Context(), connect.NewRequest(&linktrialv1.ListNotificationsRequest{Limit: limit}))
			if err != nil {
				return client.Error(s.Orchestrator, err)
			}
			for _, n := range res.Msg.Notifications {
				printNotification(cmd.OutOrStdout(), n, texts)
			}
			if len(res.Msg.Notifications) == 0 {
				fmt.Fprintln(cmd.OutOrStdout(), "There are no notifications yet.")
			}
			return nil
		},
	}
	cmd.Flags().Int32VarP(&limit, "limit", "n", 0, "how many, at most 500 (default 50)")
	cmd.Flags().BoolVar(&follow, "follow", false, "print those that come from now on, until interrupted")
	cmd.Flags().BoolVar(&texts, "texts", false, "print their texts, too")
	cmd.MarkFlagsMutuallyExclusive("limit", "follow")
	cmd.AddCommand(newChannels(s))
	return cmd
}

// followNotifications prints notifications as they come, and goes on after an outage where it was.
func followNotifications(ctx context.Context, base string, c linktrialv1connect.NotificationServiceClient, out io.Writer, texts bool) error {
	newest, err := c.ListNotifications(ctx, connect.NewRequest(&linktrialv1.ListNotificationsRequest{Limit: 1}))
	if err != nil {
		return err
	}
	var after int64
	if all := newest.Msg.Notifications; len(all) > 0 {
		after = all[0].Id
	}
	ctx = client.Waiting(ctx, client.NewOutage(base, func(line string) { fmt.Fprintln(os.Stderr, line) }))
	return client.Repeat(ctx, func() error {
		stream, err := c.WatchNotifications(ctx, connect.NewRequest(&linktrialv1.WatchNotificationsRequest{After: after}))
		if err != nil {
			return err
		}
		defer func() { _ = stream.Close() }()
		for stream.Receive() {
			n := stream.Msg().Notification
			after = n.Id
			printNotification(out, n, texts)
		}
		return stream.Err()
	})
}

func printNotification(out io.Writer, n *linktrialv1.Notification, texts bool) {
	mark := " "
	if n.Urgent {
		mark = "!"
	}
	fmt.Fprintf(out, "%s %s %-16s %s\n", terminal.Moment(n.At), mark, n.Kind, terminal.Printable(n.Title))
	if texts && n.Text != "" {
		fmt.Fprintf(out, "    %s\n", terminal.Printable(n.Text))
	}
}
