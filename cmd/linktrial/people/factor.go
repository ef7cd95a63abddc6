package people

import (
	"fmt"
	"strings"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/setting"
)

func newFactor(s *setting.Settings) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "second-factor",
		Short: "Set up and remove second factors of logins",
		Long: `With a second factor, a login takes a code besides the password. An authenticator app
on a phone makes the codes from a secret and the time (TOTP, RFC 6238); it needs no
network.`,
	}
	cmd.AddCommand(newFactorSet(s), newFactorCodes(s), newFactorRemove(s))
	return cmd
}

// stdinFlag adds the flag that has passwords and codes come from standard input.
func stdinFlag(cmd *cobra.Command, stdin *bool, lines string) {
	cmd.Flags().BoolVar(stdin, "password-stdin", false, "read from standard input: "+lines)
}

func newFactorSet(s *setting.Settings) *cobra.Command {
	var stdin bool
	cmd := &cobra.Command{
		Use:   "set",
		Short: "Set up a second factor for your account",
		Long: `Set asks for your password and prints the secret, which an authenticator app takes as
a key. It asks for a code of the app, and prints recovery codes: each logs you in once,
when the phone is lost. The account page shows the secret as a QR code.

Your other sessions, and the tokens of your other logins, end.`,
		Example: `  linktrial user second-factor set`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := passwordsFrom(stdin)
			if err != nil {
				return err
			}
			password, err := p.ask("Password", false)
			if err != nil {
				return err
			}
			c := newAccessClient(s.Orchestrator)
			begun, err := c.BeginSecondFactor(cmd.Context(), connect.NewRequest(&linktrialv1.BeginSecondFactorRequest{Password: password}))
			if err != nil {
				return client.Error(s.Orchestrator, err)
			}
			fmt.Printf("Secret for the authenticator app: %s\nThe same as a URL:                %s\n", begun.Msg.Secret, begun.Msg.Url)
			code, err := p.ask("Code that the app shows", false)
			if err != nil {
				return err
			}
			done, err := c.ConfirmSecondFactor(cmd.Context(), connect.NewRequest(&linktrialv1.ConfirmSecondFactorRequest{Code: code}))
			if err != nil {
				return client.Error(s.Orchestrator, err)
			}
			fmt.Println("The second factor is set up: your next login asks for a code.")
			printRecoveryCodes(done.Msg.RecoveryCodes)
			return nil
		},
	}
	stdinFlag(cmd, &stdin, "the password on the first line, a code on the second, which is read after the secret was printed")
	return cmd
}

func printRecoveryCodes(codes []string) {
	fmt.Printf("Recovery codes, each good for one login without the app. They are shown only now: keep them apart from the phone.\n  %s\n", strings.Join(codes, "\n  "))
}

func newFactorCodes(s *setting.Settings) *cobra.Command {
	var stdin bool
	cmd := &cobra.Command{
		Use:     "codes",
		Short:   "Replace your recovery codes",
		Example: `  linktrial user second-factor codes`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			code, err := askCode(stdin)
			if err != nil {
				return err
			}
			res, err := newAccessClient(s.Orchestrator).RenewRecoveryCodes(cmd.Context(), connect.NewRequest(&linktrialv1.RenewRecoveryCodesRequest{Code: code}))
			if err != nil {
				return client.Error(s.Orchestrator, err)
			}
			printRecoveryCodes(res.Msg.RecoveryCodes)
			return nil
		},
	}
	stdinFlag(cmd, &stdin, "a code of the second factor")
	return cmd
}

func askCode(stdin bool) (string, error) {
	p, err := passwordsFrom(stdin)
	if err != nil {
		return "", err
	}
	return p.ask("Code of the second factor", false)
}

func newFactorRemove(s *setting.Settings) *cobra.Command {
	var stdin bool
	cmd := &cobra.Command{
		Use:   "remove [NAME]",
		Short: "Remove your second factor, or as an admin that of another user",
		Long: `Remove removes a second factor with its recovery codes. Your own takes a code of it or
a recovery code. Removing that of another user ends all sessions and API tokens of the
user.`,
		Example: `  linktrial user second-factor remove
  linktrial user second-factor remove dirk`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c := newAccessClient(s.Orchestrator)
			if len(args) == 1 {
				if _, err := c.RemoveUserSecondFactor(cmd.Context(), connect.NewRequest(&linktrialv1.RemoveUserSecondFactorRequest{Name: args[0]})); err != nil {
					return client.Error(s.Orchestrator, err)
				}
				fmt.Printf("%s has no second factor any more, and all sessions and API tokens ended.\n", args[0])
				return nil
			}
			code, err := askCode(stdin)
			if err != nil {
				return err
			}
			if _, err := c.RemoveSecondFactor(cmd.Context(), connect.NewRequest(&linktrialv1.RemoveSecondFactorRequest{Code: code})); err != nil {
				return client.Error(s.Orchestrator, err)
			}
			fmt.Println("Your account has no second factor any more.")
			return nil
		},
	}
	stdinFlag(cmd, &stdin, "a code of the second factor, or a recovery code")
	return cmd
}
