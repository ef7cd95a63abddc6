package haul

import (
	"crypto/rand"
	"net/netip"
	"time"

	"linktrial/protocols/datagram"
	"linktrial/protocols/datagram/edge"
	"linktrial/protocols/haul/core"
	"linktrial/protocols/haul/secure"
	"linktrial/protocols/haul/wire"
)

// Link is what a sender knows of the radio beforehand; what is zero it finds out.
type Link = core.Link

// Stats are the values of a connection.
type Stats = core.Stats

// Class is how a message is delivered.
type Class = wire.Class

// Classes of messages; each class of a stream is numbered, and so ordered, by itself.
const (
	ReliableSequenced     = wire.ReliableSequenced     // every message, in order
	ReliableUnsequenced   = wire.ReliableUnsequenced   // every message, as soon as it is complete
	UnreliableSequenced   = wire.UnreliableSequenced   // what arrives and is newer than what was delivered
	UnreliableUnsequenced = wire.UnreliableUnsequenced // what arrives
)

// Event tells the application what it may want to know at once.
type Event = core.Event

// Events.
const (
	LinkLost       = core.LinkLost       // nothing is heard although something was asked; the connection goes on
	LinkBack       = core.LinkBack       // and is heard again
	AddressChanged = core.AddressChanged // the client is elsewhere now, and has proven it (of a listener's connections)
	PeerSuspended  = core.PeerSuspended
	PeerResumed    = core.PeerResumed
)

// Options of a connection, and of all connections of a listener. The zero value
// is an encrypted connection with nothing known beforehand.
type Options struct {
	// Key is a pre-shared key of 32 bytes: only who has it can take part. Without
	// one the connection is encrypted, but neither end knows who the other is.
	Key []byte
	// Plain turns encryption off, for radios that encrypt by themselves.
	Plain bool
	// Link is what is known of the radio.
	Link Link
	// Packet is the largest UDP payload in bytes, 256 to 8972; 0: as the path allows.
	Packet int
	// Buffer is how many bytes may wait to be put in order or to be read, 64 KiB
	// to 1 GiB; 0: 4 MiB.
	Buffer int
	// Queue is how many bytes Send takes before it waits; 0: 64 KiB.
	Queue int
	// KeepAlive is how long the connection may be silent before it is tested; 0: never.
	KeepAlive time.Duration
	// DeadAfter ends a connection that has heard nothing for so long; 0: never. A
	// server whose clients may be killed needs it: nothing else tells an outage
	// from a client that is gone.
	DeadAfter time.Duration
	// NoCoding sends nothing ahead of time: what is lost is sent again when that is known.
	NoCoding bool
	// NoECN does not ask the path to mark packets instead of dropping them.
	NoECN bool
	// Device is the network interface to use; "": any.
	Device string
	// DSCP is the code point of all packets (RFC 2474); 0: the default.
	DSCP int
	// OnEvent is called for every event, from a goroutine of its own for each connection.
	OnEvent func(Event)
}

// config is what the core is told, over a socket of addresses of that family.
func (o *Options) config(s *datagram.Socket, of netip.AddrPort) core.Config {
	packet := o.Packet
	if packet == 0 {
		mtu := s.MTU()
		if o.Link.MTU > 0 {
			mtu = min(mtu, o.Link.MTU)
		}
		packet = min(max(mtu-overhead(of), core.MinPacket), core.MaxPacket)
	}
	return core.Config{
		Secure: secure.Config{PSK: o.Key, Plain: o.Plain}, Link: o.Link, Packet: packet, Buffer: o.Buffer,
		KeepAlive: o.KeepAlive, DeadAfter: o.DeadAfter, NoCoding: o.NoCoding, Random: rand.Reader,
	}
}

// overhead is the length of the IP and UDP headers.
func overhead(a netip.AddrPort) int {
	if a.Addr().Unmap().Is6() {
		return 48
	}
	return 28
}

// open opens a socket; a listener's has no remote address.
func (o *Options) open(local, remote netip.AddrPort) (*datagram.Socket, error) {
	return datagram.Open(datagram.Config{Local: local, Remote: remote, Device: o.Device, DSCP: o.DSCP, ReadBuffer: edge.SocketBuffer, WriteBuffer: edge.SocketBuffer})
}

// Message is one message: what Send takes and Receive gives.
type Message struct {
	Stream uint16
	Class  Class
	// Priority, 0 to 7: a message of a higher one goes first.
	Priority uint8
	// Tag, if not 0, is what Cancel and Replace find the message by.
	Tag uint32
	// SendWithin discards the message if nothing of it has been sent by then,
	// DeliverWithin if it has not been delivered; 0: never.
	SendWithin, DeliverWithin time.Duration
	Data                      []byte
}
