package link

import "time"

// Conditions are what a lane does to packets. Zero lets everything pass at once.
// What comes is cut, else held, else lost, else passed with rate and delay.
type Conditions struct {
	// Cut drops everything.
	Cut bool
	// Hold reports whether a packet is held back until [Lane.Release].
	Hold func(Packet) bool
	// Lose reports whether a packet is lost.
	Lose func(Packet) bool
	// BitsPerSecond is the rate, 0: as fast as it goes. Backlog is how many bytes
	// wait for it before packets are dropped; 0: 64 KiB.
	BitsPerSecond int64
	Backlog       int
	// Delay of every packet.
	Delay time.Duration
	// Loss, Duplicate and Reorder are shares of the packets (0 to 1). At least
	// every lossRun-th packet is lost where Loss is not 0. A reordered packet is
	// delayed by another reorderDelay.
	Loss, Duplicate, Reorder float64
}

const (
	lossRun        = 25
	reorderDelay   = 60 * time.Millisecond
	defaultBacklog = 64 << 10
	// maxHeldBytes bounds what a lane keeps of a sender that goes on while it is
	// held; what comes after that is lost.
	maxHeldBytes = 64 << 20
)

// Packet is what [Conditions] decide on. The functions of Conditions are called
// with the link locked, for one packet after another of one lane: they must not
// call the link.
type Packet struct {
	Flow, Number int   // the flow, and the packet in it; both count from 0
	Content      int64 // of this packet, see [Traffic.Content]
	Came, Passed int64 // [Traffic.Content] with this packet, [Traffic.Passed] before it
}

// HoldAfter holds everything from the packet on with which more than so many
// bytes of content would have passed; with -1 the first packet too. The function
// is for one lane.
func HoldAfter(content int64) func(Packet) bool {
	holds := false
	return func(p Packet) bool {
		holds = holds || p.Passed+p.Content > content
		return holds
	}
}

// take decides on one packet, which was read just before at.
func (d *Lane) take(packet []byte, at time.Time) {
	h, ok := readHeader(packet)
	if !ok {
		return // what the kernel says of itself: neighbours, groups
	}
	d.link.mu.Lock()
	defer d.link.mu.Unlock()
	defer d.link.changed.Notify()
	d.seen.came(h, len(packet), at, d.mark)
	p := d.number(h)
	switch {
	case d.c.Cut:
		d.seen.Lost++
	case d.c.Hold != nil && d.c.Hold(p):
		if d.heldBytes += len(packet); d.heldBytes <= maxHeldBytes {
			d.held = append(d.held, packet)
			d.seen.Held = len(d.held)
		}
	case d.c.Lose != nil && d.c.Lose(p) || d.lost():
		d.seen.Lost++
	case d.pass(packet, time.Now()):
		d.seen.Passed += h.content
	default:
		d.seen.Lost++
	}
}

// number finds the place of a packet in its flow.
func (d *Lane) number(h header) Packet {
	f := d.flows[h.flow]
	if f == nil {
		f = &flow{number: len(d.flows)}
		d.flows[h.flow] = f
		d.seen.Flows++
	}
	p := Packet{Flow: f.number, Number: f.packets, Content: h.content, Came: d.seen.Content, Passed: d.seen.Passed}
	f.packets++
	return p
}

func (d *Lane) lost() bool {
	if d.c.Loss == 0 {
		return false
	}
	if d.run++; d.run < lossRun && d.rng.Float64() >= d.c.Loss {
		return false
	}
	d.run = 0
	return true
}

// pass puts a packet on its way, at the rate and with the delay; false: too much
// waits for the rate, and it is dropped.
func (d *Lane) pass(packet []byte, now time.Time) bool {
	due := now
	if d.c.BitsPerSecond > 0 {
		if d.free.Before(now) {
			d.free = now
		}
		backlog := d.c.Backlog
		if backlog == 0 {
			backlog = defaultBacklog
		}
		if waiting := d.free.Sub(now).Seconds() * float64(d.c.BitsPerSecond) / 8; waiting > float64(backlog) {
			return false
		}
		d.free = d.free.Add(time.Duration(float64(len(packet)) * 8 / float64(d.c.BitsPerSecond) * 1e9))
		due = d.free
	}
	due = due.Add(d.c.Delay)
	if d.c.Reorder > 0 && d.rng.Float64() < d.c.Reorder {
		due = due.Add(reorderDelay)
	}
	d.queue.add(packet, due)
	if d.c.Duplicate > 0 && d.rng.Float64() < d.c.Duplicate {
		d.queue.add(packet, due)
		d.seen.Doubled++
	}
	return true
}
