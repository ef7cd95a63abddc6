package signing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"linktrial/executor/runsheet"
	"linktrial/internal/driverdigest"
	"linktrial/internal/signature"
	"linktrial/orchestrator/campaign"
	"linktrial/orchestrator/catalog"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/dbsqlc"
)

// Config is what a [Trust] works on.
type Config struct {
	Keys    *Keyring
	Store   *store.Store
	Catalog *catalog.Catalog
	Nodes   func() []campaign.Node // as they have registered
	Logger  *slog.Logger
}

// Trust says what new run sheets accept. Any number of goroutines may use it.
type Trust struct {
	cfg     Config
	folders driverdigest.Cache
}

// New returns a Trust.
func New(cfg Config) *Trust {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Trust{cfg: cfg}
}

// Keys are the public keys that agents are to trust, oldest first.
func (t *Trust) Keys() []signature.Endorsed { return t.cfg.Keys.Keys() }

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

// Name has sheets name, for every treatment that they can run, the drivers that
// are accepted now: the orchestrator's own, and those that people approved. The
// problems, for people, are of drivers that nothing can be accepted of.
func (t *Trust) Name(ctx context.Context, sheets []*runsheet.Sheet) (problems []string, err error) {
	approved, err := t.cfg.Store.Approvals(ctx)
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
			names, ok := known[tr.Protocol]
			if !ok {
				var why error
				if names, why = t.accepted(tr.Protocol, approved); why != nil {
					problems = append(problems, why.Error())
				}
				known[tr.Protocol] = names
			}
			tr.Digests = slices.Clone(names)
		}
	}
	return problems, nil
}

func (t *Trust) accepted(protocol string, approved []dbsqlc.DriverApproval) ([]string, error) {
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

// ErrRefused says that an approval cannot be given or taken back as asked.
var ErrRefused = errors.New("refused")

// Approve has new sheets accept a digest of a protocol's driver.
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
	if err := t.cfg.Store.InsertApproval(ctx, dbsqlc.InsertApprovalParams{Protocol: protocol, Digest: digest, Approved: true, Reason: reason, GivenBy: by}); err != nil {
		return fmt.Errorf("approve driver: %w", err)
	}
	t.cfg.Logger.Info("driver approved", "protocol", protocol, "digest", digest, "by", by, "reason", reason)
	return nil
}

// Unapprove takes an approval back, for new sheets.
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
	if err := t.cfg.Store.InsertApproval(ctx, dbsqlc.InsertApprovalParams{Protocol: protocol, Digest: digest, GivenBy: by}); err != nil {
		return fmt.Errorf("unapprove driver: %w", err)
	}
	t.cfg.Logger.Info("approval of a driver taken back", "protocol", protocol, "digest", digest, "by", by)
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
	approved, err := t.cfg.Store.Approvals(ctx)
	if err != nil {
		return false, fmt.Errorf("approved drivers: %w", err)
	}
	return slices.ContainsFunc(approved, func(a dbsqlc.DriverApproval) bool { return a.Protocol == protocol && a.Digest == digest }), nil
}

// maxText bounds what people say.
const maxText = 500

func oneLine(texts ...string) error {
	for _, s := range texts {
		if len(s) > maxText || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) || strings.ToValidUTF8(s, "") != s {
			return fmt.Errorf("%w: %.60q, expected one line of text, at most %d bytes", ErrRefused, s, maxText)
		}
	}
	return nil
}
