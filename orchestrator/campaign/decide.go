package campaign

import (
	"fmt"
	"strings"
	"time"

	"linktrial/executor/journal"
	"linktrial/internal/radio"
)

// State of a run, as the store keeps it.
type State string

// The states, in the order of a run's life; the last three are ends.
const (
	Queued     State = "queued"
	Waiting    State = "waiting" // for people to move the nodes
	Preparing  State = "preparing"
	Running    State = "running"
	Collecting State = "collecting" // the leader is done, journals are still on their way
	Completed  State = "completed"
	Aborted    State = "aborted"
	Stopped    State = "stopped" // by a fault of a node
)

// States are all of them, in that order.
var States = []State{Queued, Waiting, Preparing, Running, Collecting, Completed, Aborted, Stopped}

// Ended reports whether the state is an end.
func (s State) Ended() bool { return s == Completed || s == Aborted || s == Stopped }

// assigned reports whether the nodes of a run in the state have been told of it.
func (s State) assigned() bool { return s != Queued && s != Waiting }

// leader is the role whose agent leads through the sheet.
const leader = radio.RoleClient

// run is all that the next step of a run depends on.
type run struct {
	*sheetInfo
	id           string
	campaign     string
	state        State
	attempted    bool       // an attempt has started, so the leader has begun
	blocked      bool       // an earlier run still uses one of the nodes, or overlapping frequencies
	blockers     []*blocker // runs of other campaigns that use its nodes
	conflict     string     // the frequencies that block it, for people; empty: none do
	realRadios   bool       // of the nodes
	confirmMove  bool       // somebody has yet to say that the nodes were moved
	abort        abort
	collectingAt time.Time // since when; of a run that collects
	participants []participant
	listening    map[journal.ListenerName]bool // that are ready, or have failed for good
}

// abort is the request to abort a run.
type abort struct {
	reason *string // nil: there is no request
	fault  bool    // a node's fault led to it, and not a person
	at     time.Time
}

// participant is one node in a run.
type participant struct {
	role        radio.Role
	node        string
	ended       journal.RunEnd // empty: not yet
	reason      string
	provenance  bool
	deliveredAt time.Time
	connected   bool
	refused     int64 // records of its journal that could not be stored
}

// Waits bounds how long a run waits for a node without contact.
type Waits struct {
	Abort   time.Duration // for the nodes to end after an abort
	Collect time.Duration // for a journal that brings nothing new
}

type action int

const (
	none         action = iota
	awaitMove           // queued → waiting
	prepare             // queued or waiting → preparing
	start               // preparing → running
	collect             // → collecting
	requestAbort        // because of a node's fault
	end                 // → completed, aborted or stopped
)

type step struct {
	action  action
	state   State  // of end
	message string // of end and requestAbort
}

// next returns the step that is due for a run now.
func next(r *run, now time.Time, w Waits) step {
	lead := r.participant(leader)
	if r.abort.reason != nil && lead.ended != journal.RunCompleted {
		return nextAborting(r, now, w)
	}
	switch r.state {
	case Queued:
		if !r.blocked && r.confirmMove {
			return step{action: awaitMove}
		}
		if !r.blocked {
			return step{action: prepare}
		}
	case Waiting:
		if !r.confirmMove {
			return step{action: prepare}
		}
	case Preparing, Running:
		if lead.ended != "" {
			return step{action: collect}
		}
		for _, p := range r.participants {
			if p.ended == journal.RunStopped || p.ended == journal.RunAborted {
				return step{action: requestAbort, message: p.failureText()}
			}
		}
		if r.state == Preparing && (r.attempted || len(missingPreparations(r)) == 0) {
			return step{action: start}
		}
	case Collecting:
		return nextCollecting(r, now, w)
	}
	return step{}
}

// nextAborting waits for the nodes to end, but not for one that is not
// connected: its records are stored whenever they arrive, and it learns of the
// abort when it is back.
func nextAborting(r *run, now time.Time, w Waits) step {
	wait := w.Abort
	if r.inBand {
		wait += r.longest // a node has no contact while a trial runs
	}
	for _, p := range r.participants {
		reachable := p.connected || r.inBand
		if r.state.assigned() && p.ended == "" && reachable && now.Sub(r.abort.at) < wait {
			return step{}
		}
	}
	state := Aborted
	if r.abort.fault {
		state = Stopped
	}
	return step{action: end, state: state, message: *r.abort.reason}
}

func nextCollecting(r *run, now time.Time, w Waits) step {
	wait := w.Collect
	if r.inBand {
		wait += r.longest
	}
	var notes []string
	for _, p := range r.participants {
		switch {
		case p.ended == "":
			last := r.collectingAt
			if p.deliveredAt.After(last) {
				last = p.deliveredAt
			}
			if now.Sub(last) < wait {
				return step{}
			}
			notes = append(notes, fmt.Sprintf("the journal of %s is not complete, and nothing came for %s", p.node, wait))
		case p.ended != journal.RunCompleted && p.role != leader:
			notes = append(notes, p.failureText())
		}
	}
	for _, p := range r.participants {
		if p.refused > 0 {
			notes = append(notes, fmt.Sprintf("%d records of %s's journal could not be stored: the run's journal says which and why", p.refused, p.node))
		}
	}
	if r.abort.reason != nil && r.abort.fault {
		notes = append(notes, *r.abort.reason)
	}
	s := step{action: end, state: Completed}
	switch lead := r.participant(leader); lead.ended {
	case journal.RunAborted:
		s.state, notes = Aborted, append([]string{lead.failureText()}, notes...)
	case journal.RunStopped:
		s.state, notes = Stopped, append([]string{lead.failureText()}, notes...)
	}
	s.message = strings.Join(notes, "; ")
	return s
}

// failureText is how a node ended its part in the run, and why, for people.
func (p *participant) failureText() string {
	s := fmt.Sprintf("node %s %s", p.node, p.ended)
	if p.reason != "" {
		s += ": " + p.reason
	}
	return s
}

func (r *run) participant(role radio.Role) participant {
	for _, p := range r.participants {
		if p.role == role {
			return p
		}
	}
	return participant{}
}

// waitingFor returns what a run waits for before it begins, for people.
func waitingFor(r *run) []string {
	switch {
	case r.abort.reason != nil:
	case r.state == Queued:
		var out []string
		for _, b := range r.blockers {
			out = append(out, b.text())
		}
		if r.conflict != "" {
			out = append(out, r.conflict)
		}
		return out
	case r.state == Preparing:
		return missingPreparations(r)
	}
	return nil
}

// missingPreparations returns what the nodes have yet to do before the run can
// start, for people.
func missingPreparations(r *run) []string {
	var out []string
	for _, p := range r.participants {
		if !p.provenance {
			out = append(out, "the provenance of "+p.node)
		}
	}
	for _, l := range r.listeners {
		switch {
		case r.listening[l]:
		case l.At == "":
			out = append(out, fmt.Sprintf("the listener of %s on %s", l.Treatment, r.participant(radio.RoleServer).node))
		default:
			out = append(out, fmt.Sprintf("the relay process of %s on %s", l.Treatment, r.participant(l.At).node))
		}
	}
	return out
}
