package core

import "time"

// Dropped counts packets that changed nothing.
type Dropped struct {
	Malformed  uint64 // not of the format
	Version    uint64 // of another version
	Forged     uint64 // not authentic, or damaged on the way
	Replayed   uint64 // came before, or is too old to know
	Unexpected uint64 // of no connection, or not now
	Overflow   uint64 // beyond what the buffer holds
}

// Stats are the counters and estimates of a connection.
type Stats struct {
	RTT, RTTVariation, MinRTT time.Duration
	Timeout                   time.Duration // after which an acknowledgement is overdue
	Queue                     time.Duration // standing queue of the path, as far as it is known
	Rate                      float64       // estimated rate of the path, bytes/s of IP packets
	Pacing                    float64       // rate of sending, bytes/s of IP packets
	Window                    int           // bytes of IP packets that may be under way
	InFlight                  int           // bytes of IP packets that are
	Loss                      float64       // estimated share of packets that are lost
	Burst                     float64       // estimated mean length of a burst of losses, in packets
	Packet                    int           // largest UDP payload now
	Queued                    int           // bytes that have not been sent
	Held                      int           // bytes that have arrived and wait to be read or to be put in order

	Hellos, PacketsSent, PacketsReceived, PacketsLost uint64
	BytesSent                                         uint64 // of IP packets
	BytesDelivered                                    uint64 // payload of reliable messages that is acknowledged
	Retransmits, Repairs, Timeouts                    uint64
	BytesAgain                                        uint64 // payload of the symbols that Retransmits counts
	AcksSent, AcksReceived                            uint64
	Duplicates, Recovered, Useless                    uint64 // symbols that came twice, were recovered; repairs that told nothing new
	Shrunk, Resized, LargeArrived                     uint64
	MessagesSent, MessagesDelivered, MessagesExpired  uint64
	MessagesCancelled, MessagesReceived               uint64

	Dropped Dropped
}

// Event is something that the application may want to know at once.
type Event uint8

const (
	LinkLost Event = iota + 1 // nothing has been heard for some round trips although something was asked
	LinkBack
	AddressChanged // the client has proven that it is elsewhere now
	PeerSuspended
	PeerResumed
)
