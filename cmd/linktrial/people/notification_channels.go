package people

import (
	"context"
	"fmt"
	"io"
	"strings"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/setting"
	"linktrial/cmd/linktrial/terminal"
)

func newChannels(s *setting.Settings) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "channels",
		Short:   "List notification channels, add, change, test and remove them (admins)",
		Example: `  linktrial notifications channels`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			res, err := newNotificationClient(s.Orchestrator).ListChannels(cmd.Context(), connect.NewRequest(&linktrialv1.ListChannelsRequest{}))
			if err != nil {
				return client.Error(s.Orchestrator, err)
			}
			return terminal.Columns("CHANNEL\tTO\tKINDS\tSECRET\tDELIVERED\tWAITING\tGIVEN UP\tLAST ERROR", func(w io.Writer) {
				for _, c := range res.Msg.Channels {
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%d\t%d\t%s\n", terminal.Printable(c.Name), terminal.Printable(placeOf(c)), kindsOf(c), yesNo(c.HasSecret), c.State.GetDelivered(), c.State.GetWaiting(), c.State.GetGivenUp(), terminal.Printable(c.State.GetError()))
				}
			})
		},
	}
	add := &cobra.Command{Use: "add", Short: "Add a notification channel: a webhook or e-mail"}
	add.AddCommand(newAddWebhook(s), newAddEmail(s))
	cmd.AddCommand(add, newChangeChannel(s), newRemoveChannel(s), newTestChannel(s))
	return cmd
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func kindsOf(c *linktrialv1.Channel) string {
	switch {
	case c.Off:
		return "off"
	case len(c.Kinds) == 0:
		return "all"
	}
	return strings.Join(c.Kinds, ",")
}

func placeOf(c *linktrialv1.Channel) string {
	if e := c.GetEmail(); e != nil {
		return fmt.Sprintf("%s by %s:%d (%s)", strings.Join(e.To, ", "), e.Host, e.Port, securityWord(e.Security))
	}
	return c.GetWebhook().GetUrl()
}

func newAddWebhook(s *setting.Settings) *cobra.Command {
	var f channelFlags
	cmd := &cobra.Command{
		Use:   "webhook NAME",
		Short: "Add a webhook: each notification is posted to a URL as JSON",
		Example: `  linktrial notifications channels add webhook chat --url https://chat.example.org/hook --secret-file key
  head -c 32 /dev/urandom | base64 | linktrial notifications channels add webhook ci --url https://ci.example.org/hook --kinds campaign-ended --secret-file -`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			secret, err := f.secret(cmd)
			if err != nil {
				return err
			}
			return saveChannel(cmd, s, &linktrialv1.SaveChannelRequest{Secret: secret, Channel: &linktrialv1.Channel{Name: args[0], Kinds: f.kinds,
				Settings: &linktrialv1.Channel_Webhook{Webhook: &linktrialv1.WebhookSettings{Url: f.url}}}})
		},
	}
	f.common(cmd)
	f.webhook(cmd)
	_ = cmd.MarkFlagRequired("url")
	return cmd
}

func newAddEmail(s *setting.Settings) *cobra.Command {
	var f channelFlags
	cmd := &cobra.Command{
		Use:   "email NAME",
		Short: "Add e-mail: each notification is a mail, by a mail server of yours",
		Example: `  linktrial notifications channels add email team --host mail.example.org --user trial --secret-file password --from trial@example.org --to ada@example.org
  linktrial notifications channels add email site --host 10.0.0.5 --port 25 --security none --from trial@example.org --to ada@example.org,bob@example.org`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			security, err := parseSecurity(f.security)
			if err != nil {
				return err
			}
			secret, err := f.secret(cmd)
			if err != nil {
				return err
			}
			return saveChannel(cmd, s, &linktrialv1.SaveChannelRequest{Secret: secret, Channel: &linktrialv1.Channel{Name: args[0], Kinds: f.kinds,
				Settings: &linktrialv1.Channel_Email{Email: &linktrialv1.EmailSettings{Host: f.host, Port: f.port, Security: security, User: f.user, From: f.from, To: f.to}}}})
		},
	}
	f.common(cmd)
	f.email(cmd, 587, "starttls")
	for _, name := range []string{"host", "from", "to"} {
		_ = cmd.MarkFlagRequired(name)
	}
	return cmd
}

