package identity

import (
	"context"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"connectrpc.com/connect"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/internal/atomicfile"
	"linktrial/internal/identity"
	"linktrial/internal/inputfile"
)

// Enrolment is one enrolment of a node.
type Enrolment struct {
	Orchestrator string // URL, https
	Token        identity.Token
	Dir          string // the node's state folder; made where it is missing
	// Trust is called with the keys that sign run sheets before the identity is
	// kept; where it fails, so does the enrolment, and can be tried again; nil: the
	// keys are not kept.
	Trust func([]*linktrialv1.SigningKey) error
	Now   func() time.Time // nil: time.Now
}

// ErrRefused reports that the orchestrator refused: trying again with the same
// token does not help.
var ErrRefused = errors.New("enrolment refused")

// refusal is a final error with the orchestrator's text.
type refusal string

func (r refusal) Error() string        { return string(r) }
func (r refusal) Is(target error) bool { return target == ErrRefused }

// enrolLimit bounds an enrolment, in real time.
const enrolLimit = 30 * time.Second

// Enrol makes a key, has it signed, and keeps both with the authority's
// certificate. The secret is sent only to the orchestrator whose authority has
// the token's fingerprint. Where an error is returned the node is as it was;
// one that wraps [ErrRefused] is final.
func Enrol(ctx context.Context, e Enrolment) (*Identity, error) {
	if e.Now == nil {
		e.Now = time.Now
	}
	u, err := url.Parse(e.Orchestrator)
	if err != nil || u.Host == "" || u.Scheme != "https" {
		return nil, fmt.Errorf("%w: orchestrator %q, expected a URL that begins with https://: tokens and certificates are not for plain connections", ErrRefused, e.Orchestrator)
	}
	if err := os.MkdirAll(e.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("state folder: %w", err)
	}
	key, err := e.pendingKey()
	if err != nil {
		return nil, err
	}
	csr, err := request(key, e.Token.Node)
	if err != nil {
		return nil, fmt.Errorf("certificate request: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, enrolLimit)
	defer cancel()
	t := transport(e.tls())
	defer t.CloseIdleConnections()
	c := linktrialv1connect.NewEnrolmentServiceClient(&http.Client{Transport: t}, e.Orchestrator, connect.WithGRPC())
	res, err := c.Enrol(ctx, connect.NewRequest(&linktrialv1.EnrolRequest{TokenSecret: e.Token.Secret[:], Csr: csr}))
	if err != nil {
		return nil, e.failure(ctx, err)
	}
	i := &Identity{dir: e.Dir, now: e.Now, key: key}
	if i.authority, err = x509.ParseCertificate(res.Msg.Authority); err != nil {
		return nil, fmt.Errorf("the orchestrator's answer: %w", err)
	}
	if identity.Fingerprint(i.authority) != e.Token.Fingerprint {
		return nil, fmt.Errorf("the orchestrator's answer: %w", identity.ErrOtherAuthority)
	}
	if err := i.accept(res.Msg.Certificate, e.Token.Node); err != nil {
		return nil, err
	}
	if e.Trust != nil {
		if err := e.Trust(res.Msg.SigningKeys); err != nil {
			return nil, fmt.Errorf("keys that sign run sheets: %w", err)
		}
	}
	if err := i.write(); err != nil {
		return nil, err
	}
	if err := os.Remove(filepath.Join(e.Dir, pendingFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("identity of the node: %w", err)
	}
	return i, nil
}

// pendingKey is the key of an enrolment that was begun, or a new one. It is
// kept before it is used: without it, a token whose answer was lost would be
// used up for nothing.
func (e *Enrolment) pendingKey() (crypto.Signer, error) {
	path := filepath.Join(e.Dir, pendingFile)
	if b, err := inputfile.Read(path, maxFile); err == nil {
		block, _ := pem.Decode(b)
		if key, err := parseKey(block); err == nil {
			return key, nil
		}
	}
	key, err := newKey()
	if err != nil {
		return nil, fmt.Errorf("key of the node: %w", err)
	}
	b, err := keyPEM(key)
	if err == nil {
		err = atomicfile.Write(path, b, 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("key of the node: %w", err)
	}
	return key, nil
}

// tls trusts the authority that the other side shows if its fingerprint is the
// token's.
func (e *Enrolment) tls() *tls.Config {
	c := clientTLS(nil, e.Now)
	c.VerifyConnection = func(cs tls.ConnectionState) error {
		for _, cert := range cs.PeerCertificates[1:] {
			if identity.Fingerprint(cert) == e.Token.Fingerprint {
				return identity.VerifyOrchestrator(cs, cert, e.Now())
			}
		}
		return fmt.Errorf("%w: the token is of an authority with fingerprint %s, and none such is shown", identity.ErrOtherAuthority, identity.FormatFingerprint(e.Token.Fingerprint))
	}
	return c
}

// failure puts what went wrong into a sentence.
func (e *Enrolment) failure(ctx context.Context, err error) error {
	var ce *connect.Error
	if errors.Is(err, identity.ErrOtherAuthority) {
		if errors.As(err, &ce) {
			err = ce.Unwrap() // its code, "unavailable", has no place in the sentence
		}
		return fmt.Errorf("%w: what answers at %s is %w; check the URL, and make the token at that orchestrator", ErrRefused, e.Orchestrator, err)
	}
	if te := (*identity.TimeError)(nil); errors.As(err, &te) {
		return fmt.Errorf("%w: %w", ErrRefused, explainTime(ctx, e.Orchestrator, e.tls(), te))
	}
	if errors.As(err, &ce) {
		switch ce.Code() {
		case connect.CodeUnauthenticated, connect.CodeInvalidArgument, connect.CodeFailedPrecondition, connect.CodePermissionDenied:
			return refusal(ce.Message())
		case connect.CodeUnimplemented:
			return fmt.Errorf("%w: what answers at %s is no orchestrator that enrols nodes", ErrRefused, e.Orchestrator)
		}
	}
	if x := identity.Explain(e.Orchestrator, err); identity.IsTransport(x) {
		return fmt.Errorf("%w: %w", ErrRefused, x)
	}
	return fmt.Errorf("enrol at %s: %w", e.Orchestrator, err)
}

// ExplainTime asks the orchestrator for its time where a certificate is not in
// its own, and reports whose clock is wrong. Nothing is sent to the other side.
func (i *Identity) ExplainTime(ctx context.Context, base string, te *identity.TimeError) error {
	return explainTime(ctx, base, i.TLS(), te)
}

func explainTime(ctx context.Context, base string, cfg *tls.Config, te *identity.TimeError) error {
	// The same trust, but for time.
	cfg = cfg.Clone()
	cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return new(tls.Certificate), nil }
	strict := cfg.VerifyConnection
	cfg.VerifyConnection = func(cs tls.ConnectionState) error {
		if err := strict(cs); err != nil && !errors.As(err, new(*identity.TimeError)) {
			return err
		}
		return nil
	}
	t := transport(cfg)
	defer t.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, base+"/healthz", nil)
	if err != nil {
		return te
	}
	res, err := (&http.Client{Transport: t}).Do(req)
	if err != nil {
		return te
	}
	res.Body.Close()
	there, err := http.ParseTime(res.Header.Get("Date"))
	if err != nil {
		return te
	}
	if words := identity.ClockWords(te.Now, there); words != "" {
		return fmt.Errorf("%s (%w)", words, te)
	}
	return te
}
