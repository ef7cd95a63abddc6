package people

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/timestamppb"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/setting"
	"linktrial/cmd/linktrial/terminal"
)

func newAudit(s *setting.Settings) *cobra.Command {
	var since string
	var asJSON bool
	var limit int32
	ask := &linktrialv1.ListAuditRequest{}
	cmd := &cobra.Command{
		Use:     "audit-log",
		GroupID: setting.GroupPeople,
		Short:   "List who did what, when and from where, oldest first; export and verify the audit log",
		Example: `  linktrial audit-log
  linktrial audit-log --since 7d --user dirk --outcome refused
  linktrial audit-log --since 2026-05-01 --action StartPlan --json
  linktrial audit-log verify`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return setting.UnknownCommand(cmd, args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if since != "" {
				at, err := parseSince(since, time.Now())
				if err != nil {
					return fmt.Errorf("--since: %w", err)
				}
				ask.Since = timestamppb.New(at)
			}
			if limit < 1 {
				return fmt.Errorf("--limit: %d, expected at least 1", limit)
			}
			entries, more, err := listAudit(cmd.Context(), s.Orchestrator, ask, int(limit))
			if err != nil {
				return err
			}
			if more {
				fmt.Fprintf(os.Stderr, "These are the newest %d entries; --limit lists more.\n", len(entries))
			}
			if asJSON {
				return printAuditJSON(entries)
			}
			return printAudit(entries)
		},
	}
	f := cmd.Flags()
	f.StringVar(&since, "since", "", `only entries since then: 24h or 7d ago, 2026-05-01, "2026-05-01 08:30" or RFC 3339`)
	f.StringVar(&ask.User, "user", "", "only entries of this user")
	f.StringVar(&ask.Action, "action", "", "only entries whose action contains this, such as StartPlan")
	f.StringVar(&ask.Outcome, "outcome", "", "only entries with this outcome: done, refused or failed")
	f.Int32Var(&limit, "limit", 200, "the largest number of entries; the newest are listed")
	f.BoolVar(&asJSON, "json", false, "print one JSON object a line")
	cmd.AddCommand(newAuditExport(s), newAuditVerify(s))
	return cmd
}

// listAudit returns the newest entries, oldest first, and reports whether there are
// more than limit. It asks for them in pages.
func listAudit(ctx context.Context, base string, ask *linktrialv1.ListAuditRequest, limit int) ([]*linktrialv1.AuditEntry, bool, error) {
	const page = 1000 // the orchestrator's bound
	c := newAccessClient(base)
	var all []*linktrialv1.AuditEntry
	more := true
	for more && len(all) < limit {
		ask.Limit = int32(min(limit-len(all), page))
		res, err := c.ListAudit(ctx, connect.NewRequest(ask))
		if err != nil {
			return nil, false, client.Error(base, err)
		}
		all = append(all, res.Msg.Entries...)
		if more = res.Msg.More; more {
			ask.Before = all[len(all)-1].Id
		}
	}
	slices.Reverse(all)
	return all, more, nil
}

func printAuditJSON(entries []*linktrialv1.AuditEntry) error {
	for _, e := range entries {
		b, err := protojson.MarshalOptions{UseProtoNames: true, EmitDefaultValues: true}.Marshal(e)
		if err != nil {
			return err
		}
		fmt.Println(string(b))
	}
	return nil
}

func printAudit(entries []*linktrialv1.AuditEntry) error {
	return terminal.Columns("TIME\tUSER\tVIA\tADDRESS\tACTION\tOUTCOME\tOF WHAT", func(w io.Writer) {
		for _, e := range entries {
			what := e.Detail
			if e.Message != "" {
				if what != "" {
					what += ": "
				}
				what += e.Message
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", terminal.Moment(e.At), cmp.Or(e.User, "–"), e.Via, e.Address, e.Action, e.Outcome, what)
		}
	})
}

// parseSince parses a time in the past: how long ago, or a date.
func parseSince(text string, now time.Time) (time.Time, error) {
	if d, err := parseLife(text); err == nil {
		return now.Add(-d), nil
	}
	if t, ok := terminal.ParseTime(text); ok {
		return t, nil
	}
	if t, err := time.Parse(time.DateOnly, text); err == nil {
		return t, nil
	}
	return time.Time{}, fmt.Errorf("%q, expected how long ago (24h, 7d) or when (2026-05-01, \"2026-05-01 08:30\", RFC 3339)", text)
}
