package core

import "linktrial/protocols/haul/code"

// sender decides what is sent and when: it has the messages that wait, the symbols
// that have not arrived, the packets that went out, and the state of the path. It
// neither encrypts nor knows what arrives; Conn tells it what concerns it.
type sender struct {
	*common
	rate rate
	loss loss
	sizes
	flight

	out         outbox
	writerWaits bool // the application has more than what is queued
	symbols     ring[symbol]
	open        int    // symbols that have not arrived
	missing     int    // of these, known to be lost
	firstMissed uint64 // no missed symbol below it
	sent        uint64 // bytes counted against the credit
	begun       uint64 // bytes that will count, of messages of which a part has been sent
	peerCredit  uint64 // bytes that may have been sent
	peerRank    int    // repairs that the other end holds beyond what it has recovered
	unreliable  []byte // body of unreliable messages that goes next; nil: none
	overhead    int    // bytes that encryption adds to a packet

	scratch []code.Symbol
	coded   []byte

	// What Conn learns and sending depends on.
	peerByteTime         float64 // seconds that the way from the other end needs for a byte, at most; 0: not known
	halfOpen             bool    // server: nothing has arrived that only the client can have sent
	amplificationLimited bool    // nothing may be sent until the client has proven its address
	peerSuspended        bool
	seeksPeer            bool // client: it has moved, and nothing has come since
	closeSent            bool
}

func (s *sender) init() {
	s.packet = s.config.Packet
	s.rate.init(s.config.Link, s.packet)
	s.loss.init(s.config.Link.Loss)
}

// end frees what only an open connection needs.
func (s *sender) end() {
	s.symbols = ring[symbol]{}
	s.packets = ring[sentPacket]{first: s.packets.end()} // numbers go on
	s.out = outbox{number: s.out.number}
	s.open, s.missing, s.useful, s.repairs, s.inFlight, s.unreliable = 0, 0, 0, 0, 0, nil
	s.scratch, s.coded = nil, nil
}
