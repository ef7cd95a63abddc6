package node

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"linktrial/agents/agent"
	nodeidentity "linktrial/agents/identity"
	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/setting"
	"linktrial/cmd/linktrial/terminal"
	"linktrial/internal/identity"
	"linktrial/internal/unit"
)

func newNode(s *setting.Settings) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "node",
		GroupID: setting.GroupNodes,
		Short:   "Enrol nodes, set up their radios, list their identities, and revoke them",
	}
	cmd.AddCommand(newNodeCode(s), newNodeEnrol(s), newNodeToken(s), newNodeList(s), newNodeRevoke(s), newNodeRadio(s))
	return cmd
}

func nodeClient(s *setting.Settings) linktrialv1connect.NodeServiceClient {
	return linktrialv1connect.NewNodeServiceClient(client.HTTP(), s.Orchestrator, connect.WithGRPC())
}

func newNodeToken(s *setting.Settings) *cobra.Command {
	var name string
	var valid time.Duration
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Make a one-time token for a node's enrolment, and print it",
		Example: `  linktrial node token --name client
  linktrial node token --name client --valid 30m > client.token`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if valid < time.Second {
				return fmt.Errorf("--valid %s, expected a second or more, such as 1h", valid)
			}
			res, err := nodeClient(s).CreateNodeToken(cmd.Context(), connect.NewRequest(&linktrialv1.CreateNodeTokenRequest{Name: name, ValidSeconds: int64(valid / time.Second)}))
			if err != nil {
				return client.Error(s.Orchestrator, err)
			}
			fmt.Println(res.Msg.Token) // alone on standard output, for scripts
			fmt.Fprintf(os.Stderr, "The token is valid for one enrolment, until %s. On the node:\n  linktrial node enrol --orchestrator %s --token-file FILE\n", unit.Moment(res.Msg.Expires.AsTime()), s.Orchestrator)
			return nil
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "name of the node")
	cmd.Flags().DurationVar(&valid, "valid", time.Hour, "how long the token is valid")
	setting.Require(cmd, "name")
	return cmd
}

func newNodeEnrol(s *setting.Settings) *cobra.Command {
	var token, file, state string
	cmd := &cobra.Command{
		Use:   "enrol",
		Short: "Make this machine a node of an orchestrator, with a one-time token",
		Long: `Enrol makes a key on this machine, has the orchestrator's authority sign it, and
keeps key and certificate in the node's state folder. The token identifies the
orchestrator; nothing is sent to another.`,
		Example: `  linktrial node enrol --orchestrator https://10.20.0.10:7700 --token-file client.token`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t, err := readTokenFlags(token, file)
			if err != nil {
				return err
			}
			if state == "" {
				state = filepath.Join(s.Data, "agents", t.Node)
			}
			id, err := nodeidentity.Enrol(cmd.Context(), nodeidentity.Enrolment{Orchestrator: s.Orchestrator, Token: t, Dir: state,
				Trust: func(keys []*linktrialv1.SigningKey) error { return agent.KeepSigningKeys(state, keys) }})
			if err != nil {
				return err
			}
			fmt.Printf("This machine is enrolled as %s until %s; its agent renews the certificate.\n  linktrial agent --name %s --orchestrator %s --role … --radio-address …\n", id.Name(), unit.Moment(id.Expires()), id.Name(), s.Orchestrator)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&token, "token", "", "the token (other users of this machine can see it in the list of processes; --token-file avoids that)")
	f.StringVar(&file, "token-file", "", "file with the token; - reads standard input")
	f.StringVar(&state, "state", "", "the node's state folder (default: in the data folder, by the node's name)")
	cmd.MarkFlagsMutuallyExclusive("token", "token-file")
	cmd.MarkFlagsOneRequired("token", "token-file")
	return cmd
}

func readTokenFlags(token, file string) (identity.Token, error) {
	switch file {
	case "":
		return identity.ParseToken(token)
	case "-":
		return identity.ReadTokenFrom(os.Stdin, "standard input")
	}
	return identity.ReadToken(file)
}

