package campaign

import (
	"fmt"

	"linktrial/internal/radio"
)

// air is the runs that may transmit on real radios, in the order in which they
// were queued. Emulated radios have an air of their own in each laboratory.
type air []*run

// held says why a run must not begin yet: an earlier one that has not ended
// transmits on frequencies that its radio fills too. As with nodes, nobody
// overtakes.
func (a air) held(r *run) string {
	if !r.onAir {
		return ""
	}
	for _, o := range a {
		if collide, why := radio.MayCollide(o.radio, r.radio); collide {
			return fmt.Sprintf("the end of run %s, so that the two do not transmit over each other: %s", o.id, why)
		}
	}
	return ""
}

// add notes that a run comes before the later ones. One whose trials are over
// transmits no more, unless its journals come over the radio.
func (a air) add(r *run) air {
	if !r.onAir || r.state == Collecting && !r.inBand {
		return a
	}
	return append(a, r)
}

// onAir says whether a run's nodes have real radios.
func (e *Engine) onAir(parts []part) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range parts {
		if n := e.nodes[p.node]; n != nil {
			return !n.Emulated && !n.Virtual
		}
	}
	return false
}
