package signing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"linktrial/executor/runsheet"
	"linktrial/internal/driverdigest"
	"linktrial/internal/signature"
	"linktrial/orchestrator/campaign/nodes"
	"linktrial/orchestrator/catalog"
	"linktrial/orchestrator/security/signing/signingdb"
	"linktrial/orchestrator/store"
)

// Config is what a [Trust] works on.
type Config struct {
	Keys    *Keyring
	Store   *store.Store
	Catalog *catalog.Catalog
	Nodes   func() []nodes.Node // as they have registered
	Logger  *slog.Logger
}

// Trust decides which drivers new run sheets accept. Any number of goroutines may use it.
type Trust struct {
	cfg     Config
	db      *signingdb.Queries
	folders driverdigest.Cache
}

// New returns a Trust.
func New(cfg Config) *Trust {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Trust{cfg: cfg, db: signingdb.New(cfg.Store)}
}

// Keys are the public keys that agents are to trust, oldest first.
func (t *Trust) Keys() []signature.Endorsed { return t.cfg.Keys.Keys() }

// SignAssignment signs an encoded assignment.
func (t *Trust) SignAssignment(encoded []byte) signature.Signature {
	return t.cfg.Keys.SignAssignment(encoded)
}

// SignEvidence is [Keyring.SignEvidence].
func (t *Trust) SignEvidence(content []byte) (armoured string, by signature.PublicKey, err error) {
	return t.cfg.Keys.SignEvidence(content)
}

// Rotate makes a new key, which signs sheets and assignments from now on. It returns all keys,
// oldest first.
func (t *Trust) Rotate() ([]signature.Endorsed, error) {
	if err := t.cfg.Keys.Rotate(); err != nil {
		return nil, err
	}
	keys := t.Keys()
	t.cfg.Logger.Info("a new key signs run sheets", "key", keys[len(keys)-1].Key.ID())
	return keys, nil
}

// SignedSheet returns a run's sheet and its signature, which is zero for a run
// that was queued before sheets were signed. The error is [pgx.ErrNoRows] where
// there is no such run.
func (t *Trust) SignedSheet(ctx context.Context, run string) ([]byte, signature.Signature, error) {
	sheet, err := t.cfg.Store.RunSheet(ctx, run)
	if err != nil {
		return nil, signature.Signature{}, err
	}
	row, err := t.cfg.Store.RunSignature(ctx, run)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return nil, signature.Signature{}, err
	}
	return sheet, signature.Signature{KeyID: row.KeyID, Bytes: row.Signature}, nil
}

// own is the digest of the orchestrator's driver of a protocol, or nothing
// where it has none.
func (t *Trust) own(protocol string) (driverdigest.Digest, error) {
	dir := t.cfg.Catalog.DriverDir(protocol)
	if dir == "" {
		return "", nil
	}
	f, err := t.folders.Folder(dir)
	if err != nil {
		return "", fmt.Errorf("driver %s of the orchestrator: %w", protocol, err)
	}
	return f.Digest, nil
}

// AddDigests writes into every treatment of the sheets that can be run the digests of
// the drivers that are accepted now: the orchestrator's own, and those that people
// approved. It returns a problem, in words for people, for every protocol of which
// no driver can be accepted.
func (t *Trust) AddDigests(ctx context.Context, sheets []*runsheet.Sheet) (problems []string, err error) {
	approved, err := t.db.Approvals(ctx)
	if err != nil {
		return nil, fmt.Errorf("approved drivers: %w", err)
	}
	known := map[string][]string{}
	for _, s := range sheets {
		for i := range s.Treatments {
			tr := &s.Treatments[i]
			if tr.Missing != "" {
				continue
			}
			digests := func(protocol string) []string {
				list, ok := known[protocol]
				if !ok {
					var why error
					if list, why = t.accepted(protocol, approved); why != nil {
						problems = append(problems, why.Error())
					}
					known[protocol] = list
				}
				return slices.Clone(list)
			}
			tr.Digests = digests(tr.Protocol)
			for k := range tr.Via {
				tr.Via[k].Digests = digests(tr.Via[k].Protocol)
			}
		}
	}
	return problems, nil
}

