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
}

// Flow is one transfer of the trial.
type Flow struct {
	From      radio.Role `json:"from"`
	To        radio.Role `json:"to"`
	SizeBytes int64      `json:"size_bytes"`
	// Recut: a node between From and To ends the connection and puts the bytes into
	// packets of its own, which need not have the sizes of those that arrived.
	Recut bool `json:"recut,omitempty"`
}

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
	Quiet bool `json:"quiet,omitempty"`
}

// Report is what the emulator counted in a trial.
type Report struct {
	Duration time.Duration `json:"duration_ns"` // on the channel's clock
	Hops     []Hop         `json:"hops"`
	// Stalled is for how long the emulator did not run meanwhile, in times that are
	// longer than a busy machine explains: its process was stopped. 0: it ran.
	Stalled time.Duration `json:"stalled_ns,omitempty"`
	// Ideal is the time an all-knowing sender would have needed for each flow
	// on the same realisation, alone on the channel, in the order of
	// Begin.Flows; 0 where none could deliver it within IdealHorizon.
	Ideal []time.Duration `json:"ideal_ns"`
	// CodedBound is that of each flow, in the same order: the time that a
	// sender would have needed who knows the channel's statistics but not its
	// future, and has an ideal code; 0 as Ideal. Empty in journals from before it.
	CodedBound []time.Duration `json:"coded_bound_ns,omitempty"`
	// BusyShare is the part of Duration in which the medium carried a
	// transmission (shared medium; otherwise the busiest link direction).
	BusyShare float64 `json:"busy_share"`
	// Channels is how the conditions of each direction changed over the trial;
	// directions whose conditions never change are left out.
	Channels []ChannelHistory `json:"channels,omitempty"`
}

// ChannelHistory is the conditions of one direction of a link over a trial,
// for plots beside the transfer: at most MaxHistory moments, each of whose
// values holds until the next. A list is empty where its figure is 0, or the
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
