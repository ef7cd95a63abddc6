package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"linktrial/agents/identity"
	"linktrial/agents/trust"
	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/internal/backoff"
	tokens "linktrial/internal/identity"
	"linktrial/internal/signature"
	"linktrial/internal/wallclock"
)

// identity is the certificate for the orchestrator; nil where that is called
// without encryption. A node that has none yet and a file with a token
// enrols, for as long as it takes until the orchestrator answers.
func (a *agent) identity(ctx context.Context) (*identity.Identity, error) {
	if !strings.HasPrefix(a.cfg.Orchestrator, "https://") {
		if a.cfg.TokenFile != "" {
			return nil, fmt.Errorf("a token is for an orchestrator that is called with https://, not for %s", a.cfg.Orchestrator)
		}
		return nil, nil
	}
	id, err := identity.Load(a.cfg.StateDir, a.cfg.Clock.Now)
	switch {
	case err == nil && id.Name() != a.cfg.Name:
		return nil, fmt.Errorf("the certificate in %s is %s's and this node is %s: start the agent with --name %s, or enrol it as %s", a.cfg.StateDir, id.Name(), a.cfg.Name, id.Name(), a.cfg.Name)
	case err == nil && (!id.Expired() || a.cfg.TokenFile == ""):
		return id, nil
	case err != nil && !errors.Is(err, identity.ErrNone):
		return nil, err
	case a.cfg.TokenFile == "":
		return nil, fmt.Errorf("%w, and %s works with enrolled nodes only: make a token there with 'linktrial node token --name %s', then run 'linktrial node enrol --orchestrator %s --token …' here", err, a.cfg.Orchestrator, a.cfg.Name, a.cfg.Orchestrator)
	}
	t, err := a.awaitToken(ctx)
	if id != nil && errors.Is(err, fs.ErrNotExist) {
		return id, nil // calls fail, and say whose clock is wrong
	}
	if err != nil {
		return nil, err
	}
	if t.Node != a.cfg.Name {
		return nil, fmt.Errorf("the token in %s is for node %s and this node is %s: start the agent with --name %s, or make a token with 'linktrial node token --name %s'", a.cfg.TokenFile, t.Node, a.cfg.Name, t.Node, a.cfg.Name)
	}
	expired := id // nil: there is none; else its end may be the clock's fault
	retry := backoff.Backoff{Min: time.Second, Max: 10 * time.Second}
	for {
		if expired != nil && !expired.Expired() {
			a.cfg.Logger.Info("the node's clock was set: its certificate is valid by it", "until", expired.Expires())
			return expired, nil
		}
		id, err := identity.Enrol(ctx, identity.Enrolment{Orchestrator: a.cfg.Orchestrator, Token: t, Dir: a.cfg.StateDir, Now: a.cfg.Clock.Now, Trust: func(keys []*linktrialv1.SigningKey) error { return KeepSigningKeys(a.cfg.StateDir, keys) }})
		if err == nil {
			a.cfg.Logger.Info("node is enrolled", "node", id.Name(), "until", id.Expires())
			return id, nil
		}
		if ctx.Err() != nil || errors.Is(err, identity.ErrRefused) && expired == nil {
			return nil, err
		}
		if expired != nil {
			a.cfg.Logger.Warn("the node's certificate has expired by its clock, and it could not be enrolled anew; it tries again: set the clock if it is wrong",
				"expired", expired.Expires(), "clock", a.cfg.Clock.Now(), "error", err)
		} else {
			a.cfg.Logger.Warn("node could not be enrolled; it tries again", "error", err)
		}
		if !retry.Wait(ctx) {
			return nil, ctx.Err()
		}
	}
}

// KeepSigningKeys keeps, in a node's state folder, the keys that sign run
// sheets, which the orchestrator sent when the node enrolled.
func KeepSigningKeys(dir string, keys []*linktrialv1.SigningKey) error {
	var list []signature.PublicKey
	for _, k := range keys {
		p, err := signature.NewPublicKey(k.PublicKey)
		if err != nil {
			return err
		}
		list = append(list, p)
	}
	return trust.Enrolled(dir, list)
}

// tokenWait is how long the file may take to appear: what makes it may start
// together with the node.
const tokenWait = 2 * time.Minute

func (a *agent) awaitToken(ctx context.Context) (tokens.Token, error) {
	for end := time.Now().Add(tokenWait); ; {
		t, err := tokens.ReadToken(a.cfg.TokenFile)
		if !errors.Is(err, fs.ErrNotExist) || time.Now().After(end) {
			return t, err
		}
		a.cfg.Logger.Info("the node waits for its token", "file", a.cfg.TokenFile)
		if !backoff.Sleep(ctx, time.Second) {
			return t, ctx.Err()
		}
	}
}

// How often the agent checks whether a renewal is due, and how long after a
// failure it tries again.
const (
	identityEvery = time.Minute
	identityAgain = 5 * time.Minute
)

// watchIdentity renews the certificate when two thirds of its life are over,
// until ctx ends. The wall clock is read each time: a laptop that slept does
// not count the night.
func (a *agent) watchIdentity(ctx context.Context, id *identity.Identity) {
	var next renewal
	for wait := time.Duration(0); backoff.Sleep(ctx, wait); {
		wait = identityEvery
		if !next.due(a.cfg.Clock.Now(), wallclock.Steady(), id.Due()) || !a.session.Gate().Unrestricted() {
			continue
		}
		if err := a.session.Renew(ctx); err != nil {
			if ctx.Err() == nil {
				a.cfg.Logger.Warn("certificate could not be renewed; it is tried again", "until", id.Expires(), "error", err)
			}
			wait = identityAgain
			continue
		}
		a.cfg.Logger.Info("certificate is renewed", "until", id.Expires())
		next.renewed(wallclock.Steady())
	}
}

// renewalRest is how long after a renewal there is no other one. A clock that is ahead
// takes a new certificate for one that is to be renewed.
const renewalRest = 24 * time.Hour

// renewal is when the certificate may be renewed next.
type renewal struct{ rests time.Duration } // by the clock that never steps; 0: it was not renewed

func (r *renewal) renewed(steady time.Duration) { r.rests = steady + renewalRest }

func (r *renewal) due(now time.Time, steady time.Duration, due time.Time) bool {
	return !now.Before(due) && steady >= r.rests
}
