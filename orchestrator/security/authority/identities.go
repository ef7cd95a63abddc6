package authority

import (
	"context"
	"slices"
	"strings"
	"time"
)

// State is how the orchestrator knows a node.
type State int

// States of a node's identity.
const (
	StateNone     State = iota // it has connected, but to an orchestrator that asks for no certificates
	StateInvited               // a token is open, none was used yet
	StateEnrolled              // it has a valid certificate
	StateExpired               // its newest certificate has expired
	StateRevoked               // its newest certificate was revoked
)

// NodeIdentity is what is known of one node. Times are zero where nothing is known.
type NodeIdentity struct {
	Name     string
	State    State
	Enrolled time.Time // when the newest certificate was given
	Expires  time.Time // the newest certificate; of an invited node, the first token
	Serial   string    // of the newest certificate

	Revoked           time.Time
	RevokedBy, Reason string

	OpenTokens []OpenToken // the first to expire first
	Contact    *Contact    // nil: it has not connected
}

// OpenToken is a one-time token that was not used yet.
type OpenToken struct {
	Created, Expires time.Time
	CreatedBy        string
}

// Identities returns what is known of every node, sorted by name.
func (a *Authority) Identities(ctx context.Context) ([]NodeIdentity, error) {
	now := a.now()
	byName := map[string]*NodeIdentity{}
	get := func(name string) *NodeIdentity {
		if byName[name] == nil {
			byName[name] = &NodeIdentity{Name: name}
		}
		return byName[name]
	}
	certs, err := a.db.NewestNodeCertificates(ctx)
	if err != nil {
		return nil, err
	}
	for _, c := range certs {
		n := get(c.Node)
		n.Enrolled, n.Expires, n.Serial = c.IssuedAt, c.ExpiresAt, c.Serial
		switch {
		case c.RevokedAt != nil:
			n.State, n.Revoked, n.RevokedBy, n.Reason = StateRevoked, *c.RevokedAt, c.RevokedBy, c.Reason
		case now.After(c.ExpiresAt):
			n.State = StateExpired
		default:
			n.State = StateEnrolled
		}
	}
	tokens, err := a.db.OpenNodeTokens(ctx, now)
	if err != nil {
		return nil, err
	}
	for _, t := range tokens {
		n := get(t.Node)
		n.OpenTokens = append(n.OpenTokens, OpenToken{Created: t.CreatedAt, CreatedBy: t.CreatedBy, Expires: t.ExpiresAt})
		if n.State == StateNone {
			n.State, n.Expires = StateInvited, t.ExpiresAt
		}
	}
	if a.cfg.Contacts != nil {
		for name, c := range a.cfg.Contacts() {
			get(name).Contact = &c
		}
	}
	out := make([]NodeIdentity, 0, len(byName))
	for _, n := range byName {
		out = append(out, *n)
	}
	slices.SortFunc(out, func(x, y NodeIdentity) int { return strings.Compare(x.Name, y.Name) })
	return out, nil
}
