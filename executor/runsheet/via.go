package runsheet

import (
	"slices"

	"linktrial/internal/radio"
)

// The ports of all listeners, relay processes included, are from FirstPort to
// LastPort: what holds drivers to the radio lets those of one node reach each
// other there.
const (
	FirstPort = 5001
	LastPort  = 5999
)

// ExchangePort is where agents answer the plain exchange, over UDP and TCP; no sheet gives
// it to a listener.
const ExchangePort = LastPort

// ListenerPort reports whether a listener can have a port.
func ListenerPort(port int) bool { return port >= FirstPort && port <= LastPort }

// Via is one relay process that a treatment's flows pass: it ends their
// connection at a node and carries the bytes onward over another one.
type Via struct {
	At            radio.Role     `json:"at"`             // the node that runs it
	Protocol      string         `json:"protocol"`       // a driver with the role relay
	DriverVersion string         `json:"driver_version"` // as of [Treatment]
	Digests       []string       `json:"digests,omitempty"`
	Options       map[string]any `json:"options"`
	Port          int            `json:"port"` // at which it accepts, on its node
}

// Place orders roles from client to server, from 1; 0 for none of them.
func Place(r radio.Role) int {
	return 1 + slices.Index(radio.Roles, r)
}

// Passes are the relay processes on the way of a flow that starts on a role, in
// order. One on the flow's own node is on its way only where it starts at the
// client: a flow from the relay's node goes on from there.
func (t *Treatment) Passes(from radio.Role) []Via {
	i := slices.IndexFunc(t.Via, func(v Via) bool {
		return Place(v.At) > Place(from) || from == radio.RoleClient
	})
	if i < 0 {
		return nil
	}
	return t.Via[i:]
}

// Passed reports whether the treatment has a relay process on a role's node.
func (t *Treatment) Passed(at radio.Role) bool {
	return slices.ContainsFunc(t.Via, func(v Via) bool { return v.At == at })
}

// Hop is a listener that connections are made to: its node and port.
type Hop struct {
	At   radio.Role
	Port int
}

// First is the listener to which a flow from a role to another connects: the
// first relay process on its way, or the listener at its end.
func (t *Treatment) First(from, to radio.Role) Hop {
	if via := t.Passes(from); len(via) > 0 {
		return Hop{via[0].At, via[0].Port}
	}
	return Hop{to, t.Port}
}

// After is the listener to which the ith relay process connects.
func (t *Treatment) After(i int) Hop {
	if i+1 < len(t.Via) {
		return Hop{t.Via[i+1].At, t.Via[i+1].Port}
	}
	return Hop{radio.RoleServer, t.Port}
}

// Listener is one listener that a node keeps for the whole run: the treatment's
// own on the server, or, with Via, one of its relay processes.
type Listener struct {
	Treatment *Treatment
	Via       *Via // nil: the treatment's own
	Next      Hop  // where a relay process carries bytes
}

// Port is the listener's by the sheet.
func (l *Listener) Port() int {
	if l.Via == nil {
		return l.Treatment.Port
	}
	return l.Via.Port
}

// At is the role whose node runs the listener's relay process; empty for the
// treatment's own listener, which is always the server's.
func (l *Listener) At() radio.Role {
	if l.Via == nil {
		return ""
	}
	return l.Via.At
}

// Listeners are those that the node of a role keeps, in the order of the
// treatments; what is missing has none.
func (s *Sheet) Listeners(role radio.Role) []Listener {
	var out []Listener
	for i := range s.Treatments {
		t := &s.Treatments[i]
		if t.Missing != "" {
			continue
		}
		for k := range t.Via {
			if t.Via[k].At == role {
				out = append(out, Listener{t, &t.Via[k], t.After(k)})
			}
		}
		if role == radio.RoleServer {
			out = append(out, Listener{Treatment: t})
		}
	}
	return out
}

// Needs are the listeners on a role that a trial needs: those at the ends of its flows
// and probes, and the relay processes that they pass.
func (s *Sheet) Needs(trial *Trial, role radio.Role) []Listener {
	return slices.DeleteFunc(s.Listeners(role), func(l Listener) bool {
		return !slices.ContainsFunc(trial.Carried(), func(f Flow) bool {
			if f.Treatment != l.Treatment.Name {
				return false
			}
			if l.Via == nil {
				return f.ServerAt() == role
			}
			return slices.ContainsFunc(l.Treatment.Passes(f.ClientAt()), func(v Via) bool { return v.At == role })
		})
	})
}

// Ends reports whether a connection of a trial ends on the node of a role: one of its
// flows does, or passes a relay process there.
func (s *Sheet) Ends(trial *Trial, role radio.Role) bool {
	return len(s.Needs(trial, role)) > 0 || slices.ContainsFunc(trial.Carried(), func(f Flow) bool { return f.From == role || f.To == role })
}

// Passes reports whether packets of a trial pass a role on their way. Where the network
// is not known, a relay is on the way of all that goes between client and server.
func (s *Sheet) Passes(trial *Trial, role radio.Role) bool {
	return slices.ContainsFunc(trial.Carried(), func(f Flow) bool {
		var route []radio.Role
		if s.Network != nil {
			route = s.Network.Route(f.From, f.To)
		}
		return route == nil && role == radio.RoleRelay || slices.Contains(route, role)
	})
}

// Neighbours are the roles between whose nodes and that of a role connections of the
// sheet's trials are: the ends of flows and the relay processes that they pass.
func (s *Sheet) Neighbours(role radio.Role) (out []radio.Role) {
	for i := range s.Trials {
		for _, f := range s.Trials[i].Carried() {
			at := f.ClientAt()
			var stations []radio.Role
			if t := s.Treatment(f.Treatment); t != nil {
				for _, v := range t.Passes(at) {
					stations = append(stations, v.At)
				}
			}
			for _, next := range append(stations, f.ServerAt()) {
				for _, pair := range [][2]radio.Role{{at, next}, {next, at}} {
					if pair[0] == role && pair[1] != role && !slices.Contains(out, pair[1]) {
						out = append(out, pair[1])
					}
				}
				at = next
			}
		}
	}
	return out
}

// Use is a driver that a node needs for a treatment, as its client or server
// or, with Via, as one of its relay processes.
type Use struct {
	Treatment     *Treatment
	Via           *Via // nil: an end
	Protocol      string
	DriverVersion string
	Digests       []string
	Options       map[string]any
}

// Uses are the drivers that the node of a role needs, in the order of the
// treatments; a missing treatment needs none. Client and server need every
// treatment's; a relay needs it where a flow starts or ends there.
func (s *Sheet) Uses(role radio.Role) []Use {
	var out []Use
	for i := range s.Treatments {
		t := &s.Treatments[i]
		if t.Missing != "" {
			continue
		}
		if role != radio.RoleRelay || s.touches(t, role) {
			out = append(out, Use{t, nil, t.Protocol, t.DriverVersion, t.Digests, t.Options})
		}
		for k := range t.Via {
			if v := &t.Via[k]; v.At == role {
				out = append(out, Use{t, v, v.Protocol, v.DriverVersion, v.Digests, v.Options})
			}
		}
	}
	return out
}

// touches reports whether a flow of a treatment starts or ends on a role.
func (s *Sheet) touches(t *Treatment, role radio.Role) bool {
	return slices.ContainsFunc(s.Trials, func(trial Trial) bool {
		return slices.ContainsFunc(trial.Carried(), func(f Flow) bool {
			return f.Treatment == t.Name && (f.From == role || f.To == role)
		})
	})
}
