package people

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/setting"
	"linktrial/cmd/linktrial/terminal"
	"linktrial/internal/inputfile"
	"linktrial/orchestrator/security/access"
)

func newUser(s *setting.Settings) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "user",
		GroupID: setting.GroupPeople,
		Short:   "Add and list users, and change their roles and passwords",
		Long: `Roles: a viewer sees everything except users and the audit log; a director also
plans, starts and commands runs; an admin also manages users and nodes.`,
	}
	cmd.AddCommand(newUserAdd(s), newUserList(s), newUserRole(s), newUserPassword(s), newUserDisable(s, true), newUserDisable(s, false), newFactor(s))
	return cmd
}

func newUserAdd(s *setting.Settings) *cobra.Command {
	var roleName string
	var stdin bool
	cmd := &cobra.Command{
		Use:   "add NAME",
		Short: "Add a user; on the orchestrator's machine also the first admin",
		Long: `Add adds a user and asks for the first password.

Where there is no admin yet, nobody can log in to add one. Then the running
orchestrator keeps a one-time setup token in the file "setup-token" of its data
folder, and this command, run where that file can be read (see --data), makes
the first admin with it.`,
		Example: `  linktrial user add anna --role admin
  linktrial user add dirk --role director --password-stdin < password`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			role, err := parseRole(roleName)
			if err != nil {
				return fmt.Errorf("--role: %w", err)
			}
			setup := ""
			// Where nobody is logged in, the error must say what to do.
			if role == linktrialv1.Role_ROLE_ADMIN || !loggedIn(s.Orchestrator) {
				if setup, err = setupToken(client.Trusted.Folders()); err != nil {
					return err
				}
			}
			p, err := passwordsFrom(stdin)
			if err != nil {
				return err
			}
			password, err := p.ask("Password for "+args[0], true)
			if err != nil {
				return err
			}
			c := newAccessClient(s.Orchestrator)
			req := connect.NewRequest(&linktrialv1.AddUserRequest{Name: args[0], Role: role, Password: password})
			if setup != "" {
				req.Header().Set("Authorization", "Bearer "+setup)
			}
			_, err = c.AddUser(cmd.Context(), req)
			if setup != "" && connect.CodeOf(err) == connect.CodeUnauthenticated && loggedIn(s.Orchestrator) {
				// The data folder belongs to another orchestrator than the one that is called.
				_, err = c.AddUser(cmd.Context(), connect.NewRequest(&linktrialv1.AddUserRequest{Name: args[0], Role: role, Password: password}))
			}
			if err != nil {
				return client.Error(s.Orchestrator, err)
			}
			fmt.Printf("%s is %s now. To log in: linktrial login %s\n", args[0], article(roleName), args[0])
			return nil
		},
	}
	cmd.Flags().StringVar(&roleName, "role", "viewer", "viewer, director or admin")
	cmd.Flags().BoolVar(&stdin, "password-stdin", false, "read the password from standard input")
	return cmd
}

func article(role string) string {
	if role == "admin" {
		return "an admin"
	}
	return "a " + role
}

// setupToken returns the setup token of the first data folder that has one, or "".
func setupToken(folders []string) (string, error) {
	for _, dir := range folders {
		b, err := inputfile.Read(filepath.Join(dir, access.SetupFile), maxLine)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		case err != nil:
			return "", fmt.Errorf("setup token: %w", err)
		default:
			return strings.TrimSpace(string(b)), nil
		}
	}
	return "", nil
}

func loggedIn(base string) bool {
	at, err := client.PlaceOf(base)
	if err != nil {
		return false
	}
	c, err := client.ReadCredentials()
	return os.Getenv(client.TokenEnv) != "" || err == nil && c.Orchestrators[at].Token != ""
}

