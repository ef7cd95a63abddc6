// Package radiocontrol is the protocol between the leading agent and the emulated
// radio network: JSON lines over a Unix socket, one reply to each request, in order. Comes
// in: networks and trial boundaries. Goes out: counters, Ideal and the coded bound.
//
// A trial's channel realisation is drawn from the seed in [Begin] and its
// clock starts when Begin is answered, so that every treatment of an iteration
// meets the same fades at the same moments of its own trial.
package radiocontrol

import (
	"time"

	"linktrial/internal/radio"
	"linktrial/internal/signature"
)

// Request is one line to the emulator; exactly one field is set.
type Request struct {
	// Configure replaces the network: rates, channels, medium. Nodes keep
	// their devices and addresses. Packets in flight are dropped.
	Configure *radio.Network `json:"configure,omitempty"`
	Begin     *Begin         `json:"begin,omitempty"`
	End       *End           `json:"end,omitempty"`
	Status    *struct{}      `json:"status,omitempty"`
	// Quiet asks whether the radios are quiet, and waits for that for a second at most.
	Quiet *Quiet `json:"quiet,omitempty"`
	// Vouch asks for the lab's signature that a node's radio is one of the emulator's.
	Vouch *Vouch `json:"vouch,omitempty"`
}

// Vouch is who asks, and what is to be signed. The emulator signs where the node of that
// role has that address, and the interface in that namespace is the emulator's own device.
type Vouch struct {
	Statement signature.LabStatement `json:"statement"`
	Namespace string                 `json:"namespace"` // network namespace, as /proc/self/ns/net names it
	Interface int                    `json:"interface"` // index of the radio's interface there
}

// Quiet asks whether the radios are quiet between trials.
type Quiet struct {
	Flush bool `json:"flush,omitempty"` // empty the queues first
	// For is how long at least no packet must have been in a radio, 10 s at most.
	For time.Duration `json:"for_ns,omitempty"`
}

// Begin starts a trial on the emulated radios: queues are emptied, counters set to zero,
// the channel realisation drawn anew and its clock started.
type Begin struct {
	Trial string `json:"trial"` // for the packet log and for errors
	Seed  uint64 `json:"seed,string"`
	Flows []Flow `json:"flows"` // what Ideal and the coded bound are computed for
	// Capture, when set, is the path of a pcapng file to write: every packet
	// at every hop, one interface a hop and direction.
	Capture string `json:"capture,omitempty"`
	// Listeners are the ports that listeners can have: [Traffic] is told apart by them, and
	// one end's other port is left out. Empty: no traffic is reported.
	Listeners PortRange `json:"listeners,omitzero"`
	// Window is the time of [Traffic.MostInWindow]; 0: it is not reported.
	Window time.Duration `json:"window_ns,omitempty"`
	// TolerateLate is by how much a packet may come out of the radios later than it is due
	// without an effect on a measured value; 0: lateness is not reported.
	TolerateLate time.Duration `json:"tolerate_late_ns,omitempty"`
}

// Flow is one transfer of the trial.
type Flow struct {
	From      radio.Role `json:"from"`
	To        radio.Role `json:"to"`
	SizeBytes int64      `json:"size_bytes"`
	// Recut: a node between From and To ends the connection and puts the bytes into
	// packets of its own, which need not have the sizes of those that arrived.
	Recut bool `json:"recut,omitempty"`
	// Ports are those of the listeners on its way: of each, [Traffic] has the moments.
	Ports []int `json:"ports,omitempty"`
}

// PortRange is the ports from First to Last.
type PortRange struct {
	First int `json:"first"`
	Last  int `json:"last"`
}

// Contains reports whether a port is in the range.
func (r PortRange) Contains(port int) bool { return port >= r.First && port <= r.Last && port != 0 }

// End closes the trial and asks for its report.
type End struct {
	Trial string `json:"trial"`
}

// Reply answers a request. Error is empty when all went well.
type Reply struct {
	Error  string  `json:"error,omitempty"`
	Report *Report `json:"report,omitempty"` // to End
	Status *Status `json:"status,omitempty"` // to Status
	// Quiet, to Quiet: no packet was in a radio for Quiet.For, and for twice the time that
	// a full packet takes over the slowest link, so that what was sent last has been
	// answered, too.
	Quiet bool                `json:"quiet,omitempty"`
	Proof *signature.LabProof `json:"proof,omitempty"` // to Vouch
}

