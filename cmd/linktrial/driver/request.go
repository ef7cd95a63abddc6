package driver

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/setting"
	"linktrial/cmd/linktrial/terminal"
	"linktrial/orchestrator/signing"
)

func newRequest(s *setting.Settings) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "request",
		GroupID: setting.GroupPeople,
		Short:   "List, confirm and refuse changes that take a second admin",
		Long: `Where the orchestrator was started with --second-approval, rotating the signing key and
approving a driver are requested by one admin and confirmed by another.`,
	}
	cmd.AddCommand(newRequestList(s), newRequestConfirm(s), newRequestRefuse(s))
	return cmd
}

// printRequested says that a change waits for a second person.
func printRequested(what string, r *linktrialv1.ChangeRequest) {
	fmt.Printf("%s waits for a second admin as request %s until %s: linktrial request confirm %s\n", what, r.Id, terminal.Moment(r.Expires), r.Id)
}

// changeText is what a request is about, in words.
func changeText(r *linktrialv1.ChangeRequest) string {
	switch r.Action {
	case signing.RotateKey:
		return "replace signing key " + r.KeyId
	case signing.ApproveDriver:
		return fmt.Sprintf("approve driver %s@%s (%s)", r.Protocol, r.Digest, cmp.Or(r.Reason, "without a reason"))
	}
	return r.Action
}

func changeRequests(ctx context.Context, base string) (*linktrialv1.ListChangeRequestsResponse, error) {
	res, err := newTrustClient(base).ListChangeRequests(ctx, connect.NewRequest(&linktrialv1.ListChangeRequestsRequest{}))
	if err != nil {
		return nil, client.Error(base, err)
	}
	return res.Msg, nil
}

func newRequestList(s *setting.Settings) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List what was requested, the pending requests first",
		Example: `  linktrial request list`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := changeRequests(cmd.Context(), s.Orchestrator)
			if err != nil {
				return err
			}
			if all.ValidSeconds == 0 && len(all.Requests) == 0 {
				fmt.Println("Changes take no second admin here; 'linktrial serve --second-approval' requires one.")
				return nil
			}
			return terminal.Columns("REQUEST\tSTATE\tBY\tUNTIL\tDECIDED BY\tCHANGE", func(w io.Writer) {
				for _, r := range all.Requests {
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", r.Id, r.State, r.RequestedBy, terminal.Moment(r.Expires), r.DecidedBy, changeText(r))
				}
			})
		},
	}
}

// findRequest returns the request with an identity or with the beginning of one.
func findRequest(ctx context.Context, base, id string) (*linktrialv1.ChangeRequest, error) {
	all, err := changeRequests(ctx, base)
	if err != nil {
		return nil, err
	}
	var found []*linktrialv1.ChangeRequest
	for _, r := range all.Requests {
		if id != "" && strings.HasPrefix(r.Id, id) {
			found = append(found, r)
		}
	}
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("there is no request %q: 'linktrial request list' names them", id)
	case 1:
		return found[0], nil
	}
	return nil, fmt.Errorf("%d requests begin with %q: give more of the identity", len(found), id)
}

func newRequestConfirm(s *setting.Settings) *cobra.Command {
	return &cobra.Command{
		Use:   "confirm REQUEST",
		Short: "Confirm what another admin requested: the change is made",
		Long: `Confirm makes the change that another admin requested. It prints what is changed; the
orchestrator makes exactly that, or nothing. The identity of a request is the beginning
of the hash of what it changes: compare it with the one that the other admin has.`,
		Example: `  linktrial request confirm 1f3a09c2bb47d0e5`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := findRequest(cmd.Context(), s.Orchestrator, args[0])
			if err != nil {
				return err
			}
			fmt.Printf("Requested by %s: %s\nSHA-256: %s\n", r.RequestedBy, changeText(r), hex.EncodeToString(r.Hash))
			if _, err := newTrustClient(s.Orchestrator).ConfirmChange(cmd.Context(), connect.NewRequest(&linktrialv1.ConfirmChangeRequest{Id: r.Id, Hash: r.Hash, By: client.UserName()})); err != nil {
				return client.Error(s.Orchestrator, err)
			}
			fmt.Println("Confirmed: the change is made.")
			return nil
		},
	}
}

func newRequestRefuse(s *setting.Settings) *cobra.Command {
	return &cobra.Command{
		Use:     "refuse REQUEST",
		Short:   "Refuse what another admin requested, or withdraw your own request",
		Example: `  linktrial request refuse 1f3a09c2bb47d0e5`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := findRequest(cmd.Context(), s.Orchestrator, args[0])
			if err != nil {
				return err
			}
			if _, err := newTrustClient(s.Orchestrator).RefuseChange(cmd.Context(), connect.NewRequest(&linktrialv1.RefuseChangeRequest{Id: r.Id, By: client.UserName()})); err != nil {
				return client.Error(s.Orchestrator, err)
			}
			fmt.Printf("Request %s of %s is refused: %s is not done.\n", r.Id, r.RequestedBy, changeText(r))
			return nil
		},
	}
}
