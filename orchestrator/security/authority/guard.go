package authority

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"connectrpc.com/connect"

	"linktrial/internal/agentprotocol"
	"linktrial/internal/identity"
	"linktrial/internal/unit"
	"linktrial/orchestrator/security/admission"
)

type certificateKey struct{}

// Handler passes on which certificate a call was made with. The interceptor of
// [Authority.Guard] needs it around the server's mux.
func (a *Authority) Handler(next http.Handler) http.Handler {
	if a.cfg.Mode != ModeTLS {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
			r = r.WithContext(context.WithValue(r.Context(), certificateKey{}, r.TLS.PeerCertificates[0]))
		}
		next.ServeHTTP(w, r)
	})
}

// KeyOf stands for the key of the certificate that a call was made with
// ([identity.KeyHash]); nil where nodes have none.
func (a *Authority) KeyOf(ctx context.Context) []byte {
	cert := a.CertificateOf(ctx)
	if cert == nil {
		return nil
	}
	hash := identity.KeyHash(cert)
	return hash[:]
}

// CertificateOf is the certificate that a call was made with; nil where nodes have none.
func (a *Authority) CertificateOf(ctx context.Context) *x509.Certificate {
	cert, _ := ctx.Value(certificateKey{}).(*x509.Certificate)
	return cert
}

// caller is the node that calls, by its certificate. Errors are in the words
// that a person at the node reads, with the code Unauthenticated.
func (a *Authority) caller(ctx context.Context) (node string, cert *x509.Certificate, err error) {
	now := a.now()
	refuse := func(format string, args ...any) (string, *x509.Certificate, error) {
		e := connect.NewError(connect.CodeUnauthenticated, fmt.Errorf(format, args...))
		e.Meta().Set(identity.TimeHeader, now.UTC().Format(http.TimeFormat))
		return "", nil, e
	}
	cert, _ = ctx.Value(certificateKey{}).(*x509.Certificate)
	if cert == nil {
		return refuse("this orchestrator works with enrolled nodes only, and the call came without a certificate: make a token with 'linktrial node token --name NAME', then run 'linktrial node enrol --token …' on the node")
	}
	x := a.records.find(cert)
	if x == nil {
		name, named := identity.NodeOf(cert)
		again := "enrol the node again with a new token"
		switch {
		case cert.CheckSignatureFrom(a.keys.cert) != nil:
			return refuse("the certificate of %q is of another authority (%q) than this orchestrator's (%q, fingerprint %s): %s, or name the orchestrator it belongs to",
				cert.Subject.CommonName, cert.Issuer.CommonName, a.keys.cert.Subject.CommonName, a.Fingerprint(), again)
		case !named:
			return refuse("the certificate of %q is not an agent's: %s", cert.Subject.CommonName, again)
		case now.After(cert.NotAfter):
			return refuse("the certificate of %s expired at %s, and the orchestrator's clock says %s: %s", name, unit.Moment(cert.NotAfter), unit.Moment(now), again)
		}
		return refuse("the certificate of %s is not in this orchestrator's records, which may have been put back from an older backup: %s", name, again)
	}
	switch {
	case !x.revoked.IsZero():
		return refuse("%s", x.revocation())
	case now.After(x.notAfter):
		return refuse("the certificate of %s expired at %s, and the orchestrator's clock says %s: enrol the node again with a new token", x.node, unit.Moment(x.notAfter), unit.Moment(now))
	case now.Before(cert.NotBefore):
		return refuse("the certificate of %s is valid from %s on, and the orchestrator's clock says %s: set the orchestrator's clock", x.node, unit.Moment(cert.NotBefore), unit.Moment(now))
	}
	return x.node, cert, nil
}

func (x *record) revocation() string {
	why := ""
	if x.reason != "" {
		why = " (" + x.reason + ")"
	}
	return fmt.Sprintf("the certificate of %s was revoked at %s by %s%s: enrol the node again with a new token if it is to take part", x.node, unit.Moment(x.revoked), x.revokedBy, why)
}

var errorWriter = connect.NewErrorWriter()

