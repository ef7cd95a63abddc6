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
	"linktrial/internal/unit"
)

func newAccessClient(base string) linktrialv1connect.AccessServiceClient {
	return linktrialv1connect.NewAccessServiceClient(client.HTTP(), base, connect.WithGRPC())
}

// passwords asks for passwords without echo, or reads them line by line.
type passwords struct {
	lines *bufio.Reader // nil: a person is asked
}

// maxLine bounds a line with a password, in bytes; no orchestrator takes one of more
// than 256.
const maxLine = 4096

func passwordsFrom(stdin bool) (*passwords, error) {
	if stdin {
		return &passwords{lines: bufio.NewReaderSize(os.Stdin, maxLine)}, nil
	}
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		return nil, errors.New("standard input is not a terminal: give the password with --password-stdin")
	}
	return &passwords{}, nil
}

// ask reads one password. With again it asks twice on a terminal, for a new password.
func (p *passwords) ask(prompt string, again bool) (string, error) {
	if p.lines != nil {
		line, err := p.lines.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			return "", fmt.Errorf("%s: the line on standard input is longer than %s, expected a password alone", strings.ToLower(prompt), unit.FormatBytes(maxLine))
		case err != nil && (!errors.Is(err, io.EOF) || len(line) == 0):
			return "", fmt.Errorf("%s: expected a line on standard input: %w", strings.ToLower(prompt), err)
		}
		return strings.TrimRight(string(line), "\r\n"), nil
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
		return "", errors.New("the two passwords differ: nothing was changed")
	}
	return first, err
}

func newLogin(s *setting.Settings) *cobra.Command {
	var stdin bool
	cmd := &cobra.Command{
		Use:     "login [NAME]",
		GroupID: setting.GroupPeople,
		Short:   "Log in to an orchestrator",
		Long: `Login asks for the password and keeps an API token for the orchestrator in your
config folder, readable by you alone. The token is valid for 30 days; 'linktrial
logout' revokes it. NAME is by default your user name on this machine. Where the account
has a second factor, login asks for a code of it; a recovery code does, too.

Scripts use a token of their own ('linktrial token create') in the environment
variable LINKTRIAL_TOKEN.`,
		Example: `  linktrial login anna --orchestrator https://10.20.0.10:7700
  linktrial login anna --password-stdin < password`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			here := "somebody"
			if u, err := user.Current(); err == nil {
				here = u.Username
			}
			name := here
			if len(args) == 1 {
				name = args[0]
			}
			required, err := loginRequired(cmd.Context(), s.Orchestrator)
			if err != nil {
				return err
			}
			if !required {
				fmt.Printf("The orchestrator at %s has no login: everybody may call it.\n", s.Orchestrator)
				return nil
			}
			p, err := passwordsFrom(stdin)
			if err != nil {
				return err
			}
			password, err := p.ask("Password of "+name, false)
			if err != nil {
				return err
			}
			return login(cmd.Context(), s.Orchestrator, name, password, here, func() (string, error) { return p.ask("Code of the second factor", false) })
		},
	}
	cmd.Flags().BoolVar(&stdin, "password-stdin", false, "read the password from standard input; where there is a second factor, its code is the second line")
	return cmd
}

// loginRequired reports whether an orchestrator has people log in. It fails where the
// password would be sent without encryption.
func loginRequired(ctx context.Context, base string) (bool, error) {
	u, err := url.Parse(base)
	if err != nil {
		return false, fmt.Errorf("--orchestrator: %w", err)
	}
	if !client.Private(u) {
		return false, fmt.Errorf("a password is not sent to %s without encryption: use its https:// address", base)
	}
	who, err := whoAmI(ctx, base)
	return who.GetLoginRequired(), err
}

// login logs in and keeps the token. Here is the name of this machine's user, which
// becomes a part of the token's name; code asks for a code where the user has a second
// factor.
func login(ctx context.Context, base, name, password, here string, code func() (string, error)) error {
	host, err := os.Hostname()
	if err != nil {
		host = "a computer"
	}
	req := &linktrialv1.LoginRequest{User: name, Password: password, TokenName: fmt.Sprintf("login of %s on %s", here, host)}
	res, err := newAccessClient(base).Login(ctx, connect.NewRequest(req))
	if err == nil && res.Msg.CodeNeeded {
		if req.Code, err = code(); err != nil {
			return err
		}
		if req.Code == "" {
			return errors.New("no code was given: the account has a second factor")
		}
		res, err = newAccessClient(base).Login(ctx, connect.NewRequest(req))
	}
	if err != nil {
		return loginError(base, err)
	}
	if err := client.KeepCredential(base, client.Credential{User: res.Msg.User, Token: res.Msg.Token}); err != nil {
		return err
	}
	fmt.Printf("Logged in at %s as %s (%s) until %s\n", base, res.Msg.User, roleWord(res.Msg.Role), terminal.Moment(res.Msg.Expires))
	if os.Getenv(client.TokenEnv) != "" {
		fmt.Printf("%s is set and has precedence: unset it to call as %s.\n", client.TokenEnv, res.Msg.User)
	}
	return nil
}

// loginError is [client.Error] for a login, whose refusal must not ask the user to
// log in.
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
		Use:     "logout",
		GroupID: setting.GroupPeople,
		Short:   "Log out of an orchestrator",
		Example: `  linktrial logout --orchestrator https://10.20.0.10:7700`,
		Args:    cobra.NoArgs,
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
				fmt.Printf("You are not logged in at %s.\n", s.Orchestrator)
				return nil
			}
			// The token of the login, also where LINKTRIAL_TOKEN has another.
			req := connect.NewRequest(&linktrialv1.LogoutRequest{})
			req.Header().Set("Authorization", "Bearer "+one.Token)
			_, err = newAccessClient(s.Orchestrator).Logout(cmd.Context(), req)
			if forget := client.KeepCredential(s.Orchestrator, client.Credential{}); forget != nil {
				return forget
			}
			if err != nil && connect.CodeOf(err) != connect.CodeUnauthenticated {
				return fmt.Errorf("the token is removed from this machine, but could not be revoked at the orchestrator and is valid until it expires: %w", client.Error(s.Orchestrator, err))
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
