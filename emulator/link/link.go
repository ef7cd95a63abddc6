// Package link is the emulated radio network as a discrete-event model:
// queues, rates, medium access, relaying, losses. Comes in: packets that enter
// at a node, and the time. Goes out: when and where each comes out, or that it
// was lost or dropped. Pure: no clock, no I/O, no goroutines.
//
// Time is the time since the trial's start and never decreases from call to
// call. Every moment is computed from the moments before it, not from when the
// caller woke, so a late caller adds no drift to rates.
//
// # Medium access
//
// Where the network names no access scheme, radios that share a medium take
// turns: a free medium goes to the next radio, in the order of the network's nodes, that has a packet
// waiting, one packet a turn. That is what carrier sense and TDMA give in the
// mean to radios that always have something to send, it starves no radio, and it
// needs no random numbers. First come, first served over all radios would need radios to
// know of each other's queues. When the transmitter changes, the medium lies
// idle for the turnaround; one that has been idle so long already is used at
// once. With framing a turn is all frames of a packet, or with ARQ one NACK or
// one frame again. With TDMA every frame is by itself.
package link

import (
	"time"

	"linktrial/emulator/channel"
	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol"
)

// Outcome is how a packet left the network.
type Outcome uint8

const (
	Delivered Outcome = iota // came out at its destination
	Lost                     // by the channel
	Dropped                  // by the queue of a relay
)

// Exit is a packet that has left the network.
type Exit struct {
	At      time.Duration
	Node    int // where: the destination; the receiver that missed it; the relay whose queue was full
	Handle  uint32
	Bytes   int
	Outcome Outcome
	Marked  bool // by a queue: the packet has met congestion
	Copy    bool // of a packet that comes out again, with the same handle
}

// Event is what an observer sees of one packet at one hop.
type Event struct {
	At      time.Duration // start of the transmission; the moment of the drop; with ARQ, of the delivery or loss
	Hop     int           // index into Hops
	Handle  uint32
	Bytes   int
	Outcome Outcome // Delivered: by this hop
	Marked  bool    // here or before
}

type packet struct {
	enqueued time.Duration
	started  time.Duration // on the air
	order    uint64        // of arrival at the radio
	bytes    int32
	dst      int16
	lost     bool
	capable  bool // of ECN
	marked   bool
	handle   uint32
}

// flight is something transmitted that has not arrived yet.
type flight struct {
	due   time.Duration
	kind  unitKind
	lost  bool
	p     packet // unitPacket
	frame uint64
}

type unitKind uint8

const (
	unitPacket unitKind = iota // a packet, or one of its frames where there is no ARQ
	unitFrame                  // a frame under ARQ
	unitNACK                   // for a frame of the other direction
)

// unit is one transmission: what a radio puts on the air in one go.
type unit struct {
	loaded bool // taken from the queues and not on the air to the end
	kind   unitKind
	bytes  int // headers included
	frame  uint64
	lost   bool
}

// direction is one direction of one link.
type direction struct {
	from, to  int
	medium    int
	back      int // the other direction of the link
	line      *Line
	arq       *arq
	frameSize int // bytes on the air
	nackBytes int

	waiting      ring[packet]
	waitingBytes int
	nacks        ring[uint64] // to be sent here, for frames of the other direction

	// The packet whose frames are being sent.
	sent, frames int // of frames; frames 0: none is under way
	lastFrame    int // bytes
	unit         unit
	onAir        bool
	start, end   time.Duration // of the transmission
	delay        time.Duration // of what is on the air

	inFlight ring[flight]
	lastDue  time.Duration
	handed   uint64 // packets that have come to their destination over it
	hop      radiocontrol.Hop

	// The line at its best at any time: bounds of what is still to come.
	fastest float64 // bit/s
	nearest time.Duration
}

// medium is what can carry one transmission at a time, or several that collide.
type medium struct {
	directions  []int
	transmitter int // radio of the last transmission, -1 before the first
	start, free time.Duration
	busy        bool // a transmission is under way or committed; it ends at free
	on          []int
	wake        time.Duration // when to check again whether a radio may send
	carried     time.Duration
	nearest     time.Duration // the shortest delay of its directions at any time
}

type node struct {
	role    radio.Role
	packets int // waiting, in all directions
	bytes   int
	packet  time.Duration // airtime of a full-sized packet
	red     redState
	backoff backoff
}

// Network is the state of all radios. Not safe for concurrent use.
type Network struct {
	turnaround time.Duration
	queue      radio.Queue
	shared     bool
	seed       uint64
	tdma       *tdma
	csma       *radio.CSMA
	gap        time.Duration // CSMA: idle time before the count

	nodes      []node
	directions []direction
	media      []medium
	next       []int // [at*len(nodes)+dst]: direction to take, -1 for none

	now      time.Duration
	order    uint64
	timers   timers
	handOut  handOut
	inside   int
	exits    []Exit
	given    int // exits handed out by the last Advance
	observer func(Event)
}

