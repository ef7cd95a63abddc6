package people

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/setting"
	"linktrial/internal/auditchain"
	"linktrial/internal/inputfile"
	"linktrial/internal/signature"
	"linktrial/internal/unit"
)

// maxExport bounds the file of an export that is read whole, in bytes.
const maxExport = 4 << 30

func newAuditExport(s *setting.Settings) *cobra.Command {
	return &cobra.Command{
		Use:   "export",
		Short: "Print the whole audit log, a JSON object a line, with hashes and signed heads",
		Long: `Print the whole audit log, oldest first, a JSON object a line, with the hashes of its
entries and the signed heads. 'linktrial audit-log verify FILE' checks the file. Keep exports
away from the orchestrator: a later log is held against one with --against.`,
		Example: `  linktrial audit-log export > audit-2026-05.jsonl
  linktrial audit-log export | jq 'select(.outcome == "refused")'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return exportAudit(cmd.Context(), s.Orchestrator, cmd.OutOrStdout())
		},
	}
}

func newAuditVerify(s *setting.Settings) *cobra.Command {
	var trusted, against string
	cmd := &cobra.Command{
		Use:   "verify [FILE]",
		Short: "Check that no entry of the audit log was changed or removed",
		Long: `Verify checks the audit log of the orchestrator, or the file of an export, from its first
entry to its last: each entry's hash, which covers its content and the hash of the entry
before, and the heads that the orchestrator signed. It names the first entry that was
changed or is missing. The exit code is 0 where the log is intact, and 1 where it is not.

The signatures are checked with the keys that the orchestrator, or the file, names.
--trusted-keys names keys that you got in another way. --against takes an earlier export:
the log must go on from its last entry.`,
		Example: `  linktrial audit-log verify
  linktrial audit-log verify audit-2026-05.jsonl --trusted-keys trusted-keys
  linktrial audit-log verify --against audit-2026-04.jsonl`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			keys, err := trustedKeys(trusted)
			if err != nil {
				return err
			}
			expect, err := earlierExport(against, keys)
			if err != nil {
				return err
			}
			var c *auditchain.Check
			var named []signature.Endorsed
			what := "the audit log of " + s.Orchestrator
			if len(args) > 0 {
				what = args[0]
				c, named, err = verifyFile(args[0], keys, expect)
			} else {
				c, named, err = verifyOrchestrator(cmd.Context(), s.Orchestrator, keys, expect)
			}
			var p *auditchain.Problem
			if errors.As(err, &p) {
				fmt.Fprintf(cmd.OutOrStdout(), "%s is not intact: %s.\n", what, p.Text)
				return setting.ExitCode(1)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
			printWhole(cmd.OutOrStdout(), what, c, len(keys) == 0, named)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&trusted, "trusted-keys", "", "file of the public keys whose signatures count, as 'linktrial signing keys' prints it")
	f.StringVar(&against, "against", "", "file of an earlier export, whose last entry must be in this log")
	return cmd
}

func printWhole(w io.Writer, what string, c *auditchain.Check, named bool, keys []signature.Endorsed) {
	if c.Entries == 0 {
		fmt.Fprintf(w, "%s has no entries.\n", what)
		return
	}
	fmt.Fprintf(w, "%s is intact: %d entries, the last one is entry %d of %s, and its head is signed.\n", what, c.Entries, c.Last.ID, unit.Moment(c.Last.At))
	if !named {
		return
	}
	fmt.Fprintln(w, "The signatures were checked with these keys, which come with the log; --trusted-keys names your own:")
	for _, k := range keys {
		fmt.Fprintf(w, "  %s\n", k.Key)
	}
}

// trustedKeys are the keys of a file; without a name there are none.
func trustedKeys(file string) (signature.Keys, error) {
	if file == "" {
		return nil, nil
	}
	b, err := inputfile.Read(file, signature.MaxFile)
	if err != nil {
		return nil, fmt.Errorf("--trusted-keys: %w", err)
	}
	list, err := signature.ParseKeys(file, b)
	return signature.NewKeys(list...), err
}

// earlierExport checks an earlier export, and has a check expect its last entry.
func earlierExport(file string, keys signature.Keys) (func(*auditchain.Check) error, error) {
	if file == "" {
		return nil, nil
	}
	c, _, err := verifyFile(file, keys, nil)
	if err != nil {
		return nil, fmt.Errorf("--against %s: %w", file, err)
	}
	if c.Entries == 0 {
		return nil, fmt.Errorf("--against %s: it has no entries", file)
	}
	return func(later *auditchain.Check) error {
		return later.Expect(c.Last.ID, c.Last.Hash, "is the last one of "+file)
	}, nil
}

func verifyFile(file string, keys signature.Keys, expect func(*auditchain.Check) error) (*auditchain.Check, []signature.Endorsed, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() || st.Size() > maxExport {
		return nil, nil, errors.Join(err, errors.New("expected a regular file of at most 4 GiB"))
	}
	c, h, err := auditchain.Verify(f, keys, expect)
	return c, h.Keys, err
}

func verifyOrchestrator(ctx context.Context, base string, keys signature.Keys, expect func(*auditchain.Check) error) (*auditchain.Check, []signature.Endorsed, error) {
	named, err := auditKeys(ctx, base)
	if err != nil {
		return nil, nil, err
	}
	c := auditchain.NewCheck(auditchain.Trusting(keys, named))
	if expect != nil {
		if err := expect(c); err != nil {
			return nil, nil, err
		}
	}
	if err := readAudit(ctx, base, c.Line); err != nil {
		return nil, nil, err
	}
	return c, named, c.Complete()
}

func exportAudit(ctx context.Context, base string, to io.Writer) error {
	named, err := auditKeys(ctx, base)
	if err != nil {
		return err
	}
	b := bufio.NewWriter(to)
	w, err := auditchain.NewWriter(b, auditchain.Header{Exported: time.Now(), Keys: named})
	if err != nil {
		return err
	}
	if err := readAudit(ctx, base, w.Line); err != nil {
		return err
	}
	return b.Flush()
}

// auditKeys are the keys with which an orchestrator signs, and has signed.
func auditKeys(ctx context.Context, base string) ([]signature.Endorsed, error) {
	c := linktrialv1connect.NewTrustServiceClient(client.HTTP(), base, connect.WithGRPC())
	res, err := c.ListSigningKeys(ctx, connect.NewRequest(&linktrialv1.ListSigningKeysRequest{}))
	if err != nil {
		return nil, client.Error(base, err)
	}
	var out []signature.Endorsed
	for _, k := range res.Msg.Keys {
		public, err := signature.NewPublicKey(k.PublicKey)
		if err != nil {
			return nil, fmt.Errorf("the orchestrator's answer: %w", err)
		}
		out = append(out, signature.Endorsed{Key: public, By: k.EndorsedBy, Endorsement: k.Endorsement})
	}
	return out, nil
}

// readAudit visits the entries and heads of an orchestrator's log, page by page.
func readAudit(ctx context.Context, base string, visit func(auditchain.Line) error) error {
	c := newAccessClient(base)
	for after, more := int64(0), true; more; {
		res, err := c.ExportAudit(ctx, connect.NewRequest(&linktrialv1.ExportAuditRequest{After: after}))
		if err != nil {
			return client.Error(base, err)
		}
		entries, heads, err := auditLines(res.Msg)
		if err != nil {
			return fmt.Errorf("the orchestrator's answer: %w", err)
		}
		if err := auditchain.Merge(entries, heads, visit); err != nil {
			return err
		}
		if more = res.Msg.More; more && len(entries) == 0 {
			return errors.New("the orchestrator's answer: an empty page, and more after it")
		} else if more {
			after = entries[len(entries)-1].ID
		}
	}
	return nil
}

func auditLines(m *linktrialv1.ExportAuditResponse) (entries []auditchain.Entry, heads []auditchain.Head, err error) {
	for _, e := range m.Entries {
		hash, err := auditchain.ParseHash(e.Hash)
		if err != nil {
			return nil, nil, fmt.Errorf("entry %d: %w", e.Id, err)
		}
		entries = append(entries, auditchain.Entry{ID: e.Id, At: e.At.AsTime(), User: e.User, Via: e.Via, Address: e.Address, Action: e.Action, Detail: e.Detail, Outcome: e.Outcome, Message: e.Message, Hash: hash})
	}
	for _, h := range m.Heads {
		hash, err := auditchain.ParseHash(h.Hash)
		if err != nil {
			return nil, nil, fmt.Errorf("head of entry %d: %w", h.Entry, err)
		}
		heads = append(heads, auditchain.Head{Entry: h.Entry, Hash: hash, Signed: h.Signed.AsTime(), Signature: signature.Signature{KeyID: h.KeyId, Bytes: h.Signature}})
	}
	return entries, heads, nil
}
