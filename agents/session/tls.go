package session

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
)

// resumption is the TLS session to resume with the next connection: over a slow radio
// the certificates of a full handshake take seconds of a window. Its methods may be
// called from several goroutines.
type resumption struct {
	mu      sync.Mutex
	session *tls.ClientSessionState
	failed  int // handshakes with this session in a row
}

// maxResumptions is with how many handshakes in a row that fail a session is tried. Most
// of them fail because a window or a link ended them, which says nothing of the session.
const maxResumptions = 3

// Get implements [tls.ClientSessionCache].
func (r *resumption) Get(string) (*tls.ClientSessionState, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.session, r.session != nil
}

// Put implements [tls.ClientSessionCache]. nil: a handshake with the session failed.
func (r *resumption) Put(_ string, s *tls.ClientSessionState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch r.failed++; {
	case s != nil:
		r.session, r.failed = s, 0
	case r.failed >= maxResumptions:
		r.session = nil
	}
}

// forget has the next handshake be a full one, which shows the node's certificate.
func (r *resumption) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.session, r.failed = nil, 0
}

// dialTLS connects with TLS, and resumes the session before where there is one.
func (s *Session) dialTLS(ctx context.Context, network, address string) (net.Conn, error) {
	return s.resumption.connect(ctx, s.cfg.Identity.TLS, func(ctx context.Context) (net.Conn, error) {
		return s.dial.DialContext(ctx, network, address)
	})
}

// connect makes a connection to the orchestrator and shakes hands on it.
func (r *resumption) connect(ctx context.Context, config func() *tls.Config, dial func(context.Context) (net.Conn, error)) (net.Conn, error) {
	if _, ok := r.Get(""); ok {
		// A hybrid key share has 1.2 KB each way. Without it a resumed session stays
		// as safe from a quantum computer as the full handshake was that it goes back
		// to, whose secret it is derived from as well (RFC 8446, section 7.1).
		c, resumed, err := r.handshake(ctx, config(), dial, tls.X25519)
		if err != nil || resumed {
			return c, err
		}
		_ = c.Close() // the orchestrator has forgotten the session: this one goes back to none
		r.forget()
	}
	c, _, err := r.handshake(ctx, config(), dial)
	return c, err
}

// handshake makes a connection with one of these key shares, or with the usual ones where
// none is named.
func (r *resumption) handshake(ctx context.Context, cfg *tls.Config, dial func(context.Context) (net.Conn, error), shares ...tls.CurveID) (_ net.Conn, resumed bool, err error) {
	cfg.ClientSessionCache, cfg.CurvePreferences = r, shares
	c, err := dial(ctx)
	if err != nil {
		return nil, false, err
	}
	t := tls.Client(c, cfg)
	if err := t.HandshakeContext(ctx); err != nil {
		_ = c.Close() // nothing is lost
		return nil, false, err
	}
	return t, t.ConnectionState().DidResume, nil
}
