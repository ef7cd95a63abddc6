package link

import (
	"linktrial/emulator/channel"
	"linktrial/internal/radio"
)

// handOut is how the radio at a packet's destination gives it to the node: some twice, some
// later than those behind them. What becomes of a packet follows from the seed, the
// direction and the packet's number there, so that repeats are the same.
type handOut struct {
	reordering  *radio.Reordering
	duplication *radio.Duplication
	held        map[uint64]packet // by direction and number; only ever looked up
}

// Purposes of draws; the index of a direction is below.
const (
	purposeDuplicate uint64 = 3 << 32
	purposeHold      uint64 = 4 << 32
)

func heldKey(direction int, number uint64) uint64 { return uint64(direction)<<48 | number }

// arrived hands out a packet that has come over the last hop of its way, now or later.
func (l *Network) arrived(i int, p packet) {
	d, h := &l.directions[i], &l.handOut
	n := d.handed
	d.handed++
	if c := h.duplication; c != nil && channel.Draw(l.seed, purposeDuplicate|uint64(i), n) < c.Share {
		d.hop.DuplicatedPackets++
		l.exits = append(l.exits, Exit{At: l.now, Node: d.to, Handle: p.handle, Bytes: int(p.bytes), Outcome: Delivered, Marked: p.marked, Copy: true})
	}
	if r := h.reordering; r != nil && channel.Draw(l.seed, purposeHold|uint64(i), n) < r.Share {
		d.hop.HeldPackets++
		if h.held == nil {
			h.held = map[uint64]packet{}
		}
		h.held[heldKey(i, n)] = p
		l.timers.push(timer{at: l.now + r.Delay, kind: timerHeld, direction: int32(i), frame: n})
		return
	}
	l.leave(d.to, p, Delivered)
}

// letGo hands out a packet that was held back.
func (l *Network) letGo(i int, number uint64) {
	key := heldKey(i, number)
	p := l.handOut.held[key]
	delete(l.handOut.held, key)
	l.leave(l.directions[i].to, p, Delivered)
}