func (t *Trust) accepted(protocol string, approved []signingdb.DriverApproval) ([]string, error) {
	var out []string
	own, err := t.own(protocol)
	if err == nil && own != "" {
		out = append(out, string(own))
	}
	for _, a := range approved {
		if a.Protocol == protocol && !slices.Contains(out, a.Digest) {
			out = append(out, a.Digest)
		}
	}
	if len(out) > 0 && err != nil {
		t.cfg.Logger.Warn("a driver has no digest; sheets name the approved ones alone", "protocol", protocol, "error", err)
		err = nil
	}
	return out, err
}

// ErrRefused reports that an approval cannot be given or withdrawn as asked.
var ErrRefused = errors.New("refused")

// Approve makes new sheets accept a driver of a protocol with the digest.
func (t *Trust) Approve(ctx context.Context, protocol, digest, reason, by string) error {
	if err := t.known(protocol, digest); err != nil {
		return err
	}
	if err := oneLine(reason, by); err != nil {
		return err
	}
	if is, err := t.isApproved(ctx, protocol, digest); err != nil || is {
		return err
	}
	if err := t.db.InsertApproval(ctx, signingdb.InsertApprovalParams{Protocol: protocol, Digest: digest, Approved: true, Reason: reason, GivenBy: by}); err != nil {
		return fmt.Errorf("approve driver: %w", err)
	}
	t.cfg.Logger.Info("driver approved", "protocol", protocol, "digest", digest, "by", by, "reason", reason)
	return nil
}

// Unapprove withdraws an approval, for new sheets.
func (t *Trust) Unapprove(ctx context.Context, protocol, digest, by string) error {
	if err := oneLine(by); err != nil {
		return err
	}
	is, err := t.isApproved(ctx, protocol, digest)
	if err != nil {
		return err
	}
	if !is {
		if own, err := t.own(protocol); err == nil && string(own) == digest {
			return fmt.Errorf("%w: %s@%s is the orchestrator's own driver and needs no approval; it is accepted until the orchestrator has another", ErrRefused, protocol, digest)
		}
		return fmt.Errorf("%w: %s@%s is not approved; 'linktrial protocol approvals' lists what is", ErrRefused, protocol, digest)
	}
	if err := t.db.InsertApproval(ctx, signingdb.InsertApprovalParams{Protocol: protocol, Digest: digest, GivenBy: by}); err != nil {
		return fmt.Errorf("unapprove driver: %w", err)
	}
	t.cfg.Logger.Info("approval of a driver withdrawn", "protocol", protocol, "digest", digest, "by", by)
	return nil
}

func (t *Trust) known(protocol, digest string) error {
	if t.cfg.Catalog.Manifest(protocol) == nil {
		return fmt.Errorf("%w: no protocol %q; there are %s", ErrRefused, protocol, strings.Join(t.cfg.Catalog.Protocols(), ", "))
	}
	if _, err := driverdigest.Parse(digest); err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return nil
}

func (t *Trust) isApproved(ctx context.Context, protocol, digest string) (bool, error) {
	approved, err := t.db.Approvals(ctx)
	if err != nil {
		return false, fmt.Errorf("approved drivers: %w", err)
	}
	return slices.ContainsFunc(approved, func(a signingdb.DriverApproval) bool { return a.Protocol == protocol && a.Digest == digest }), nil
}

// maxText bounds a reason, and the name of who gives it, in bytes.
const maxText = 500

func oneLine(texts ...string) error {
	for _, s := range texts {
		if len(s) > maxText || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) || strings.ToValidUTF8(s, "") != s {
			return fmt.Errorf("%w: %.60q, expected one line of text, at most %d bytes", ErrRefused, s, maxText)
		}
	}
	return nil
}
