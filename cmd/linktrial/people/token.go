package people

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/setting"
	"linktrial/cmd/linktrial/terminal"
)

func newToken(s *setting.Settings) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "token",
		GroupID: setting.GroupPeople,
		Short:   "Create, list and revoke API tokens, for scripts",
		Long: `With a token a script calls the orchestrator as its user, with that user's role or a
lesser one. Linktrial reads it from LINKTRIAL_TOKEN; other programs send it with each
call, as "Authorization: Bearer TOKEN".`,
	}
	cmd.AddCommand(newTokenCreate(s), newTokenList(s), newTokenRevoke(s))
	return cmd
}

// parseLife parses a duration, also one in days.
func parseLife(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q, expected a time such as 90d, 12h or 30m", text)
	}
	return d, nil
}

func newTokenCreate(s *setting.Settings) *cobra.Command {
	var roleName, valid string
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a token and print it; it cannot be shown again",
		Example: `  linktrial token create nightly --role viewer --valid 90d
  export LINKTRIAL_TOKEN=$(linktrial token create nightly)`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			req := &linktrialv1.CreateTokenRequest{Name: args[0]}
			if roleName != "" {
				role, err := parseRole(roleName)
				if err != nil {
					return fmt.Errorf("--role: %w", err)
				}
				req.Role = role
			}
			life, err := parseLife(valid)
			if err != nil {
				return fmt.Errorf("--valid: %w", err)
			}
			if req.ValidSeconds = int64(life / time.Second); req.ValidSeconds == 0 {
				return fmt.Errorf("--valid: %s, expected at least a minute", valid)
			}
			res, err := newAccessClient(s.Orchestrator).CreateToken(cmd.Context(), connect.NewRequest(req))
			if err != nil {
				return client.Error(s.Orchestrator, err)
			}
			t := res.Msg.Token
			fmt.Fprintf(os.Stderr, "Token %q of %s (%s, until %s); it cannot be shown again:\n", t.Name, t.User, roleWord(t.Role), terminal.Moment(t.Expires))
			fmt.Println(res.Msg.Text)
			return nil
		},
	}
	cmd.Flags().StringVar(&roleName, "role", "", "viewer, director or admin, at most your own (default: your own)")
	cmd.Flags().StringVar(&valid, "valid", "90d", "how long it is valid, at most 366d")
	return cmd
}

func newTokenList(s *setting.Settings) *cobra.Command {
	var userName string
	var all, old bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List your tokens, or as an admin those of others",
		Example: `  linktrial token list
  linktrial token list --all-users --old`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			res, err := newAccessClient(s.Orchestrator).ListTokens(cmd.Context(), connect.NewRequest(&linktrialv1.ListTokensRequest{User: userName, AllUsers: all}))
			if err != nil {
				return client.Error(s.Orchestrator, err)
			}
			now := time.Now()
			return terminal.Columns("TOKEN\tUSER\tNAME\tROLE\tSTATE\tCREATED\tEXPIRES\tLAST USED", func(w io.Writer) {
				for _, t := range res.Msg.Tokens {
					state := "good"
					switch {
					case t.Revoked != nil:
						state = "revoked"
					case !now.Before(t.Expires.AsTime()):
						state = "expired"
					}
					if state != "good" && !old {
						continue
					}
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", t.Id, t.User, t.Name, roleWord(t.Role), state, terminal.Moment(t.Created), terminal.Moment(t.Expires), terminal.TimeOr(t.LastUsed, "never"))
				}
			})
		},
	}
	cmd.Flags().StringVar(&userName, "user", "", "of this user (admins)")
	cmd.Flags().BoolVar(&all, "all-users", false, "of all users (admins)")
	cmd.Flags().BoolVar(&old, "old", false, "list revoked and expired tokens, too")
	cmd.MarkFlagsMutuallyExclusive("user", "all-users")
	return cmd
}

func newTokenRevoke(s *setting.Settings) *cobra.Command {
	return &cobra.Command{
		Use:     "revoke TOKEN",
		Short:   "Revoke a token, by its identity or by its name",
		Example: `  linktrial token revoke nightly`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			res, err := newAccessClient(s.Orchestrator).RevokeToken(cmd.Context(), connect.NewRequest(&linktrialv1.RevokeTokenRequest{Id: args[0]}))
			if err != nil {
				return client.Error(s.Orchestrator, err)
			}
			fmt.Printf("Token %q of %s is revoked.\n", res.Msg.Token.Name, res.Msg.Token.User)
			return nil
		},
	}
}
