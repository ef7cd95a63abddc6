package core

import "time"

// Constants of sending.
const (
	reordering    = 3                      // packets that may overtake another before it counts as lost
	probeEvery    = 180 * time.Millisecond // longest pause between two probes of a link that is lost
	probeOften    = 20 * time.Millisecond  // shortest
	blindRounds   = 8                      // round trips' worth of data beyond the window while nothing is heard
	probeShare    = 32                     // and so many times as long as the link needs for one
	probeSeldom   = 5 * time.Second        // the same after outagePatience
	lostAfter     = 3                      // timeouts in a row that make a link lost
	tailWeight    = 0.15                   // of a packet's airtime against a round trip saved
	largeLost     = 20                     // full-size packets lost in a row, while small ones arrive: the path has become narrower
	requestRoom   = 6                      // bytes
	requestCopies = 4
	burstQuantum  = time.Millisecond
	mostLate      = 100 * time.Millisecond // of a wake-up that the next packets make up for
)

// flight is what an end knows of the packets that it has sent.
type flight struct {
	packets            ring[sentPacket] // from the oldest that may still be told to be lost
	largestAcked       uint64           // highest number that is known to have arrived, plus one
	packetsAcked       uint64           // how many are known to have arrived
	burstsAcked        uint64
	bytesSent          uint64 // IP packets' bytes sent so far
	inFlight           int    // bytes beyond largestAcked
	useful             int    // packets beyond largestAcked that can still help
	repairs            int    // of these, repairs
	lastAckEliciting   uint64 // number of the last packet that will be acknowledged, plus one
	presumedLost       uint64 // packets below it are presumed to be lost
	nextSend           time.Duration
	pacingHeld         bool          // a packet waits for nextSend
	wakeLateness       time.Duration // by how much such waits ended too late: the longest of them, which fades
	ping               bool
	probes             int // packets that may be sent although the window is full
	ptoCount           int // timeouts in a row
	lostSince          time.Duration
	lastAckElicitingAt time.Duration // when a packet was sent last that will be acknowledged
	timeoutFrom        time.Duration // last acknowledgement or timeout
	lastAckAt          time.Duration // last acknowledgement
	silence            time.Duration // since lastAckAt, at the last timeout
	sinceAckRequest    int           // packets since acknowledgements were asked for last
	requestedDelay     time.Duration // what the other end knows of ackPatience
	delayRequests      int

	lostLarge, smallArrived int
	smallProbe              bool // the next probe is small
}

// sentPacket is one packet that was sent.
type sentPacket struct {
	at           time.Duration
	bytes        uint64 // IP packets' bytes sent up to it, with it
	symbol       uint64 // number plus one; 0: none
	size         int32
	ackEliciting bool // will be acknowledged
	useful       bool // carries a symbol or a repair
	repair       bool
	large        bool
}

// content is what a packet shall carry.
type content uint8

const (
	contentNone content = iota
	contentPing
	contentSymbol
	contentRepair
	contentUnreliable
)
