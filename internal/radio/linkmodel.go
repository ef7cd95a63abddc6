package radio

import "time"

// Queue bounds what a radio holds for transmission. Zero is no bound on that count.
type Queue struct {
	Bytes   int  `json:"bytes,omitempty"`
	Packets int  `json:"packets,omitempty"`
	RED     *RED `json:"red,omitempty"` // nil: drop-tail
}

// RED is random early detection (Floyd, Jacobson 1993) in its byte mode: the
// average queue is updated at each arrival, and an arriving packet is marked
// or dropped with a probability that rises from 0 at MinBytes to
// MaxProbability at MaxBytes. Beyond MaxBytes every packet is dropped; with
// Gentle the probability rises on to 1 at twice MaxBytes instead.
type RED struct {
	MinBytes       int     `json:"min_bytes"`
	MaxBytes       int     `json:"max_bytes"`
	Weight         float64 `json:"weight"` // of a new sample in the average
	MaxProbability float64 `json:"max_probability"`
	Gentle         bool    `json:"gentle,omitempty"`
	// ECN marks packets of ECN-capable transports (RFC 3168) instead of
	// dropping them, below the point where every packet is dropped.
	ECN bool `json:"ecn,omitempty"`
}

// Framing cuts packets into frames. Without ARQ a packet is lost when one of
// its frames is. A packet's last frame is only as long as it needs to be.
// FrameOverheadBytes of the network does not apply to a framed link.
type Framing struct {
	FrameBytes  int `json:"frame_bytes"` // on the channel, header included (dantas-2011, section VII.B)
	HeaderBytes int `json:"header_bytes"`
}

// Frames is how many frames a packet takes and how many bytes they have in all.
func (f *Framing) Frames(packetBytes int) (count, bytes int) {
	payload := f.FrameBytes - f.HeaderBytes
	if payload <= 0 {
		return 0, 0
	}
	count = max(1, (packetBytes+payload-1)/payload)
	return count, packetBytes + count*f.HeaderBytes
}

// FECCode names a forward error correction.
type FECCode string

const (
	FECReedSolomon   FECCode = "reed-solomon"
	FECConvolutional FECCode = "convolutional"
)

// FEC is the link's forward error correction: user bits pass at the link's
// rate times CodeRate.
type FEC struct {
	Code     FECCode `json:"code"`
	CodeRate float64 `json:"code_rate"` // information bits per transmitted bit

	// Reed–Solomon: BlockSymbols of 8 bits with DataSymbols of information; a
	// block is read when at most (BlockSymbols − DataSymbols)/2 of its symbols
	// are wrong. InterleavingDepth blocks are sent symbol by symbol in turn.
	// Only bit errors (hidden-markov) can be corrected; a bad state of the other
	// models is one beyond correction (decola-2006, section 3.2).
	BlockSymbols      int `json:"block_symbols,omitempty"`
	DataSymbols       int `json:"data_symbols,omitempty"`
	InterleavingDepth int `json:"interleaving_depth,omitempty"`

	// Convolutional: the mean bit error rate that is left after decoding. Resolve
	// has scaled the channels' bit error rates to it already (dantas-2011,
	// section VI.A: from 1e-3 to 1e-5 at rate 1/2), so the emulator applies
	// CodeRate alone.
	ResidualBER float64 `json:"residual_ber,omitempty"`
}

// ARQ is selective repeat on frames (dantas-2011, sections IV and VII). The
// sender fills the link with idle frames where it has none to send. A receiver
// that misses a frame waits NACKTimerFrames frame times, sends a NACK (one
// frame of header size) on the return direction, and the frame is sent again
// before any new one. After Persistence retransmissions the sender gives the
// frame up, and its packet is lost.
type ARQ struct {
	NACKTimerFrames int `json:"nack_timer_frames"`
	Persistence     int `json:"persistence"` // retransmissions of one frame, at most
	// InOrder holds packets back until every earlier one has arrived or is given up.
	InOrder bool `json:"in_order"`
}

// Reordering holds packets back in the radio at their destination, so that others which
// come out meanwhile overtake them.
type Reordering struct {
	Share float64       `json:"share"`    // of the packets, 0…1
	Delay time.Duration `json:"delay_ns"` // for so long
}

// Duplication hands packets out twice at their destination, the copy first.
type Duplication struct {
	Share float64 `json:"share"` // of the packets, 0…1
}

// Access is how the radios of a shared medium get their turns. One of the two is set.
type Access struct {
	TDMA *TDMA `json:"tdma,omitempty"`
	CSMA *CSMA `json:"csma,omitempty"`
}

// TDMA is time slots in a fixed round: slot i of every round belongs to
// Owners[i]. A radio starts a transmission only in a slot of its own and when
// it ends before the slot's last Guard; rounds run from the trial's start.
type TDMA struct {
	Slot   time.Duration `json:"slot_ns"`
	Guard  time.Duration `json:"guard_ns,omitempty"`
	Owners []Role        `json:"owners"`
}

// CSMA is carrier sense with collision avoidance after IEEE 802.11 (DCF,
// section 10.3): a radio with something to send waits until the medium was idle for
// DIFS, then counts down a number of idle slots drawn from 0 to its window. Two
// that reach zero in the same slot collide: both transmissions are lost and
// are tried again with the window doubled and one added, up to WindowMax,
// Retries times at most.
type CSMA struct {
	DIFS      time.Duration `json:"difs_ns"`
	Slot      time.Duration `json:"slot_ns"`
	WindowMin int           `json:"window_min"` // slots
	WindowMax int           `json:"window_max"`
	Retries   int           `json:"retries"`
}
