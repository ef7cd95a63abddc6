package joining

import (
	"context"
	"fmt"
	"time"

	"linktrial/internal/agentprotocol"
	"linktrial/internal/identity"
	"linktrial/internal/unit"
	"linktrial/orchestrator/security/authority"
)

// tokenLife is how long a laptop that has joined may take to enrol: it may ask a person to
// set its clock first. For as long its name is kept for it.
const tokenLife = 10 * time.Minute

// maxJoined bounds the laptops that join by one code.
const maxJoined = 100

// refuse says why no laptop may join so; empty: nothing is in the way.
func (q *Question) refuse(version string) string {
	if err := identity.CheckName(q.Name); err != nil {
		return err.Error() + "; choose one with --name"
	}
	if !agentprotocol.Spoken(q.Protocol) {
		return fmt.Sprintf("this laptop has version %s, which speaks protocol %d, and the orchestrator has version %s, which speaks %s: install the same version on both",
			q.Version, max(1, q.Protocol), version, agentprotocol.Words())
	}
	return ""
}

// take keeps a name for a laptop, or says why it does not get it. Two laptops that ask at
// once for one name do not both get it.
func (j *Joining) take(ctx context.Context, q Question) (refusal string, err error) {
	j.mu.Lock()
	now := j.now()
	for name, until := range j.names {
		if !now.Before(until) {
			delete(j.names, name)
		}
	}
	_, taken := j.names[q.Name]
	full := j.newest != nil && len(j.newest.joined) >= maxJoined
	if !full && (!taken || q.Replace) {
		j.names[q.Name] = now.Add(tokenLife)
	}
	j.mu.Unlock()
	switch {
	case full:
		return fmt.Sprintf("%d laptops joined by this code: ask for a new one", maxJoined), nil
	case q.Replace:
		return "", nil
	}
	all, err := j.cfg.Authority.Identities(ctx)
	if err == nil {
		refusal = enrolled(all, q.Name)
	}
	switch {
	case taken && err == nil && refusal == "":
		refusal = fmt.Sprintf("a laptop has just joined as %s: choose another name with --name, or use --replace if it was this one", q.Name)
	case !taken && (err != nil || refusal != ""):
		j.mu.Lock()
		delete(j.names, q.Name)
		j.mu.Unlock()
	}
	return refusal, err
}

// enrolled says that a node has the name with a valid certificate; empty: none has.
func enrolled(all []authority.NodeIdentity, name string) string {
	for _, n := range all {
		if n.Name == name && n.State == authority.StateEnrolled {
			return fmt.Sprintf("a node is enrolled as %s already, since %s: choose another name with --name, or use --replace if this laptop takes its place", name, unit.Moment(n.Enrolled))
		}
	}
	return ""
}
