package people

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/user"
	"strings"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/setting"
	"linktrial/cmd/linktrial/terminal"
)

func newAccessClient(base string) linktrialv1connect.AccessServiceClient {
	return linktrialv1connect.NewAccessServiceClient(client.HTTP(), base, connect.WithGRPC())
}

// passwords asks for them without echo, or reads them line by line.
type passwords struct {
	lines *bufio.Reader // nil: a person is asked
}

func passwordsFrom(stdin bool) (*passwords, error) {
	if stdin {
		return &passwords{lines: bufio.NewReader(os.Stdin)}, nil
	}
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		return nil, errors.New("standard input is no terminal to ask for a password at: give it with --password-stdin")
	}
	return &passwords{}, nil
}

// ask reads one password; again asks twice, for a new one that nobody sees.
func (p *passwords) ask(prompt string, again bool) (string, error) {
	if p.lines != nil {
		line, err := p.lines.ReadString('\n')
		if err != nil && (!errors.Is(err, io.EOF) || line == "") {
			return "", fmt.Errorf("%s: expected a line on standard input: %w", strings.ToLower(prompt), err)
		}
		return strings.TrimRight(line, "\r\n"), nil
	}
	read := func(prompt string) (string, error) {
		fmt.Fprintf(os.Stderr, "%s: ", prompt)
		b, err := term.ReadPassword(int(os.Stdin.Fd()))
		fmt.Fprintln(os.Stderr)
		if err != nil {
			return "", fmt.Errorf("read the password: %w", err)
		}
		return string(b), nil
	}
	first, err := read(prompt)
	if err != nil || !again {
		return first, err
	}
	second, err := read(prompt + " again")
	if err == nil && first != second {
		return "", errors.New("the two are different: nothing was changed")
	}
	return first, err
}

func newLogin(s *setting.Settings) *cobra.Command {
	var stdin bool
	cmd := &cobra.Command{
		Use:   "login [NAME]",
		Short: "Log in to an orchestrator that asks who calls",
		Long: `Login asks for the password and keeps an API token for the orchestrator in the
user's config folder, readable by that user alone. It is good for 30 days, and
'linktrial logout' ends it. NAME is by default the name of the user here.

A script takes a token of its own ('linktrial token create') and has it in
LINKTRIAL_TOKEN.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			u, err := url.Parse(s.Orchestrator)
			if err != nil {
				return fmt.Errorf("--orchestrator: %w", err)
			}
			if !client.Private(u) {
				return fmt.Errorf("a password is not sent to %s: others could read it on the way; use its https:// address", s.Orchestrator)
			}
			who, err := whoAmI(cmd.Context(), s.Orchestrator)
			if err != nil {
				return err
			}
			if !who.LoginRequired {
				fmt.Printf("The orchestrator at %s asks nobody who they are: there is nothing to log in to.\n", s.Orchestrator)
				return nil
			}
			here := "somebody"
			if u, err := user.Current(); err == nil {
				here = u.Username
			}
			name := here
			if len(args) == 1 {
				name = args[0]
			}
			p, err := passwordsFrom(stdin)
			if err != nil {
				return err
			}
			password, err := p.ask("Password of "+name, false)
			if err != nil {
				return err
			}
			host, err := os.Hostname()
			if err != nil {
				host = "a computer"
			}
			res, err := newAccessClient(s.Orchestrator).Login(cmd.Context(), connect.NewRequest(&linktrialv1.LoginRequest{User: name, Password: password, TokenName: fmt.Sprintf("login of %s on %s", here, host)}))
			if err != nil {
				return loginError(s.Orchestrator, err)
			}
			if err := client.KeepCredential(s.Orchestrator, client.Credential{User: res.Msg.User, Token: res.Msg.Token}); err != nil {
				return err
			}
			fmt.Printf("Logged in at %s as %s (%s) until %s\n", s.Orchestrator, res.Msg.User, roleWord(res.Msg.Role), terminal.LocalTime(res.Msg.Expires))
			if os.Getenv(client.TokenEnv) != "" {
				fmt.Printf("%s is set and comes first: unset it to be %s.\n", client.TokenEnv, res.Msg.User)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&stdin, "password-stdin", false, "read the password from standard input")
	return cmd
}

// loginError is [client.Error] where a refusal is about the password, not about
// having none.
func loginError(base string, err error) error {
	var ce *connect.Error
	if errors.As(err, &ce) && ce.Code() == connect.CodeUnauthenticated {
		return errors.New(ce.Message())
	}
	return client.Error(base, err)
}

func whoAmI(ctx context.Context, base string) (*linktrialv1.WhoAmIResponse, error) {
	res, err := newAccessClient(base).WhoAmI(ctx, connect.NewRequest(&linktrialv1.WhoAmIRequest{}))
	if err != nil {
		return nil, client.Error(base, err)
	}
	return res.Msg, nil
}

func newLogout(s *setting.Settings) *cobra.Command {
	return &cobra.Command{
		Use:   "logout",
		Short: "End the login at an orchestrator",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			at, err := client.PlaceOf(s.Orchestrator)
			if err != nil {
				return err
			}
			c, err := client.ReadCredentials()
			if err != nil {
				return err
			}
			one, ok := c.Orchestrators[at]
			if !ok {
				fmt.Printf("Nobody is logged in at %s here.\n", s.Orchestrator)
				return nil
			}
			// The one that was kept, also where LINKTRIAL_TOKEN has another.
			req := connect.NewRequest(&linktrialv1.LogoutRequest{})
			req.Header().Set("Authorization", "Bearer "+one.Token)
			_, err = newAccessClient(s.Orchestrator).Logout(cmd.Context(), req)
			if forget := client.KeepCredential(s.Orchestrator, client.Credential{}); forget != nil {
				return forget
			}
			if err != nil && connect.CodeOf(err) != connect.CodeUnauthenticated {
				return fmt.Errorf("the token is forgotten here, but the orchestrator could not be told, and knows it until it expires: %w", client.Error(s.Orchestrator, err))
			}
			fmt.Printf("%s is logged out at %s.\n", one.User, s.Orchestrator)
			return nil
		},
	}
}

var roleWords = map[linktrialv1.Role]string{linktrialv1.Role_ROLE_VIEWER: "viewer", linktrialv1.Role_ROLE_DIRECTOR: "director", linktrialv1.Role_ROLE_ADMIN: "admin"}

func roleWord(r linktrialv1.Role) string {
	if w, ok := roleWords[r]; ok {
		return w
	}
	return "no role"
}

func parseRole(text string) (linktrialv1.Role, error) {
	for r, w := range roleWords {
		if w == text {
			return r, nil
		}
	}
	return 0, fmt.Errorf("role %q, expected viewer, director or admin", text)
}