// Nodes wraps the handler of a service that only nodes call: with TLS, a call without
// a certificate that is valid now is refused before its request is read.
func (a *Authority) Nodes(next http.Handler) http.Handler {
	if a.cfg.Mode != ModeTLS {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		node, _, err := a.caller(r.Context())
		if err == nil {
			err = admission.Known(r.Context(), "node "+node)
		}
		switch {
		case err == nil:
			next.ServeHTTP(w, r)
		case errorWriter.IsSupported(r):
			_ = errorWriter.Write(w, r, err) // a caller that is gone
		default:
			http.Error(w, err.Error(), http.StatusUnauthorized)
		}
	})
}

// named is a request that says which node it is of.
type named interface{ GetName() string }

// Guard is the interceptor of the services that agents call. With TLS it lets
// a node speak only for itself, and ends its calls when it is revoked; in
// every mode it refuses protocols that this version does not know.
func (a *Authority) Guard() connect.Interceptor { return &guard{a: a} }

type guard struct {
	a *Authority

	mu   sync.Mutex
	told map[string]string // version that was refused last, by the name that the caller gave
}

// maxTold bounds what callers, who can be anybody on a closed bench, have kept here.
const maxTold = 1000

// maxVersion is longer than any version of this program, in bytes.
const maxVersion = 100

// tell logs a refusal, once for each version of a node: its service manager
// starts the agent again and again.
func (g *guard) tell(m withProtocol, refusal error) {
	if identity.CheckName(m.GetName()) != nil || len(m.GetVersion()) > maxVersion {
		return // what is kept by name is bounded
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.told[m.GetName()] == m.GetVersion() {
		return
	}
	if g.told == nil || len(g.told) >= maxTold {
		g.told = map[string]string{}
	}
	g.told[m.GetName()] = m.GetVersion()
	g.a.log.Warn("agent of another version refused", "node", m.GetName(), "error", refusal)
}

// withProtocol is a request that says which protocol the agent speaks.
type withProtocol interface {
	named
	GetProtocol() int32
	GetVersion() string
}

func (g *guard) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		if req.Spec().IsClient {
			return next(ctx, req)
		}
		var leave func()
		if g.a.cfg.Mode == ModeTLS {
			node, cert, err := g.a.caller(ctx)
			if err != nil {
				return nil, err
			}
			if m, ok := req.Any().(named); ok && m.GetName() != node {
				return nil, connect.NewError(connect.CodePermissionDenied, fmt.Errorf("the certificate is %s's and the call is made for %q: a node speaks only for itself; start the agent with --name %s, or enrol it as %s", node, m.GetName(), node, m.GetName()))
			}
			ctx, leave = g.a.records.enter(ctx, cert)
			defer leave()
		}
		if m, ok := req.Any().(withProtocol); ok && !agentprotocol.Spoken(m.GetProtocol()) {
			err := fmt.Errorf("the agent's version %s speaks protocol %d and this orchestrator's version %s %s: install the same version on both",
				m.GetVersion(), max(1, m.GetProtocol()), g.a.cfg.Version, agentprotocol.Words())
			g.tell(m, err)
			return nil, connect.NewError(connect.CodeFailedPrecondition, err)
		}
		if m, ok := req.Any().(interface{ GetProtocol() int32 }); ok && !agentprotocol.Spoken(m.GetProtocol()) {
			// A poll of an agent that outlived the orchestrator it registered with:
			// it registers again, and is told there.
			return nil, connect.NewError(connect.CodeNotFound, errors.New("the agent's protocol is not known here: register again"))
		}
		res, err := next(ctx, req)
		if errors.Is(context.Cause(ctx), errRevoked) {
			if _, _, refused := g.a.caller(ctx); refused != nil {
				return nil, refused
			}
		}
		return res, err
	}
}

func (g *guard) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// WrapStreamingHandler refuses: agents have no streams, and one that is added
// must first be guarded.
func (g *guard) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		if g.a.cfg.Mode == ModeTLS {
			return connect.NewError(connect.CodeUnimplemented, errors.New("agents have no streams"))
		}
		return next(ctx, conn)
	}
}