// New makes a network at time 0 with the realisation of the given seed.
func New(n *radio.Network, seed uint64) (*Network, error) {
	if err := Check(n); err != nil {
		return nil, err
	}
	l := &Network{handOut: handOut{reordering: n.Reordering, duplication: n.Duplication}, turnaround: n.Turnaround, queue: n.Queue, shared: n.Medium == radio.MediumShared, seed: seed}
	if a := n.Access; a != nil && a.TDMA != nil {
		l.tdma = newTDMA(n)
	} else if a != nil {
		l.csma, l.gap = a.CSMA, Gap(n)
	}
	for _, v := range n.Nodes {
		l.nodes = append(l.nodes, node{role: v.Role, packet: channel.Forever})
	}
	newMedium := func() {
		l.media = append(l.media, medium{transmitter: -1, wake: channel.Forever, nearest: channel.Forever})
	}
	if l.shared {
		newMedium()
	}
	for i := range n.Links {
		k := &n.Links[i]
		if n.Medium == radio.MediumHalfDuplex {
			newMedium()
		}
		for _, end := range [2][2]radio.Role{{k.A, k.B}, {k.B, k.A}} {
			if n.Medium == radio.MediumFullDuplex {
				newMedium()
			}
			line, err := NewLine(n, k, end[0], end[1], seed)
			if err != nil {
				return nil, err
			}
			m := len(l.media) - 1
			l.media[m].directions = append(l.media[m].directions, len(l.directions))
			d := direction{
				from: l.Node(end[0]), to: l.Node(end[1]), medium: m, back: len(l.directions) ^ 1, line: line,
				hop: radiocontrol.Hop{From: end[0], To: end[1]},
			}
			if n.Framing != nil {
				d.frameSize = n.Framing.FrameBytes
			}
			if n.ARQ != nil {
				d.arq = newARQ(n.ARQ, line.Air(d.frameSize, k.RateBitsPerSecond))
				d.nackBytes = max(1, n.Framing.HeaderBytes)
			}
			_, d.fastest, d.nearest = line.Extremes()
			l.media[m].nearest = min(l.media[m].nearest, d.nearest)
			v := &l.nodes[d.from]
			v.packet = min(v.packet, line.Airtime(n.MTUBytes, k.RateBitsPerSecond))
			l.directions = append(l.directions, d)
		}
	}
	l.next = make([]int, len(l.nodes)*len(l.nodes))
	for at := range l.nodes {
		for dst := range l.nodes {
			l.next[at*len(l.nodes)+dst] = l.towards(n, at, dst)
		}
	}
	return l, nil
}

// towards is the direction that the network's route takes first.
func (l *Network) towards(n *radio.Network, at, dst int) int {
	route := n.Route(l.nodes[at].role, l.nodes[dst].role)
	if len(route) < 2 {
		return -1
	}
	for i := range l.directions {
		if d := &l.directions[i]; d.from == at && l.nodes[d.to].role == route[1] {
			return i
		}
	}
	return -1
}

// Node is the index of a role's node, -1 when there is none.
func (l *Network) Node(role radio.Role) int {
	for i := range l.nodes {
		if l.nodes[i].role == role {
			return i
		}
	}
	return -1
}

// Observe has f called for every packet at every hop, before its exit is
// handed out; nil ends it. Events of one hop are in order of time.
func (l *Network) Observe(f func(Event)) { l.observer = f }

// Routable reports whether packets can get from one node to another.
func (l *Network) Routable(from, to int) bool { return l.next[from*len(l.nodes)+to] >= 0 }

// Enter puts a packet into the queue of the radio at node from; capable means
// that its transport understands marks (ECT, RFC 3168). It returns false, and
// does not keep the handle, when the queue does not take it; the pair must be
// routable.
func (l *Network) Enter(now time.Duration, from, to, bytes int, handle uint32, capable bool) bool {
	l.run(now)
	ok := l.enqueue(from, packet{bytes: int32(bytes), dst: int16(to), handle: handle, capable: capable})
	if ok {
		l.inside++
	}
	return ok
}

// Advance moves to now and returns the packets that have left since the last
// Advance, in order of time. The slice is valid until the next call.
func (l *Network) Advance(now time.Duration) []Exit {
	if l.given > 0 {
		l.exits = l.exits[:copy(l.exits, l.exits[l.given:])]
	}
	l.run(now)
	l.given = len(l.exits)
	return l.exits
}

// NextEvent is when the network next has something to do by itself.
func (l *Network) NextEvent() (time.Duration, bool) {
	at, _, _ := l.earliest()
	return at, at != channel.Forever
}

// Inside counts the packets that are queued, on the air or on their way.
func (l *Network) Inside() int { return l.inside }

// Hops are the counters of every direction, as of the last moment advanced to.
// An index is the same for the life of the network.
func (l *Network) Hops() []radiocontrol.Hop {
	out := make([]radiocontrol.Hop, len(l.directions))
	for i := range l.directions {
		d := &l.directions[i]
		out[i] = d.hop
		if d.onAir {
			out[i].Airtime += elapsed(d.start, d.end, l.now)
		}
	}
	return out
}

// BusyShare is the part of the time so far in which the shared medium, or else
// the busiest direction, carried a transmission.
func (l *Network) BusyShare() float64 {
	if l.now <= 0 {
		return 0
	}
	var most time.Duration
	if l.shared {
		if m := &l.media[0]; m.busy {
			most = m.carried + elapsed(m.start, m.free, l.now)
		} else {
			most = m.carried
		}
	} else {
		for _, h := range l.Hops() {
			most = max(most, h.Airtime)
		}
	}
	return float64(most) / float64(l.now)
}

// elapsed is the part of a time that lies before now.
func elapsed(start, end, now time.Duration) time.Duration { return max(0, min(end, now)-start) }
