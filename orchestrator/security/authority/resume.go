package authority

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"sync"
)

// Nodes resume TLS sessions. The state of one, with its certificate, is kept here, and
// the ticket is its number: over a radio of 16 kbit/s a ticket that has the state in it
// takes a second of each window of in-band control.
const (
	ticketBytes = 16 // random: nobody guesses one
	maxSessions = 4096
)

// sessions are those that nodes can resume, of which the oldest are forgotten. After a
// start of the orchestrator there are none, and every node makes a full handshake.
type sessions struct {
	mu    sync.Mutex
	byID  map[string][]byte // encoded, by ticket
	order []string          // oldest first
}

// add keeps a session and returns its ticket.
func (s *sessions) add(state *tls.SessionState) ([]byte, error) {
	encoded, err := state.Bytes()
	if err != nil {
		return nil, err
	}
	ticket := make([]byte, ticketBytes)
	if _, err := rand.Read(ticket); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byID == nil {
		s.byID = map[string][]byte{}
	}
	if len(s.order) >= maxSessions {
		delete(s.byID, s.order[0])
		s.order = s.order[1:]
	}
	s.byID[string(ticket)] = encoded
	s.order = append(s.order, string(ticket))
	return ticket, nil
}

// get returns the session of a ticket; nil: there is none any more.
func (s *sessions) get(ticket []byte) (*tls.SessionState, error) {
	s.mu.Lock()
	encoded, ok := s.byID[string(ticket)]
	s.mu.Unlock()
	if !ok {
		return nil, nil
	}
	return tls.ParseSessionState(encoded)
}

// resumable has a configuration of nodes resume sessions. Anybody can connect and show a
// certificate of his own: only those of nodes take memory here.
func (a *Authority) resumable(c *tls.Config) {
	var kept sessions
	c.WrapSession = func(cs tls.ConnectionState, state *tls.SessionState) ([]byte, error) {
		if a.signed(cs.PeerCertificates) {
			return kept.add(state)
		}
		return c.EncryptTicket(cs, state)
	}
	c.UnwrapSession = func(ticket []byte, cs tls.ConnectionState) (*tls.SessionState, error) {
		if len(ticket) == ticketBytes {
			return kept.get(ticket)
		}
		return c.DecryptTicket(ticket, cs)
	}
}

// signed reports whether this authority issued a node's certificate.
func (a *Authority) signed(shown []*x509.Certificate) bool {
	return len(shown) > 0 && shown[0].CheckSignatureFrom(a.keys.cert) == nil
}
