package executor

import (
	"fmt"
	"slices"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
)

// rolesOfFlows lists the roles on which flows of a trial start.
func rolesOfFlows(t *runsheet.Trial) []radio.Role {
	var out []radio.Role
	for _, f := range t.Flows {
		if !slices.Contains(out, f.From) {
			out = append(out, f.From)
		}
	}
	return out
}

// rolesOfTrial lists the roles that take part in a trial: those on which its flows
// start, and those that have listeners of it.
func rolesOfTrial(s *runsheet.Sheet, trial *runsheet.Trial) []radio.Role {
	out := rolesOfFlows(trial)
	for _, role := range radio.Roles {
		if !slices.Contains(out, role) && len(listenersAt(s, trial, role)) > 0 {
			out = append(out, role)
		}
	}
	return out
}

// listenersAt names the listeners that a trial needs on a role.
func listenersAt(s *runsheet.Sheet, trial *runsheet.Trial, role radio.Role) []journal.ListenerName {
	var out []journal.ListenerName
	for _, l := range s.Needs(trial, role) {
		out = append(out, nameOf(&l))
	}
	return out
}

// downReason is the reason of an attempt for which something on a role is not in order.
func downReason(s *runsheet.Sheet, trial *runsheet.Trial, role radio.Role) string {
	switch {
	case slices.Contains(rolesOfFlows(trial), role):
		return journal.ReasonSourceDown
	case role == radio.RoleServer:
		return journal.ReasonServerDown
	}
	return journal.ReasonRelayDown
}

// nameOf is a listener's name in journals.
func nameOf(l *runsheet.Listener) journal.ListenerName {
	return journal.ListenerName{Treatment: l.Treatment.Name, At: l.At()}
}

// describeListener names a listener on the node of a role.
func describeListener(name journal.ListenerName, role radio.Role) string {
	if name.At != "" {
		return fmt.Sprintf("the relay process of %s at the %s", name.Treatment, name.At)
	}
	return fmt.Sprintf("the listener of %s at the %s", name.Treatment, role)
}
