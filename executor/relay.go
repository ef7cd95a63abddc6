package executor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"linktrial/executor/runsheet"
	"linktrial/internal/notify"
	"linktrial/internal/radio"
)

// relayWait is how long an attempt waits for a relay process that was started
// again; less than [peerLimit], so that another node's answer says which.
const relayWait = 10 * time.Second

// relayTable knows which of this node's relay processes are up.
type relayTable struct {
	mu      sync.Mutex
	state   map[string]relayState // by treatment
	changed notify.Notifier
}

type relayState struct {
	up      bool
	gone    bool   // for good: this node cannot run the driver
	failure string // why it was last not up
}

func newRelayTable() *relayTable {
	return &relayTable{state: map[string]relayState{}}
}

func (r *relayTable) set(treatment string, s relayState) {
	r.mu.Lock()
	r.state[treatment] = s
	r.mu.Unlock()
	r.changed.Notify()
}

func (r *relayTable) get(treatment string) relayState {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state[treatment]
}

// await waits until the relay process of a treatment is up: until ctx ends, or
// not at all where it never will be. The error says why it is not.
func (r *relayTable) await(ctx context.Context, treatment string) error {
	for {
		changed := r.changed.Changed()
		s := r.get(treatment)
		if s.up {
			return nil
		}
		if !s.gone {
			select {
			case <-changed:
				continue
			case <-ctx.Done():
			}
		}
		if s.failure == "" {
			s.failure = "it is not ready yet"
		}
		return errors.New(s.failure)
	}
}

// awaitRelays waits until the relay processes that flows of a trial pass on this
// node are up, for relayWait at most: where one is not, the attempt would say
// nothing of the protocol.
func (n *node) awaitRelays(ctx context.Context, trial *runsheet.Trial) error {
	ctx, cancel := context.WithTimeout(ctx, relayWait)
	defer cancel()
	for _, name := range relaysAt(n.sheet, trial, n.role) {
		if err := n.relays.await(ctx, name); err != nil {
			return fmt.Errorf("the relay process of %s at the %s is not up: %w", name, n.role, err)
		}
	}
	return nil
}

// relaysAt names the treatments whose relay process at a role flows of a trial pass.
func relaysAt(s *runsheet.Sheet, trial *runsheet.Trial, role radio.Role) []string {
	var out []string
	for _, f := range trial.Flows {
		t := s.Treatment(f.Treatment)
		passes := slices.ContainsFunc(t.Passes(f.From), func(v runsheet.Via) bool { return v.At == role })
		if passes && !slices.Contains(out, t.Name) {
			out = append(out, t.Name)
		}
	}
	return out
}

// rolesOfTrial lists the roles that take part in a trial: those on which its flows
// start, and those that have relay processes on their way.
func rolesOfTrial(s *runsheet.Sheet, trial *runsheet.Trial) []radio.Role {
	out := rolesOfFlows(trial)
	for _, role := range radio.Roles {
		if !slices.Contains(out, role) && len(relaysAt(s, trial, role)) > 0 {
			out = append(out, role)
		}
	}
	return out
}
