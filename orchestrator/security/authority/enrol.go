package authority

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"linktrial/internal/identity"
	"linktrial/internal/quota"
	"linktrial/internal/unit"
	"linktrial/orchestrator/security/authority/authoritydb"
	"linktrial/orchestrator/store"
)

// How long a token can be used.
const (
	usualTokenLife = time.Hour
	MaxTokenLife   = 30 * 24 * time.Hour // at most
)

// CreateToken makes a one-time token for a node and keeps its hash. Errors are
// [ErrName] and [ErrPlain] besides the store's.
func (a *Authority) CreateToken(ctx context.Context, node string, valid time.Duration, by string) (identity.Token, time.Time, error) {
	if err := a.CheckMode(); err != nil {
		return identity.Token{}, time.Time{}, err
	}
	if err := identity.CheckName(node); err != nil {
		return identity.Token{}, time.Time{}, fmt.Errorf("%w: %w", ErrName, err)
	}
	if valid == 0 {
		valid = usualTokenLife
	}
	if valid < time.Second || valid > MaxTokenLife {
		return identity.Token{}, time.Time{}, fmt.Errorf("%w: a token that is valid for %s, expected 1s to %s", ErrName, valid, MaxTokenLife)
	}
	t := identity.NewToken(node, identity.Fingerprint(a.keys.cert))
	h := t.Hash()
	now := a.now()
	if err := a.db.AddNodeToken(ctx, authoritydb.AddNodeTokenParams{Hash: h[:], Node: node, CreatedAt: now, CreatedBy: by, ExpiresAt: now.Add(valid)}); err != nil {
		return identity.Token{}, time.Time{}, fmt.Errorf("keep the token: %w", err)
	}
	a.log.Info("one-time token made for a node", "node", node, "valid_until", now.Add(valid), "by", by)
	return t, now.Add(valid), nil
}

// Enrol gives a certificate for a token's secret. Errors are [ErrToken],
// [ErrRequest] and [ErrPlain] besides the store's. Nothing is changed where one
// is returned.
func (a *Authority) Enrol(ctx context.Context, secret, csr []byte, from string) (node string, cert *x509.Certificate, err error) {
	if err := a.CheckMode(); err != nil {
		return "", nil, err
	}
	a.change.Lock()
	defer a.change.Unlock()
	now := a.now()
	h := identity.HashSecret(secret)
	again := false
	var ended []string
	err = a.cfg.Store.InTx(ctx, func(tx store.Conn) error {
		q := authoritydb.New(tx)
		t, err := q.LockNodeToken(ctx, h[:])
		if errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("%w: it is not one that this orchestrator made; make one with 'linktrial node token --name NAME'", ErrToken)
		} else if err != nil {
			return fmt.Errorf("find the token: %w", err)
		}
		node = t.Node
		if cert, err = a.keys.nodeCertificate(node, csr, now); err != nil {
			return err
		}
		if t.WithdrawnAt != nil {
			return fmt.Errorf("%w: it was withdrawn at %s, when the node was revoked or enrolled with another; make another with 'linktrial node token --name %s'", ErrToken, unit.Moment(*t.WithdrawnAt), node)
		}
		if t.UsedAt != nil {
			first, err := q.CertificateOfToken(ctx, h[:])
			if err != nil {
				return fmt.Errorf("find the token's certificate: %w", err)
			}
			if !bytes.Equal(first.KeyHash, keyHash(cert)) || first.RevokedAt != nil {
				return fmt.Errorf("%w: it was used already, at %s from %s; if that was not %s itself, revoke it with 'linktrial node revoke %s', and make another token with 'linktrial node token --name %s'",
					ErrToken, unit.Moment(*t.UsedAt), t.UsedFrom, node, node, node)
			}
			again = true
			cert, err = x509.ParseCertificate(first.Der)
			return err
		}
		if !now.Before(t.ExpiresAt) {
			return fmt.Errorf("%w: it expired at %s, and it is %s now; make another with 'linktrial node token --name %s'", ErrToken, unit.Moment(t.ExpiresAt), unit.Moment(now), node)
		}
		if err := q.UseNodeToken(ctx, authoritydb.UseNodeTokenParams{Hash: h[:], UsedAt: &now, UsedFrom: from}); err != nil {
			return fmt.Errorf("use the token: %w", err)
		}
		if _, err := q.WithdrawNodeTokens(ctx, authoritydb.WithdrawNodeTokensParams{Node: node, At: now}); err != nil {
			return fmt.Errorf("withdraw the node's other tokens: %w", err)
		}
		// One name is one node: what enrolled before under the name is another
		// machine, or this one after it has lost its key.
		if ended, err = q.RevokeNodeCertificates(ctx, authoritydb.RevokeNodeCertificatesParams{Node: node, At: now, RevokedBy: "enrolment", Reason: superseded}); err != nil {
			return fmt.Errorf("end earlier certificates: %w", err)
		}
		return a.record(ctx, q, node, cert, h[:], now)
	})
	if err != nil {
		a.log.Warn("enrolment refused", "node", node, "from", from, "reason", err)
		return "", nil, err
	}
	a.records.revoke(ended, now, "enrolment", superseded)
	a.remember(node, cert)
	a.log.Info("node enrolled", "node", node, "from", from, "serial", cert.SerialNumber.Text(16), "until", cert.NotAfter, "repeated", again)
	return node, cert, nil
}