func newNodeRevoke(s *setting.Settings) *cobra.Command {
	var reason string
	var tokensOnly bool
	cmd := &cobra.Command{
		Use:   "revoke NAME",
		Short: "Revoke a node's certificates and open tokens at once",
		Example: `  linktrial node revoke client --reason "laptop stolen"
  linktrial node revoke client --tokens-only`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			res, err := nodeClient(s).RevokeNode(cmd.Context(), connect.NewRequest(&linktrialv1.RevokeNodeRequest{Name: args[0], Reason: reason, TokensOnly: tokensOnly}))
			if err != nil {
				return client.Error(s.Orchestrator, err)
			}
			if tokensOnly {
				fmt.Printf("The open tokens of %s are revoked (%d). Its certificate stays valid.\n", args[0], res.Msg.Tokens)
				return nil
			}
			fmt.Printf("%s is revoked (certificates: %d, open tokens: %d)\n", args[0], res.Msg.Certificates, res.Msg.Tokens)
			return nil
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "the reason, which is recorded")
	cmd.Flags().BoolVar(&tokensOnly, "tokens-only", false, "revoke open tokens only, such as one that was made in error; the certificate stays valid")
	cmd.MarkFlagsMutuallyExclusive("reason", "tokens-only") // nobody is revoked
	return cmd
}

func newNodeList(s *setting.Settings) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the identities of nodes: enrolled, expires, revoked, last contact",
		Long: `List the identities of nodes: their certificates and open tokens.

  STATE          token created, enrolled, expired, revoked or not enrolled
  ENROLLED       when the node enrolled
  EXPIRES        end of its certificate, which a connected agent renews before
  LAST CONTACT   "connected", or when the node was last connected
  REMARK         by whom it was revoked, and why; tokens that are open

'linktrial nodes' lists radio, clock, disk and drivers instead.`,
		Example: `  linktrial node list`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return listNodes(cmd.Context(), s)
		},
	}
}

func listNodes(ctx context.Context, s *setting.Settings) error {
	res, err := nodeClient(s).ListNodeIdentities(ctx, connect.NewRequest(&linktrialv1.ListNodeIdentitiesRequest{}))
	if err != nil {
		return client.Error(s.Orchestrator, err)
	}
	if len(res.Msg.Nodes) == 0 {
		fmt.Println("No node yet. Make a token for one: linktrial node token --name NAME")
		return nil
	}
	return terminal.Columns("NAME\tSTATE\tENROLLED\tEXPIRES\tLAST CONTACT\tREMARK", func(w io.Writer) {
		for _, n := range res.Msg.Nodes {
			contact := terminal.TimeOr(n.LastContact, "–")
			if n.Connected {
				contact = "connected"
			}
			var remarks []string
			if n.State == linktrialv1.NodeIdentity_STATE_REVOKED {
				r := "revoked " + terminal.TimeOr(n.Revoked, "–") + " by " + n.RevokedBy
				if n.Reason != "" {
					r += ": " + n.Reason
				}
				remarks = append(remarks, r)
			}
			for _, t := range n.OpenTokens {
				remarks = append(remarks, fmt.Sprintf("a token of %s is open until %s", t.CreatedBy, terminal.Moment(t.Expires)))
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", n.Name, identityWord(n.State), terminal.TimeOr(n.Enrolled, "–"), terminal.TimeOr(n.Expires, "–"), contact, strings.Join(remarks, "; "))
		}
	})
}

func identityWord(st linktrialv1.NodeIdentity_State) string {
	switch st {
	case linktrialv1.NodeIdentity_STATE_INVITED:
		return "token created"
	case linktrialv1.NodeIdentity_STATE_ENROLLED:
		return "enrolled"
	case linktrialv1.NodeIdentity_STATE_EXPIRED:
		return "expired"
	case linktrialv1.NodeIdentity_STATE_REVOKED:
		return "revoked"
	}
	return "not enrolled"
}
