package link

import (
	"time"

	"linktrial/emulator/channel"
	"linktrial/internal/radio"
)

// tdma is the slots of a shared medium (radio.TDMA).
type tdma struct {
	slot, guard time.Duration
	owners      []int // node by slot of the round
}

// fit is the first moment from at on at which a node may start a transmission
// so long that it ends within its slot.
func (t *tdma) fit(node int, at, air time.Duration) time.Duration {
	first := int64(at / t.slot)
	for i := first; i <= first+int64(len(t.owners)); i++ {
		begin := time.Duration(i) * t.slot
		if t.owners[i%int64(len(t.owners))] != node {
			continue
		}
		if start := max(at, begin); start+air <= begin+t.slot-t.guard {
			return start
		}
	}
	return channel.Forever
}

// Slots is when a radio may start transmissions, where the medium has a
// schedule; nil where it has none.
type Slots struct {
	t    *tdma
	node int
}

// NewSlots is the schedule of a node of a checked network.
func NewSlots(n *radio.Network, node radio.Role) *Slots {
	if n.Access == nil || n.Access.TDMA == nil {
		return nil
	}
	for i, v := range n.Nodes {
		if v.Role == node {
			return &Slots{t: newTDMA(n), node: i}
		}
	}
	return nil
}

// Fit is the first moment from at on for a transmission of the given length.
func (s *Slots) Fit(at, air time.Duration) time.Duration {
	if s == nil {
		return at
	}
	return s.t.fit(s.node, at, air)
}

func newTDMA(n *radio.Network) *tdma {
	t := &tdma{slot: n.Access.TDMA.Slot, guard: n.Access.TDMA.Guard}
	for _, o := range n.Access.TDMA.Owners {
		for i, v := range n.Nodes {
			if v.Role == o {
				t.owners = append(t.owners, i)
			}
		}
	}
	return t
}

// backoff is a radio's part in the contention for a medium (radio.CSMA).
type backoff struct {
	contending bool
	counting   bool          // target is of the present idle time; else left slots remain
	target     time.Duration // when the count reaches zero
	left       int64         // slots
	window     int
	tries      int // collisions of the present transmission
	draws      uint64
}

// count gives a radio that has something to send the moment at which it may.
// begin is when the medium was idle for long enough.
func (b *backoff) count(c *radio.CSMA, seed, node uint64, begin, now time.Duration) time.Duration {
	if !b.contending {
		if b.tries == 0 {
			b.window = c.WindowMin
		}
		b.draws++
		b.left = int64(channel.Draw(seed, purposeBackoff|node, b.draws) * float64(b.window+1))
		if late := now - begin; late > 0 { // joins the others' slots
			b.left += int64((late + c.Slot - 1) / c.Slot)
		}
		b.contending, b.counting = true, false
	}
	if !b.counting {
		b.target, b.counting = begin+time.Duration(b.left)*c.Slot, true
	}
	return b.target
}

// Gap is how long a medium must have been idle before anybody may use it.
func Gap(n *radio.Network) time.Duration {
	if n.Access == nil || n.Access.CSMA == nil {
		return 0
	}
	return max(n.Access.CSMA.DIFS, n.Turnaround)
}

// freeze stops the count of a radio when another begins at a moment.
func (b *backoff) freeze(c *radio.CSMA, at time.Duration) {
	if b.contending && b.counting {
		b.left, b.counting = int64((b.target-at)/c.Slot), false
	}
}

// sent ends the contention; collided reports whether the transmission failed. It returns false
// when the transmission is given up.
func (b *backoff) sent(c *radio.CSMA, collided bool) bool {
	b.contending, b.counting = false, false
	if !collided {
		b.tries = 0
		return true
	}
	b.window = min(2*b.window+1, c.WindowMax)
	if b.tries++; b.tries > c.Retries {
		b.tries = 0
		return false
	}
	return true
}