func saveChannel(cmd *cobra.Command, s *setting.Settings, req *linktrialv1.SaveChannelRequest) error {
	res, err := newNotificationClient(s.Orchestrator).SaveChannel(cmd.Context(), connect.NewRequest(req))
	if err != nil {
		return client.Error(s.Orchestrator, err)
	}
	c := res.Msg.Channel
	fmt.Fprintf(cmd.OutOrStdout(), "Notification channel %q is saved (version %d). Try it with: linktrial notifications channels test %s\n", c.Name, c.Version, quotedName(c.Name))
	return nil
}

func quotedName(name string) string {
	if strings.ContainsAny(name, " '\"$`\\!*?&;|<>()") {
		return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
	}
	return name
}

// findChannel returns a channel by its name.
func findChannel(ctx context.Context, c linktrialv1connect.NotificationServiceClient, name string) (*linktrialv1.Channel, error) {
	res, err := c.ListChannels(ctx, connect.NewRequest(&linktrialv1.ListChannelsRequest{}))
	if err != nil {
		return nil, err
	}
	for _, x := range res.Msg.Channels {
		if x.Name == name {
			return x, nil
		}
	}
	return nil, connect.NewError(connect.CodeNotFound, fmt.Errorf("there is no notification channel %q: 'linktrial notifications channels' lists them", name))
}

func newChangeChannel(s *setting.Settings) *cobra.Command {
	var f channelFlags
	cmd := &cobra.Command{
		Use:   "change NAME",
		Short: "Change a notification channel; what is not given stays as it is",
		Long: `Change changes what is given of a notification channel. One that sends elsewhere
afterwards, to another URL, host or port or as another user, needs its secret again.
--kinds "" has it told all kinds.`,
		Example: `  linktrial notifications channels change chat --kinds run-failed,waits-for-people
  linktrial notifications channels change team --to ada@example.org --to eve@example.org
  linktrial notifications channels change chat --off`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			secret, err := f.secret(cmd)
			if err != nil {
				return err
			}
			c, err := findChannel(cmd.Context(), newNotificationClient(s.Orchestrator), args[0])
			if err != nil {
				return client.Error(s.Orchestrator, err)
			}
			if err := f.change(cmd, c); err != nil {
				return err
			}
			return saveChannel(cmd, s, &linktrialv1.SaveChannelRequest{Channel: c, Secret: secret, RemoveSecret: f.removeSecret})
		},
	}
	f.common(cmd)
	f.webhook(cmd)
	f.email(cmd, 0, "")
	cmd.Flags().BoolVar(&f.removeSecret, "remove-secret", false, "remove the secret")
	cmd.Flags().BoolVar(&f.off, "off", false, "send nothing; what waits is dropped")
	cmd.Flags().BoolVar(&f.on, "on", false, "send again")
	cmd.MarkFlagsMutuallyExclusive("off", "on")
	cmd.MarkFlagsMutuallyExclusive("secret-file", "remove-secret")
	return cmd
}

func newRemoveChannel(s *setting.Settings) *cobra.Command {
	return &cobra.Command{
		Use:     "remove NAME",
		Short:   "Remove a notification channel with its secret; what waits is not sent",
		Example: `  linktrial notifications channels remove chat`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := newNotificationClient(s.Orchestrator).RemoveChannel(cmd.Context(), connect.NewRequest(&linktrialv1.RemoveChannelRequest{Name: args[0]})); err != nil {
				return client.Error(s.Orchestrator, err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "Notification channel %q is removed.\n", args[0])
			return nil
		},
	}
}

func newTestChannel(s *setting.Settings) *cobra.Command {
	return &cobra.Command{
		Use:     "test NAME",
		Short:   "Send a test message by a notification channel, and say how that went",
		Example: `  linktrial notifications channels test chat`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			res, err := newNotificationClient(s.Orchestrator).TestChannel(cmd.Context(), connect.NewRequest(&linktrialv1.TestChannelRequest{Name: args[0]}))
			if err != nil {
				return client.Error(s.Orchestrator, err)
			}
			if res.Msg.Error != "" {
				return fmt.Errorf("the test message was not delivered by %q: %s", args[0], terminal.Printable(res.Msg.Error))
			}
			fmt.Fprintf(cmd.OutOrStdout(), "The test message was delivered by %q.\n", args[0])
			return nil
		},
	}
}