// Report is what the emulator counted in a trial.
type Report struct {
	Duration time.Duration `json:"duration_ns"` // on the channel's clock
	Hops     []Hop         `json:"hops"`
	// Traffic is what passed each hop, by who sent it to whom, in no order that means
	// anything. Packets whose transmission had not begun when the trial ended are not in it.
	Traffic []Traffic `json:"traffic,omitempty"`
	// Stalled is for how long the emulator did not run meanwhile, in times that are
	// longer than a busy machine explains: its process was stopped. 0: it ran.
	Stalled time.Duration `json:"stalled_ns,omitempty"`
	// Late is how late packets came out of the radios; nil: it was not asked for.
	Late *Late `json:"late,omitempty"`
	// Ideal is the time an all-knowing sender would have needed for each flow
	// on the same realisation, alone on the channel, in the order of
	// Begin.Flows; 0 where none could deliver it within IdealHorizon.
	Ideal []time.Duration `json:"ideal_ns"`
	// CodedBound is that of each flow, in the same order: the time that a
	// sender would have needed who knows the channel's statistics but not its
	// future, and has an ideal code; 0 as Ideal. Empty in older journals.
	CodedBound []time.Duration `json:"coded_bound_ns,omitempty"`
	// BusyShare is the part of Duration in which the medium carried a
	// transmission (shared medium; otherwise the busiest link direction).
	BusyShare float64 `json:"busy_share"`
	// Channels is how the conditions of each direction changed over the trial;
	// directions whose conditions never change are left out.
	Channels []ChannelHistory `json:"channels,omitempty"`
}

// Late is by how much an emulator gave packets out later than they were due.
type Late struct {
	// Missed is the time beyond what was tolerated, once for packets that were late
	// together, and Longest the greatest lateness of all.
	Missed  time.Duration `json:"missed_ns"`
	Longest time.Duration `json:"longest_ns"`
}

// Share is the missed share of a time, 0 to 1.
func (l *Late) Share(of time.Duration) float64 {
	if l == nil || of <= 0 {
		return 0
	}
	return min(1, l.Missed.Seconds()/of.Seconds())
}

// ChannelHistory is the conditions of one direction of a link over a trial,
// for plots beside the transfer: at most MaxHistory moments, each of whose
// values holds until the next. A list is empty where its metric is 0, or the
// link's own, throughout.
type ChannelHistory struct {
	From radio.Role `json:"from"`
	To   radio.Role `json:"to"`
	// Step is 0 where the moments are those of the changes; else there were too
	// many, and values are means over steps of this length.
	Step time.Duration `json:"step_ns,omitempty"`
	AtUS []int64       `json:"at_us"` // microseconds since the trial's start, ascending
	// Loss is the probability, 0…1, that a transmission which starts then is
	// lost, bit errors not counted.
	Loss              []float64 `json:"loss,omitempty"`
	BitErrorRate      []float64 `json:"bit_error_rate,omitempty"` // on the channel, or after a convolutional code
	RateBitsPerSecond []float64 `json:"rate_bits_per_second,omitempty"`
	DelayUS           []int64   `json:"delay_us,omitempty"` // microseconds, one way
}

// MaxHistory is the most moments of a ChannelHistory.
const MaxHistory = 500

// IdealHorizon bounds the search for Ideal and the coded bound on a channel that never recovers.
const IdealHorizon = 24 * time.Hour

// Hop counts one direction of one link.
type Hop struct {
	From radio.Role `json:"from"`
	To   radio.Role `json:"to"`
	// Second: between the nodes' second radios.
	Second bool `json:"second_radio,omitempty"`

	SentPackets      int64         `json:"sent_packets"` // whose transmission started
	SentBytes        int64         `json:"sent_bytes"`   // IP packets, without the link's overhead
	LostPackets      int64         `json:"lost_packets"` // by the channel
	DeliveredPackets int64         `json:"delivered_packets"`
	DeliveredBytes   int64         `json:"delivered_bytes"`
	DroppedPackets   int64         `json:"dropped_packets"` // by the queue: full, or early (RED)
	MaxQueueBytes    int64         `json:"max_queue_bytes"`
	QueueDelayMax    time.Duration `json:"queue_delay_max_ns"`
	Airtime          time.Duration `json:"airtime_ns"`

	// Of radios that duplicate or reorder, at the last hop of a packet's way: handed out
	// once more, and held back. Both are among the delivered ones, each once.
	DuplicatedPackets int64 `json:"duplicated_packets,omitempty"`
	HeldPackets       int64 `json:"held_packets,omitempty"`

	// Of links with framing; retransmitted frames are among the sent ones, NACKs
	// are not.
	FramesSent          int64 `json:"frames_sent,omitempty"`
	FramesLost          int64 `json:"frames_lost,omitempty"`
	FramesRetransmitted int64 `json:"frames_retransmitted,omitempty"`
	NACKs               int64 `json:"nacks,omitempty"` // sent in this direction, for frames of the other

	MarkedPackets       int64 `json:"marked_packets,omitempty"`        // ECN, by the queue of From
	EarlyDroppedPackets int64 `json:"early_dropped_packets,omitempty"` // of DroppedPackets, by RED
	Collisions          int64 `json:"collisions,omitempty"`            // CSMA: transmissions that met another
}

