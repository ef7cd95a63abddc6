package lttcp

import (
	"crypto/rand"
	"net/netip"

	"linktrial/protocols/datagram"
	"linktrial/protocols/datagram/edge"
	"linktrial/protocols/lttcp/core"
	"linktrial/protocols/lttcp/wire"
)

// Stats are the values of a connection.
type Stats = core.Stats

// Options of a connection, and of all connections of a listener. The zero value
// is the whole of LT-TCP with the paper's parameters.
type Options struct {
	// MSS is the segment in bytes of payload that the window counts in, and the
	// length of segments that are not adapted; 0: Segment.
	MSS int
	// Segment is the longest segment in bytes of payload, Least the shortest that
	// adaptation makes; 0: 1500 and 200. None of the three is longer than the path takes.
	Segment, Least int
	// Granularity is how many packets a window has at least; 0: 10.
	Granularity int
	// Buffer is how many bytes may wait to be put in order or to be read; 0: 1 MiB.
	Buffer int
	// Queue is how many bytes Write takes before it waits; 0: 256 KiB.
	Queue int
	// FixedSegment, NoProactive and NoReactive leave out components.
	FixedSegment, NoProactive, NoReactive bool
	// LossResponse reduces the window on losses, too.
	LossResponse bool
	// NoECN does not mark packets as able to carry marks.
	NoECN bool
	// Device is the network interface to use; "": any.
	Device string
	// DSCP is the code point of all packets (RFC 2474); 0: the default.
	DSCP int
}

const defaultQueue = 256 << 10

func (o *Options) queue() int {
	if o.Queue == 0 {
		return defaultQueue
	}
	return o.Queue
}

// config is what the core is told, over a socket to or from an address.
func (o *Options) config(s *datagram.Socket, of netip.AddrPort) core.Config {
	overhead := 28
	if of.Addr().Unmap().Is6() {
		overhead = 48
	}
	segment := o.Segment
	if segment == 0 {
		segment = core.MostSegment
	}
	segment = min(segment, max(s.MTU()-overhead-wire.FECHeader, 64))
	least := o.Least
	if least == 0 {
		least = core.LeastSegment
	}
	return core.Config{
		MSS: min(o.MSS, segment), Segment: segment, Least: min(least, segment), Granularity: o.Granularity, Buffer: o.Buffer,
		FixedSegment: o.FixedSegment, NoProactive: o.NoProactive, NoReactive: o.NoReactive, LossResponse: o.LossResponse,
		Random: rand.Reader,
	}
}

// open opens a socket; a listener's has no remote address.
func (o *Options) open(local, remote netip.AddrPort) (*datagram.Socket, error) {
	return datagram.Open(datagram.Config{Local: local, Remote: remote, Device: o.Device, DSCP: o.DSCP, ReadBuffer: edge.SocketBuffer, WriteBuffer: edge.SocketBuffer})
}
