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

// known says whether the nodes have been told of a run in the state.
func (s State) known() bool { return s != Queued && s != Waiting }

// leader is the role whose agent leads through the sheet.
const leader = radio.RoleClient

// run is all that the next step of a run depends on.
type run struct {
	id        string
	state     State
	attempted bool           // an attempt has started, so the leader has begun
	blocked   bool           // a node, or the radio's frequencies, are still taken by an earlier run
	held      string         // by which frequencies, for people; empty: by none
	radio     *radio.Profile // of the sheet
	onAir     bool           // the nodes have real radios
	listeners []string
	inBand    bool
	longest   time.Duration // that an agent of an in-band run may keep silent
	confirm   bool          // somebody has to say that the nodes were moved
	released  bool          // somebody has

	abort        *string // reason
	abortFault   bool
	abortAt      time.Time
	collectingAt time.Time

	parts     []part
	listening map[string]bool // treatments whose listener is ready, or has failed for good
}

// part is one node's part in a run.
type part struct {
	role        radio.Role
	node        string
	ended       journal.RunEnd // empty: not yet
	reason      string
	provenance  bool
	deliveredAt time.Time
	connected   bool
}

// Waits bounds how long a run waits for a node that says nothing.
type Waits struct {
	Abort   time.Duration // for the nodes to end after an abort
	Collect time.Duration // for a journal that brings nothing new
}

type verb int

const (
	stay    verb = iota
	await        // queued → waiting
	prepare      // queued or waiting → preparing
	start        // preparing → running
	collect      // → collecting
	fault        // ask for the run's abort because of a node
	end          // → completed, aborted or stopped
)

type step struct {
	verb    verb
	state   State  // of end
	message string // of end and fault
}

// next is what is to happen with the run now.
func next(r *run, now time.Time, w Waits) step {
	lead := r.part(leader)
	if r.abort != nil && lead.ended != journal.RunCompleted {
		return nextAborting(r, now, w)
	}
	switch r.state {
	case Queued:
		if !r.blocked && r.confirm && !r.released {
			return step{verb: await}
		}
		if !r.blocked {
			return step{verb: prepare}
		}
	case Waiting:
		if r.released {
			return step{verb: prepare}
		}
	case Preparing, Running:
		if lead.ended != "" {
			return step{verb: collect}
		}
		for _, p := range r.parts {
			if p.ended == journal.RunStopped || p.ended == journal.RunAborted {
				return step{verb: fault, message: p.fate()}
			}
		}
		if r.state == Preparing && (r.attempted || len(waitingFor(r)) == 0) {
			return step{verb: start}
		}
	case Collecting:
		return nextCollecting(r, now, w)
	}
	return step{}
}

// nextAborting waits for the nodes to end, but not for one that is away: its
// records are taken whenever they come, and it is told when it is back.
func nextAborting(r *run, now time.Time, w Waits) step {
	wait := w.Abort
	if r.inBand {
		wait += r.longest // it keeps silent while a trial runs, and is not away
	}
	for _, p := range r.parts {
		there := p.connected || r.inBand
		if r.state.known() && p.ended == "" && there && now.Sub(r.abortAt) < wait {
			return step{}
		}
	}
	state := Aborted
	if r.abortFault {
		state = Stopped
	}
	return step{verb: end, state: state, message: *r.abort}
}

func nextCollecting(r *run, now time.Time, w Waits) step {
	wait := w.Collect
	if r.inBand {
		wait += r.longest
	}
	var notes []string
	for _, p := range r.parts {
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
			notes = append(notes, p.fate())
		}
	}
	s := step{verb: end, state: Completed}
	switch lead := r.part(leader); lead.ended {
	case journal.RunAborted:
		s.state, notes = Aborted, append([]string{lead.fate()}, notes...)
	case journal.RunStopped:
		s.state, notes = Stopped, append([]string{lead.fate()}, notes...)
	}
	s.message = strings.Join(notes, "; ")
	return s
}

func (p *part) fate() string {
	s := fmt.Sprintf("node %s %s", p.node, p.ended)
	if p.reason != "" {
		s += ": " + p.reason
	}
	return s
}

func (r *run) part(role radio.Role) part {
	for _, p := range r.parts {
		if p.role == role {
			return p
		}
	}
	return part{}
}

// waitingFor is what a run in preparation lacks, for people.
func waitingFor(r *run) []string {
	var out []string
	for _, p := range r.parts {
		if !p.provenance {
			out = append(out, "the provenance of "+p.node)
		}
	}
	server := r.part(radio.RoleServer).node
	for _, t := range r.listeners {
		if !r.listening[t] {
			out = append(out, fmt.Sprintf("the listener of %s on %s", t, server))
		}
	}
	return out
}
