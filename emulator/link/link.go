// Package link is the emulated radio network as a discrete-event model:
// queues, rates, medium access, relaying, losses. Comes in: packets that enter
// at a node, and the time. Goes out: when and where each comes out, or that it
// was lost or dropped. Pure: no clock, no I/O, no goroutines; imports
// emulator/channel, internal/radio and internal/radiocontrol.
//
// Time is the time since the trial's start and never decreases from call to
// call. Every moment is computed from the moments before it, not from when the
// caller woke, so a late caller adds no drift to rates.
//
// # Medium access
//
// Radios that share a medium take turns: the one free of the medium goes to
// the next radio, in the order of the network's nodes, that has a packet
// waiting, one packet a turn. That is what carrier sense and TDMA give in the
// mean to radios that always have something to send, it starves nobody, and it
// needs no dice. First come, first served over all radios would need radios to
// know of each other's queues. When the transmitter changes, the medium lies
// idle for the turnaround; one that has been idle so long already is used at once.
package link

import (
	"errors"
	"fmt"
	"math"
	"time"

	"linktrial/emulator/channel"
	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol"
)

// Outcome says what became of a packet.
type Outcome uint8

const (
	Delivered Outcome = iota // came out at its destination
	Lost                     // by the channel
	Dropped                  // by a full queue of a relay
)

// Exit is a packet that is in the network no more.
type Exit struct {
	At      time.Duration
	Node    int // where: the destination; the receiver that missed it; the relay whose queue was full
	Handle  uint32
	Bytes   int
	Outcome Outcome
}

// Event is what an observer sees of one packet at one hop.
type Event struct {
	At      time.Duration // start of the transmission, or the moment of the drop
	Hop     int           // index into Hops
	Handle  uint32
	Bytes   int
	Outcome Outcome // Delivered: by this hop
}

type packet struct {
	enqueued time.Duration
	order    uint64 // of arrival at the radio
	due      time.Duration
	bytes    int32
	dst      int16
	lost     bool
	handle   uint32
}

// direction is one direction of one link.
type direction struct {
	from, to  int
	medium    int
	nsPerByte float64
	delay     time.Duration
	channel   channel.Process

	waiting      ring
	waitingBytes int
	inFlight     ring // transmitted, not yet arrived: one delay for all, so in order
	hop          radiocontrol.Hop
}

// medium is what can carry one transmission at a time.
type medium struct {
	directions  []int
	transmitter int // radio of the last transmission, -1 before the first
	free        time.Duration
	busy        bool // a transmission is under way or committed; it ends at free
	on          int  // its direction
	start       time.Duration
}

type node struct {
	role    radio.Role
	packets int // waiting, in all directions
	bytes   int
}

