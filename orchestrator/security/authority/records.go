package authority

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"
	"time"

	"linktrial/orchestrator/security/authority/authoritydb"
)

// record is a certificate that was given and has not expired.
type record struct {
	node      string
	der       []byte
	notAfter  time.Time
	revoked   time.Time // zero: it is not
	revokedBy string
	reason    string
}

// records are the valid certificates, in memory: each call asks for one. Calls
// in progress are known too, so that they end with their certificate.
type records struct {
	mu       sync.Mutex
	bySerial map[string]*record
	calls    map[string]map[*call]struct{}
}

type call struct{ cancel context.CancelCauseFunc }

// errRevoked ends the calls of a node that is revoked meanwhile.
var errRevoked = errors.New("the certificate was revoked")

func (r *records) load(ctx context.Context, db *authoritydb.Queries, now time.Time) error {
	r.bySerial, r.calls = map[string]*record{}, map[string]map[*call]struct{}{}
	rows, err := db.ValidNodeCertificates(ctx, now)
	if err != nil {
		return fmt.Errorf("certificates of nodes: %w", err)
	}
	for _, row := range rows {
		r.bySerial[row.Serial] = fromRow(row)
	}
	return nil
}

func fromRow(row authoritydb.NodeCertificate) *record {
	x := &record{node: row.Node, der: row.Der, notAfter: row.ExpiresAt, revokedBy: row.RevokedBy, reason: row.Reason}
	if row.RevokedAt != nil {
		x.revoked = *row.RevokedAt
	}
	return x
}

func (r *records) add(serial string, x *record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bySerial[serial] = x
}

// issuedSince counts the certificates of a node that expire after a moment: all live for
// the same time, so those are the newest.
func (r *records) issuedSince(node string, expire time.Time) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, x := range r.bySerial {
		if x.node == node && x.notAfter.After(expire) {
			n++
		}
	}
	return n
}

// find is the record of exactly this certificate; nil: there is none.
func (r *records) find(cert *x509.Certificate) *record {
	r.mu.Lock()
	defer r.mu.Unlock()
	x := r.bySerial[cert.SerialNumber.Text(16)]
	if x == nil || !bytes.Equal(x.der, cert.Raw) {
		return nil
	}
	c := *x
	return &c
}

// valid reports whether a node has a certificate that is good now.
func (r *records) valid(node string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, x := range r.bySerial {
		if x.node == node && x.revoked.IsZero() && now.Before(x.notAfter) {
			return true
		}
	}
	return false
}

// revoke ends certificates and the calls that are made with them.
func (r *records) revoke(serials []string, at time.Time, by, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range serials {
		if x := r.bySerial[s]; x != nil {
			x.revoked, x.revokedBy, x.reason = at, by, reason
		}
		for c := range r.calls[s] {
			c.cancel(errRevoked)
		}
	}
}

// enter notes a call that is made with a certificate. Its context ends when
// the certificate is revoked; leave must be called after it.
func (r *records) enter(ctx context.Context, cert *x509.Certificate) (_ context.Context, leave func()) {
	serial := cert.SerialNumber.Text(16)
	c := &call{}
	ctx, c.cancel = context.WithCancelCause(ctx)
	r.mu.Lock()
	if r.calls[serial] == nil {
		r.calls[serial] = map[*call]struct{}{}
	}
	r.calls[serial][c] = struct{}{}
	if x := r.bySerial[serial]; x == nil || !x.revoked.IsZero() {
		c.cancel(errRevoked) // between the check and now
	}
	r.mu.Unlock()
	return ctx, func() {
		c.cancel(nil)
		r.mu.Lock()
		defer r.mu.Unlock()
		if delete(r.calls[serial], c); len(r.calls[serial]) == 0 {
			delete(r.calls, serial)
		}
	}
}

// prune forgets what has expired. What is asked for later is answered from the
// certificate itself.
func (r *records) prune(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for s, x := range r.bySerial {
		if now.After(x.notAfter) {
			delete(r.bySerial, s)
		}
	}
}
