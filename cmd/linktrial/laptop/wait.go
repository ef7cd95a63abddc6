package laptop

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"linktrial/installation"
	"linktrial/internal/backoff"
	"linktrial/orchestrator/server"
)

// tellEvery is how often a person is told that a wait goes on.
const tellEvery = 5 * time.Second

// mostRestarts is how often a service may end by itself before it is given up.
const mostRestarts = 3

// wait asks until the answer is yes, what says what is waited for. It ends early where the
// unit has failed, or keeps ending; before is its state before the start.
func (l *laptop) wait(ctx context.Context, what, unit string, before *installation.Unit, limit time.Duration, ask func(context.Context) (done bool, why string)) error {
	began := time.Now()
	told := began
	restarts := 0 // a service that is started counts anew
	if before.Running() {
		restarts = before.Restarts
	}
	why := ""
	for {
		u, err := l.machine.Manager.Unit(ctx, unit)
		if err != nil {
			return err
		}
		if u.Active == "failed" || u.Restarts-restarts >= mostRestarts {
			return fmt.Errorf("%s does not start, and what was begun is taken back: 'journalctl -u %s' says why", what, strings.TrimSuffix(unit, ".service"))
		}
		var done bool
		if done, why = ask(ctx); done {
			return nil
		}
		now := time.Now()
		if now.Sub(began) >= limit {
			return fmt.Errorf("%s is not ready after %s (%s), and what was begun is taken back: 'journalctl -u %s' says what it did", what, limit, why, strings.TrimSuffix(unit, ".service"))
		}
		if now.Sub(told) >= tellEvery {
			told = now
			left := (limit - now.Sub(began)).Round(time.Second)
			l.printf("%s is starting, for %.0f s now and for %s more at most: %s\n", what, now.Sub(began).Seconds(), left, why)
		}
		if !backoff.Sleep(ctx, l.pause) {
			return errors.New("interrupted, and what was begun is taken back")
		}
	}
}

// orchestratorReady waits until the orchestrator answers, with its database.
func (l *laptop) orchestratorReady(base string, before *installation.Unit) func(context.Context) error {
	return func(ctx context.Context) error {
		return l.wait(ctx, "The orchestrator", installation.OrchestratorUnit, before, l.orchestratorLimit, func(ctx context.Context) (bool, string) {
			err := healthy(ctx, base)
			if err != nil {
				return false, err.Error()
			}
			return true, ""
		})
	}
}

// healthy asks the orchestrator for its health.
func healthy(ctx context.Context, base string) error {
	ctx, cancel := context.WithTimeout(ctx, server.HealthLimit+time.Second)
	defer cancel()
	// At its first start there is nothing to hold the certificate against; nothing secret is
	// sent, and only the answer's status is used.
	t := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // as stated above
	defer t.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/healthz", http.NoBody)
	if err != nil {
		return err
	}
	res, err := (&http.Client{Transport: t}).Do(req)
	if err != nil {
		return errors.New("it does not answer yet")
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, 1<<10))
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("it answers: %s", strings.TrimSpace(string(b)))
	}
	return err
}

// agentReady waits until the node is connected as what it is to be.
func (l *laptop) agentReady(c *calls, a installation.AgentSettings, before *installation.Unit) func(context.Context) error {
	return func(ctx context.Context) error {
		return l.wait(ctx, "The agent", installation.AgentUnit, before, l.agentLimit, func(ctx context.Context) (bool, string) {
			n, err := c.node(ctx, a.Name)
			switch {
			case err != nil:
				return false, err.Error()
			case n == nil:
				return false, "it has not called the orchestrator"
			case !n.Connected:
				return false, "it is not connected"
			case a.RadioAddress == "" && len(n.Radios.GetRadios()) > 0: // a person set it up with the node connected
				return true, ""
			case n.Role != a.Role || n.RadioAddress != a.RadioAddress || !n.Emulated && n.Radio != a.Radio:
				return false, "it is still connected as it was before"
			}
			return true, ""
		})
	}
}