// Network is the state of all radios. Not safe for concurrent use.
type Network struct {
	overheadBytes int
	turnaround    time.Duration
	queue         radio.Queue
	shared        bool

	nodes      []node
	directions []direction
	media      []medium
	next       []int // [at*len(nodes)+dst]: direction to take, -1 for none

	now      time.Duration
	order    uint64
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
	l := &Network{overheadBytes: n.FrameOverheadBytes, turnaround: n.Turnaround, queue: n.Queue, shared: n.Medium == radio.MediumShared}
	for _, v := range n.Nodes {
		l.nodes = append(l.nodes, node{role: v.Role})
	}
	if l.shared {
		l.media = append(l.media, medium{transmitter: -1})
	}
	for i := range n.Links {
		k := &n.Links[i]
		if n.Medium == radio.MediumHalfDuplex {
			l.media = append(l.media, medium{transmitter: -1})
		}
		for _, end := range [2][2]radio.Role{{k.A, k.B}, {k.B, k.A}} {
			if n.Medium == radio.MediumFullDuplex {
				l.media = append(l.media, medium{transmitter: -1})
			}
			p, err := Realisation(n, k, end[0], end[1], seed)
			if err != nil {
				return nil, err
			}
			m := len(l.media) - 1
			l.media[m].directions = append(l.media[m].directions, len(l.directions))
			l.directions = append(l.directions, direction{
				from: l.Node(end[0]), to: l.Node(end[1]), medium: m,
				nsPerByte: nsPerByte(k), delay: k.Delay, channel: p,
				hop: radiocontrol.Hop{From: end[0], To: end[1]},
			})
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

// Realisation draws the error process of one direction of a link of n.
func Realisation(n *radio.Network, k *radio.Link, from, to radio.Role, seed uint64) (channel.Process, error) {
	p, err := channel.New(*k.Toward(to), channel.Params{Packet: Airtime(n, k, n.MTUBytes), Bit: nsPerByte(k) / 8}, channel.Seed(seed, from, to))
	if err != nil {
		return nil, fmt.Errorf("link %s to %s: %w", from, to, err)
	}
	return p, nil
}

// Airtime is how long an IP packet of the given size occupies the medium, with
// the frame around it, rounded to the nanosecond.
func Airtime(n *radio.Network, k *radio.Link, bytes int) time.Duration {
	return airtime(nsPerByte(k), bytes+n.FrameOverheadBytes)
}

func nsPerByte(k *radio.Link) float64 { return 8e9 / k.RateBitsPerSecond }

func airtime(nsPerByte float64, bytes int) time.Duration {
	return max(1, time.Duration(math.Round(float64(bytes)*nsPerByte)))
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

// Routable tells whether packets can get from one node to another.
func (l *Network) Routable(from, to int) bool { return l.next[from*len(l.nodes)+to] >= 0 }

// Enter puts a packet into the queue of the radio at node from. It returns
// false, and does not keep the handle, when the queue is full; the pair must
// be routable.
func (l *Network) Enter(now time.Duration, from, to, bytes int, handle uint32) bool {
	l.run(now)
	ok := l.enqueue(from, packet{bytes: int32(bytes), dst: int16(to), handle: handle})
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
		if m := &l.media[d.medium]; m.busy && m.on == i {
			out[i].Airtime -= m.rest(l.now)
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
	var sum, most time.Duration
	for _, h := range l.Hops() {
		sum += h.Airtime
		most = max(most, h.Airtime)
	}
	if l.shared {
		most = sum
	}
	return float64(most) / float64(l.now)
}

// rest is the part of the current transmission that lies after now.
func (m *medium) rest(now time.Duration) time.Duration { return max(0, m.free-max(now, m.start)) }

// Check says what is wrong with a network: everything at once.
func Check(n *radio.Network) error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if n.MTUBytes < 68 || n.MTUBytes > 65535 {
		bad("MTU is %d bytes, expected 68 (the least that IPv4 allows, RFC 791) to 65535", n.MTUBytes)
	}
	switch n.Medium {
	case radio.MediumFullDuplex, radio.MediumHalfDuplex, radio.MediumShared:
	default:
		bad("medium %q, expected %s, %s or %s", n.Medium, radio.MediumFullDuplex, radio.MediumHalfDuplex, radio.MediumShared)
	}
	if n.Turnaround < 0 {
		bad("turnaround is %s, expected no negative time", n.Turnaround)
	}
	if n.FrameOverheadBytes < 0 {
		bad("frame overhead is %d bytes, expected no negative number", n.FrameOverheadBytes)
	}
	if n.Queue.Bytes < 0 || n.Queue.Packets < 0 {
		bad("queue is %d bytes and %d packets, expected no negative numbers", n.Queue.Bytes, n.Queue.Packets)
	} else if n.Queue.Bytes > 0 && n.Queue.Bytes < n.MTUBytes {
		bad("queue is %d bytes, less than one packet of %d", n.Queue.Bytes, n.MTUBytes)
	}
	for _, m := range []struct {
		name  string
		there bool
	}{
		{"framing", n.Framing != nil}, {"forward error correction", n.FEC != nil}, {"ARQ", n.ARQ != nil},
		{"medium access", n.Access != nil}, {"RED", n.Queue.RED != nil},
	} {
		if m.there {
			bad("%s is given, which the emulator does not have", m.name)
		}
	}
	if len(n.Nodes) < 2 || len(n.Nodes) > 64 {
		bad("%d nodes, expected 2 to 64", len(n.Nodes))
	}
	known := map[radio.Role]bool{}
	for _, v := range n.Nodes {
		if known[v.Role] {
			bad("two nodes are %q", v.Role)
		}
		known[v.Role] = true
	}
	pairs := map[[2]radio.Role]bool{}
	for _, k := range n.Links {
		name := fmt.Sprintf("link %s–%s", k.A, k.B)
		if !known[k.A] || !known[k.B] || k.A == k.B {
			bad("%s does not join two nodes of the network", name)
		}
		if pairs[[2]radio.Role{k.A, k.B}] || pairs[[2]radio.Role{k.B, k.A}] {
			bad("%s is given twice", name)
		}
		pairs[[2]radio.Role{k.A, k.B}] = true
		if !(k.RateBitsPerSecond >= 1 && k.RateBitsPerSecond <= 1e12) {
			bad("%s: rate is %g bit/s, expected 1 to 1e12", name, k.RateBitsPerSecond)
		}
		if k.Delay < 0 || k.Delay > time.Hour {
			bad("%s: delay is %s, expected 0 to 1h", name, k.Delay)
		}
		for _, to := range []radio.Role{k.B, k.A} {
			if err := channel.Check(*k.Toward(to)); err != nil {
				bad("%s towards %s: %w", name, to, err)
			}
		}
	}
	return errors.Join(errs...)
}
