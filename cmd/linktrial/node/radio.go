package node

import (
	"errors"
	"fmt"
	"strings"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/setting"
	"linktrial/cmd/linktrial/terminal"
)

func newNodeRadio(s *setting.Settings) *cobra.Command {
	var r linktrialv1.NodeRadio
	var routes []string
	var remove bool
	cmd := &cobra.Command{
		Use:   "radio NAME",
		Short: "Set up the radio of a connected node, or remove it",
		Long: `Radio has a connected node set up the interface that leads to its radio: the node
tries address, MTU and routes, and keeps them over restarts. What does not work is
taken back. The node refuses an interface that carries the way to the orchestrator,
or that another program configures, and an address that another machine has.

What is left out is proposed: the role that no other radio has, and an address in
10.77.0.0/24, or another private network where a node uses that one otherwise.
A relay can have two radios: run it once for each interface.

--remove makes the interface what it was before; without --interface all of the node.`,
		Example: `  linktrial nodes --interfaces alpha
  linktrial node radio alpha --interface enx00e04c680001
  linktrial node radio alpha --interface eth1 --address 10.77.0.1/24 --role client --mtu 1400
  linktrial node radio alpha --remove`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !remove && r.Interface == "" {
				return fmt.Errorf("--interface is missing: name the one that leads to the radio; 'linktrial nodes --interfaces %s' lists them", args[0])
			}
			var err error
			if r.Routes, err = parseRoutes(routes); err != nil {
				return err
			}
			c := linktrialv1connect.NewFleetServiceClient(client.HTTP(), s.Orchestrator, connect.WithGRPC())
			if remove {
				res, err := c.RemoveRadio(cmd.Context(), connect.NewRequest(&linktrialv1.RemoveRadioRequest{Node: args[0], Interface: r.Interface}))
				if err != nil {
					return client.Error(s.Orchestrator, err)
				}
				return outcome(args[0], res.Msg.Done, res.Msg.Text)
			}
			res, err := c.SetRadio(cmd.Context(), connect.NewRequest(&linktrialv1.SetRadioRequest{Node: args[0], Radio: &r}))
			if err != nil {
				return client.Error(s.Orchestrator, err)
			}
			return outcome(args[0], res.Msg.Done, res.Msg.Text)
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.Interface, "interface", "", "network interface that leads to the radio")
	f.StringVar(&r.Address, "address", "", "this node's address on the radio network with the length of that, such as 10.77.0.1/24 (default: proposed)")
	f.StringVar(&r.Role, "role", "", "client, relay or server (default: one that no other node's radio has)")
	f.StringVar(&r.Profile, "profile", "", "profile of the radio (default: it is real and has no name)")
	f.Int32Var(&r.MtuBytes, "mtu", 0, "largest packet of the interface, in bytes (default: as it is)")
	f.StringArrayVar(&routes, "route", nil, "NETWORK=ADDRESS, a network that is reached over another node; can be given several times")
	f.BoolVar(&remove, "remove", false, "give the interface back as it was before")
	for _, name := range []string{"address", "role", "profile", "mtu", "route"} {
		cmd.MarkFlagsMutuallyExclusive("remove", name)
	}
	return cmd
}

func parseRoutes(all []string) (out []*linktrialv1.RadioRoute, err error) {
	for _, s := range all {
		to, via, ok := strings.Cut(s, "=")
		if !ok {
			return nil, fmt.Errorf("--route %.100q, expected NETWORK=ADDRESS such as 10.77.1.0/24=10.77.0.2", s)
		}
		out = append(out, &linktrialv1.RadioRoute{To: to, Via: via})
	}
	return out, nil
}

// outcome writes what the node says of an order; one that it did not carry out is an error.
func outcome(node string, done bool, text string) error {
	text = fmt.Sprintf("%s: %s", node, terminal.Printable(text))
	if !done {
		return errors.New(text)
	}
	fmt.Println(text)
	return nil
}