const superseded = "the node enrolled again"

// A node gets at most maxRenewals certificates within renewalsWithin.
const (
	maxRenewals    = 20
	renewalsWithin = 24 * time.Hour
)

// Renew gives a node that has shown its certificate another, for the key in
// the request. The one before stays good until it expires: the node may lose
// power before it has kept the new one.
func (a *Authority) Renew(ctx context.Context, node string, csr []byte) (*x509.Certificate, error) {
	if err := a.CheckMode(); err != nil {
		return nil, err
	}
	now := a.now()
	cert, err := a.keys.nodeCertificate(node, csr, now)
	if err != nil {
		return nil, err
	}
	a.change.Lock()
	defer a.change.Unlock()
	if a.records.issuedSince(node, cert.NotAfter.Add(-renewalsWithin)) >= maxRenewals {
		return nil, quota.Exceeded(quota.Certificates, fmt.Errorf("%w: %s has had %d certificates within %s, and one a month is what a node needs: see on the node why its agent does not keep them", ErrRequest, node, maxRenewals, renewalsWithin))
	}
	if err := a.cfg.Store.InTx(ctx, func(tx store.Conn) error { return a.record(ctx, authoritydb.New(tx), node, cert, nil, now) }); err != nil {
		return nil, err
	}
	a.remember(node, cert)
	a.records.prune(now)
	a.log.Info("certificate of a node renewed", "node", node, "serial", cert.SerialNumber.Text(16), "until", cert.NotAfter)
	return cert, nil
}

func (a *Authority) record(ctx context.Context, q *authoritydb.Queries, node string, cert *x509.Certificate, token []byte, now time.Time) error {
	err := q.AddNodeCertificate(ctx, authoritydb.AddNodeCertificateParams{Serial: cert.SerialNumber.Text(16), Node: node, Der: cert.Raw, KeyHash: keyHash(cert),
		TokenHash: token, IssuedAt: now, ExpiresAt: cert.NotAfter})
	if err != nil {
		return fmt.Errorf("keep the certificate: %w", err)
	}
	return nil
}

func (a *Authority) remember(node string, cert *x509.Certificate) {
	a.records.add(cert.SerialNumber.Text(16), &record{node: node, der: cert.Raw, notAfter: cert.NotAfter})
}

// Revoke ends a node's certificates and open tokens, and the calls that are
// made with them. It returns how many there were; [ErrUnknown] where none.
func (a *Authority) Revoke(ctx context.Context, node, by, reason string) (certificates, tokens int, err error) {
	if err := a.CheckMode(); err != nil {
		return 0, 0, err
	}
	a.change.Lock()
	defer a.change.Unlock()
	now := a.now()
	var serials []string
	err = a.cfg.Store.InTx(ctx, func(tx store.Conn) error {
		q := authoritydb.New(tx)
		var err error
		if serials, err = q.RevokeNodeCertificates(ctx, authoritydb.RevokeNodeCertificatesParams{Node: node, At: now, RevokedBy: by, Reason: reason}); err != nil {
			return fmt.Errorf("revoke certificates: %w", err)
		}
		n, err := q.WithdrawNodeTokens(ctx, authoritydb.WithdrawNodeTokensParams{Node: node, At: now})
		tokens = int(n)
		if err != nil {
			return fmt.Errorf("withdraw tokens: %w", err)
		}
		return nil
	})
	if err != nil {
		return 0, 0, err
	}
	if len(serials) == 0 && tokens == 0 {
		return 0, 0, fmt.Errorf("%w with a valid certificate or an open token: %q; 'linktrial node list' shows them", ErrUnknown, node)
	}
	a.records.revoke(serials, now, by, reason)
	a.log.Warn("node revoked", "node", node, "by", by, "reason", reason, "certificates", len(serials), "tokens", tokens)
	return len(serials), tokens, nil
}

// WithdrawTokens ends a node's open tokens alone. It returns how many there
// were; [ErrUnknown] where none.
func (a *Authority) WithdrawTokens(ctx context.Context, node, by string) (int, error) {
	if err := a.CheckMode(); err != nil {
		return 0, err
	}
	a.change.Lock()
	defer a.change.Unlock()
	n, err := a.db.WithdrawNodeTokens(ctx, authoritydb.WithdrawNodeTokensParams{Node: node, At: a.now()})
	if err != nil {
		return 0, fmt.Errorf("withdraw tokens: %w", err)
	}
	if n == 0 {
		return 0, fmt.Errorf("%w with an open token: %q; 'linktrial node list' shows them", ErrUnknown, node)
	}
	a.log.Warn("tokens of a node withdrawn", "node", node, "by", by, "tokens", n)
	return int(n), nil
}
