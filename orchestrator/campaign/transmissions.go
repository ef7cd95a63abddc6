package campaign

import (
	"fmt"

	"linktrial/internal/radio"
)

// activeTransmissions is the runs that may transmit on real radios, in the order
// in which they were queued. Emulated radios of different laboratories do not
// hear one another.
type activeTransmissions []*run

// conflict returns why a run must not begin yet, for people; empty: nothing is
// in its way. The reason is an earlier run that has not ended and transmits on
// frequencies that overlap. As with nodes, no run overtakes another.
func (a activeTransmissions) conflict(r *run) string {
	if !r.realRadios {
		return ""
	}
	for _, earlier := range a {
		if collide, why := radio.MayCollide(earlier.radio, r.radio); collide {
			return fmt.Sprintf("the end of run %s, so that the two do not transmit over each other: %s", earlier.id, why)
		}
	}
	return ""
}

// add returns the transmissions that the runs after r have to consider. A run
// whose trials are over transmits no more, unless its journals come over the
// radio.
func (a activeTransmissions) add(r *run) activeTransmissions {
	if !r.realRadios || r.state == Collecting && !r.inBand {
		return a
	}
	return append(a, r)
}

// realRadiosOf reports whether the nodes of a run have real radios, and whether it is
// known which.
func (e *Engine) realRadiosOf(all []participant) (real, named bool) {
	for _, p := range all {
		if n, ok := e.Nodes.Get(p.node); ok {
			real = !n.Emulated && !n.Virtual
			return real, !real || n.Radio != ""
		}
	}
	return false, true
}
