package authority

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"linktrial/internal/atomicfile"
	"linktrial/internal/identity"
)

// issuedLife is how long tokens are good for that wait in files for nodes that
// start by themselves.
const issuedLife = 24 * time.Hour

// NodePlaceholder stands for the node's name in the folder that [Authority.Issue] writes
// to: nodes that may see their own folder alone do not get the others' tokens.
const NodePlaceholder = "{node}"

// Issue writes a one-time token to DIR/NAME.token (mode 0600) for each node
// that has neither a valid certificate nor an open token there already.
// [NodePlaceholder] in dir is replaced by NAME.
func (a *Authority) Issue(ctx context.Context, nodes []string, dir string) error {
	if err := a.CheckMode(); err != nil {
		return err
	}
	for _, n := range nodes {
		if err := identity.CheckName(n); err != nil {
			return fmt.Errorf("%w: %w", ErrName, err)
		}
	}
	open, err := a.db.OpenNodeTokens(ctx, a.now())
	if err != nil {
		return fmt.Errorf("tokens for nodes: %w", err)
	}
	hashes := map[string]bool{}
	for _, t := range open {
		hashes[string(t.Hash)] = true
	}
	for _, n := range nodes {
		if a.records.valid(n, a.now()) {
			continue
		}
		path := filepath.Join(strings.ReplaceAll(dir, NodePlaceholder, n), n+".token")
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("tokens for nodes: %w", err)
		}
		t, err := identity.ReadToken(path)
		if err == nil {
			if h := t.Hash(); t.Node == n && hashes[string(h[:])] && t.Fingerprint == identity.Fingerprint(a.keys.cert) {
				continue
			}
		} else if pe := (*fs.PathError)(nil); errors.As(err, &pe) && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		t, expires, err := a.CreateToken(ctx, n, issuedLife, "serve --issue-tokens")
		if err != nil {
			return err
		}
		if err := atomicfile.Write(path, []byte(t.String()+"\n"), 0o600); err != nil {
			return fmt.Errorf("token for node %s: %w", n, err)
		}
		a.log.Info("one-time token written for a node", "node", n, "file", path, "valid_until", expires)
	}
	return nil
}