func newUserList(s *setting.Settings) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the users",
		Example: `  linktrial user list`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			res, err := newAccessClient(s.Orchestrator).ListUsers(cmd.Context(), connect.NewRequest(&linktrialv1.ListUsersRequest{}))
			if err != nil {
				return client.Error(s.Orchestrator, err)
			}
			return terminal.Columns("NAME\tROLE\tSTATE\tSECOND FACTOR\tADDED\tLAST LOGIN\tSESSIONS\tTOKENS", func(w io.Writer) {
				for _, u := range res.Msg.Users {
					state := "enabled"
					if u.Disabled {
						state = "disabled"
					}
					factor := "none"
					if u.SecondFactor {
						factor = "set"
					}
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%d\n", u.Name, roleWord(u.Role), state, factor, terminal.Moment(u.Created), terminal.TimeOr(u.LastLogin, "never"), u.Sessions, u.Tokens)
				}
			})
		},
	}
}

func newUserRole(s *setting.Settings) *cobra.Command {
	return &cobra.Command{
		Use:     "role NAME ROLE",
		Short:   "Set the role of a user: viewer, director or admin",
		Example: `  linktrial user role dirk director`,
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			role, err := parseRole(args[1])
			if err != nil {
				return err
			}
			_, err = newAccessClient(s.Orchestrator).SetUserRole(cmd.Context(), connect.NewRequest(&linktrialv1.SetUserRoleRequest{Name: args[0], Role: role}))
			if err != nil {
				return client.Error(s.Orchestrator, err)
			}
			fmt.Printf("%s is %s now.\n", args[0], article(args[1]))
			return nil
		},
	}
}

func newUserPassword(s *setting.Settings) *cobra.Command {
	var stdin bool
	cmd := &cobra.Command{
		Use:   "password [NAME]",
		Short: "Change your password, or as an admin that of another user",
		Long: `Password changes a password and ends all sessions and API tokens of the user, but the
login that you change your own with. Without NAME it changes your own, and asks for
the current one first; with --password-stdin that is the first line.`,
		Example: `  linktrial user password
  linktrial user password dirk --password-stdin < password`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := passwordsFrom(stdin)
			if err != nil {
				return err
			}
			c := newAccessClient(s.Orchestrator)
			if len(args) == 1 {
				password, err := p.ask("New password of "+args[0], true)
				if err != nil {
					return err
				}
				if _, err := c.SetUserPassword(cmd.Context(), connect.NewRequest(&linktrialv1.SetUserPasswordRequest{Name: args[0], Password: password})); err != nil {
					return client.Error(s.Orchestrator, err)
				}
				fmt.Printf("The password of %s is changed, and all sessions ended.\n", args[0])
				return nil
			}
			current, err := p.ask("Current password", false)
			if err != nil {
				return err
			}
			password, err := p.ask("New password", true)
			if err != nil {
				return err
			}
			if _, err := c.ChangePassword(cmd.Context(), connect.NewRequest(&linktrialv1.ChangePasswordRequest{Current: current, Password: password})); err != nil {
				return client.Error(s.Orchestrator, err)
			}
			fmt.Println("The password is changed, and all sessions ended.")
			return nil
		},
	}
	cmd.Flags().BoolVar(&stdin, "password-stdin", false, "read the password from standard input; your own: the current one on the first line, the new one on the second")
	return cmd
}

func newUserDisable(s *setting.Settings, disable bool) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "disable NAME",
		Short:   "Disable a user: sessions end, and tokens are refused",
		Example: `  linktrial user disable dirk`,
		Args:    cobra.ExactArgs(1),
	}
	done := "%s is disabled: sessions have ended, and tokens are refused.\n"
	if !disable {
		cmd.Use, cmd.Short, done = "enable NAME", "Enable a disabled user again", "%s is enabled.\n"
		cmd.Example = "  linktrial user enable dirk"
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		_, err := newAccessClient(s.Orchestrator).SetUserDisabled(cmd.Context(), connect.NewRequest(&linktrialv1.SetUserDisabledRequest{Name: args[0], Disabled: disable}))
		if err != nil {
			return client.Error(s.Orchestrator, err)
		}
		fmt.Printf(done, args[0])
		return nil
	}
	return cmd
}
