package protocoltest

import (
	"fmt"
	"math/rand/v2"
	"sync"

	"linktrial/protocols/contract"
	"linktrial/protocols/protocoltest/starter"
)

// ends start the drivers of a whole suite: one process for each end, as agents do.
type ends struct {
	at addresses // of every network of the suite, as those of the nodes of a run; in their command lines

	mu     sync.Mutex
	agents map[contract.Role]*starter.Starter
}

// of is what starts drivers at the node of a role: the server's, or the client's.
func (e *ends) of(role contract.Role) (*starter.Starter, error) {
	address := e.at.client
	if role == contract.RoleServer {
		address = e.at.server
	} else {
		role = contract.RoleClient
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if a := e.agents[role]; a != nil {
		return a, nil
	}
	a, err := starter.Start(agentCommand(role, address))
	if err != nil {
		return nil, fmt.Errorf("start what starts the drivers: %w", err)
	}
	if e.agents == nil {
		e.agents = map[contract.Role]*starter.Starter{}
	}
	e.agents[role] = a
	return a, nil
}

// agentCommand is the command line of an agent: in a guest of the virtual-time lab, or on a
// laptop that is installed.
func agentCommand(role contract.Role, address string) []string {
	if rand.IntN(2) == 0 {
		return []string{"linktrial", "lab", "guest-agent"}
	}
	return []string{"/usr/bin/linktrial", "agent", "--name", string(role), "--role", string(role), "--radio-address", address, "--device", device}
}

func (e *ends) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, a := range e.agents {
		a.Close()
	}
	e.agents = nil
}