// Traffic counts, at one hop, the packets of one node to another with the same ports.
// ICMP errors and fragments are counted with the packets that they are about.
type Traffic struct {
	From   radio.Role `json:"from"` // of the hop
	To     radio.Role `json:"to"`
	Second bool       `json:"second_radio,omitempty"`

	Source      radio.Role `json:"source"` // of the packets
	Destination radio.Role `json:"destination"`
	// Protocol is IP's number; 0: of the many that came when there were too many to tell apart.
	Protocol int `json:"protocol"`
	// The ports; 0: it has none, or the other one is a listener's and this one any.
	SourcePort      int `json:"source_port,omitempty"`
	DestinationPort int `json:"destination_port,omitempty"`

	SentPackets      int64 `json:"sent_packets"` // those of which it is known whether they arrive
	SentBytes        int64 `json:"sent_bytes"`
	DeliveredPackets int64 `json:"delivered_packets"`
	DeliveredBytes   int64 `json:"delivered_bytes"`
	DroppedPackets   int64 `json:"dropped_packets,omitempty"` // by the queue before the hop
	// MissedLarge are those of over half of the MTU that were dropped, or sent and lost.
	MissedLarge int64 `json:"missed_large_packets,omitempty"`
	// MostInWindow bounds from above, at the last hop of the packets' way, the bytes that
	// were delivered within any time of [Begin.Window].
	MostInWindow int64 `json:"most_in_window_bytes,omitempty"`

	// Moments on the channel's clock, of packets to or from a listener; 0: there was none.
	// None is later than what it is about, but for FirstAt and FlowingAt, of which none is
	// earlier.

	// FirstAt is, at the first hop of the packets' way to a listener, when the first one
	// came, of those from the port that sent most.
	FirstAt time.Duration `json:"first_at_ns,omitempty"`
	// FlowingAt is, at the same hop, when more than [Opening] bytes had come of a connection
	// after a packet of the listener had arrived for it: what opens one has fewer. Of
	// several connections the earliest counts; of those from a port that a trial before had
	// as well, which may be left of that, only the one that sent most.
	FlowingAt time.Duration `json:"flowing_at_ns,omitempty"`
	// ArrivedAt is, at the last hop of the packets' way from a listener, when it sent the
	// first one that arrived.
	ArrivedAt time.Duration `json:"arrived_at_ns,omitempty"`
	// CarriedAt is, at the last hop of the packets' way to a listener, when it began to send
	// the packet with which as much had arrived as the flow to the listener has payload, of
	// several flows the one with the least.
	CarriedAt time.Duration `json:"carried_at_ns,omitempty"`
	// Connections are, at the first hop of the packets' way to a listener with several
	// flows, those of which each carried as much as the flow with the least payload has.
	Connections []Connection `json:"connections,omitempty"`
}

// Connection has the moments of one connection to a listener, as [Traffic] has them.
type Connection struct {
	FirstAt    time.Duration `json:"first_at_ns"`
	AnsweredAt time.Duration `json:"answered_at_ns,omitempty"` // when the listener sent the first packet that arrived
	FlowingAt  time.Duration `json:"flowing_at_ns,omitempty"`
	CarriedAt  time.Duration `json:"carried_at_ns"`
}

// Opening is more bytes than a client sends, with all headers, between the first answer to
// it and the first byte of payload.
const Opening = 16 << 10

// Status is what the emulator does now.
type Status struct {
	PID        int            `json:"pid"`
	Network    *radio.Network `json:"network"`
	Trial      string         `json:"trial,omitempty"` // running, if any
	Unroutable int64          `json:"unroutable"`      // packets to addresses that no node has, since start
	Oversized  int64          `json:"oversized"`       // packets over the MTU, since start
	// Late is by how much the device loop released packets after their due
	// moment since start: the emulator's own error.
	LateMedian time.Duration `json:"late_median_ns"`
	LateMax    time.Duration `json:"late_max_ns"`
	// Radios is the telemetry of each radio at this moment, in the order of the
	// network's links, both directions of each.
	Radios []RadioStatus `json:"radios,omitempty"`
}

// RadioStatus is the telemetry of the radio at From about its way to To.
type RadioStatus struct {
	From              radio.Role    `json:"from"`
	To                radio.Role    `json:"to"`
	QueuePackets      int           `json:"queue_packets"` // waiting for To
	QueueBytes        int           `json:"queue_bytes"`
	RateBitsPerSecond float64       `json:"rate_bits_per_second"`
	Delay             time.Duration `json:"delay_ns"`
	// Loss is the channel's present probability, 0…1, to lose a full-sized
	// transmission, bit errors included.
	Loss float64 `json:"loss"`
	// SNR in dB is the one at which uncoded BPSK in white noise would lose as
	// much, within −10 and 30: the models of the channel have no other.
	SNR float64 `json:"snr_db"`
}
