package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"linktrial/cmd/linktrial/terminal"
	"linktrial/installation"
	"linktrial/internal/backoff"
)

// services are those of a laptop on which a package has installed Linktrial.
type services struct {
	machine *installation.Machine
	limit   time.Duration // of the wait for the agent
	pause   time.Duration // between two looks at it
}

// installed returns the services of this laptop that can run the agent of a node that joins;
// nil: no package has installed any.
func installed(ctx context.Context) (*services, error) {
	s := &services{machine: installation.Own(), limit: 2 * time.Minute, pause: 200 * time.Millisecond}
	if !s.machine.Installed(ctx) {
		return nil, nil
	}
	if os.Geteuid() != 0 {
		return nil, errors.New("this starts the agent as a service and takes root: sudo linktrial join CODE")
	}
	return s, s.free(ctx)
}

// free refuses a laptop that is a node, or has an orchestrator, already.
func (s *services) free(ctx context.Context) error {
	state, err := s.machine.State(ctx)
	if err != nil {
		return err
	}
	a, _, err := s.machine.Agent()
	switch {
	case err != nil:
		return err
	case state.Orchestrator.Running():
		return errors.New("this laptop has an orchestrator of its own: to join another one, run 'sudo linktrial stop' first")
	case state.Agent.Running():
		return fmt.Errorf("this laptop is node %s of the orchestrator %s: to join again, run 'sudo linktrial stop' first", a.Name, a.Orchestrator)
	}
	return nil
}

// start gives the agent the identity that it enrolled with and starts it, now and after every
// boot. The radio that the laptop had before stays.
func (s *services) start(ctx context.Context, a installation.AgentSettings) error {
	before, _, err := s.machine.Agent()
	if err != nil {
		return err
	}
	a.Role = cmp.Or(a.Role, before.Role)
	a.Device, a.RadioAddress, a.Radio = before.Device, before.RadioAddress, before.Radio
	err = s.machine.GiveToAgent(a.Name)
	if err == nil {
		err = s.machine.StartAgent(ctx, a, func(ctx context.Context) error { return s.connected(ctx) })
	}
	if err != nil {
		return fmt.Errorf("%w; to try again, add --replace: the orchestrator has node %s enrolled", err, a.Name)
	}
	fmt.Printf("This laptop is node %s of %s. Its agent runs, and starts again with it.\n", a.Name, a.Orchestrator)
	if a.RadioAddress == "" {
		fmt.Printf("No radio is set up on it yet: on the pages of %s, or here when the agent is stopped.\n", a.Orchestrator)
	}
	return nil
}

// connected waits until the agent says that it is connected.
func (s *services) connected(ctx context.Context) error {
	w := terminal.NewWaiting(os.Stderr)
	defer w.Stop()
	w.Step("waiting for the agent to connect")
	ctx, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	for {
		u, err := s.machine.Manager.Unit(ctx, installation.AgentUnit)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("the agent has not connected within %s (it says %q): 'journalctl -u linktrial-agent' has more", s.limit, u.Status)
		case err != nil:
			return err
		case u.Active == "failed" || u.Restarts > 2:
			return errors.New("the agent does not start: 'journalctl -u linktrial-agent' says why")
		case u.Active == "active" && strings.HasPrefix(u.Status, "connected to "):
			return nil
		}
		backoff.Sleep(ctx, s.pause)
	}
}
