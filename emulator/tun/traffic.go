package tun

import (
	"encoding/binary"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"linktrial/emulator/link"
	"linktrial/internal/radiocontrol"
)

// maxKinds bounds the kinds of packets that are told apart in a trial. Those of more
// belong to one kind for each pair of nodes, which has no protocol and no ports.
const maxKinds = 64

// kind is what packets that are counted together have in common.
type kind struct {
	from, to         uint8 // indices of devices
	protocol         uint8
	fromPort, toPort uint16
}

// Of packets to or from a listener the other end's port is left out.
func (k *kind) toListener() bool   { return k.toPort != 0 && k.fromPort == 0 }
func (k *kind) fromListener() bool { return k.fromPort != 0 && k.toPort == 0 }

// headers is what decides the kind of a packet from a device.
type headers struct {
	to       uint8 // index of a device
	protocol uint8
	ports    uint32 // both, as in the packet
}

// fragmented is a packet in fragments, of which the first one alone has ports.
type fragmented struct {
	to, protocol uint8
	id           uint16
	number       uint16 // of the kind
	ports        uint32
}

// rememberedFragments is how many packets of a node may be sent in fragments among each
// other. Linux sends the fragments of one packet in a row.
const rememberedFragments = 8

// source is what the packets of one device were last.
type source struct {
	last       headers
	number     uint16 // of last's kind
	ports      uint32 // of the packet that was read last
	known      bool
	fragments  [rememberedFragments]fragmented
	fragmentAt int
}

// traffic counts a trial's packets at every hop by their kind.
type traffic struct {
	listeners radiocontrol.PortRange
	window    time.Duration // of the most that was delivered in any; 0: it is not counted
	hops      []radiocontrol.Hop
	ends      []uint8   // by hop: index of the device that it leads to
	large     []int32   // by hop: a packet of more bytes is a large one
	windows   []sliding // by number of the kind, of its last hop
	flows     []radiocontrol.Flow
	moments   []moments // by number of the kind
	used      *usedPorts
	clock     func() time.Duration
	kinds     []kind
	numbers   map[kind]uint16
	sources   []source
	// By handle of a packet: the number of its kind, and, where it is of a connection to a
	// listener, the index of that one and one more.
	of         []uint16
	connection []uint8
	counts     []radiocontrol.Traffic // by number of the kind and hop
}

// newTraffic needs the channel's clock, and the ports that trials before have used.
func newTraffic(b *radiocontrol.Begin, devices int, radios []side, used *usedPorts, clock func() time.Duration) *traffic {
	t := &traffic{listeners: b.Listeners, window: b.Window, hops: hopsOf(radios), flows: b.Flows, used: used, clock: clock, numbers: map[kind]uint16{}, sources: make([]source, devices)}
	for i := range radios {
		for _, h := range radios[i].net.Hops() {
			t.large = append(t.large, int32(radios[i].mtu/2))
			t.ends = append(t.ends, uint8(radios[i].device[radios[i].net.Node(h.To)]))
		}
	}
	return t
}

// enter notes the kind of a packet that a device has sent to another one.
func (t *traffic) enter(handle uint32, from, to int, ip []byte) {
	if int(handle) >= len(t.of) {
		t.of = append(t.of, make([]uint16, int(handle)+chunkBuffers-len(t.of))...)
		t.connection = append(t.connection, make([]uint8, len(t.of)-len(t.connection))...)
	}
	n := t.kindOf(from, to, ip)
	t.of[handle], t.connection[handle] = n, 0
	ports := t.sources[from].ports
	switch k := &t.kinds[n]; {
	case k.toListener():
		t.connection[handle] = t.sent(n, uint16(ports>>16), len(ip))
	case k.fromListener():
		t.connection[handle] = t.answering(n, uint16(ports))
	}
}

// Of the second 16 bits of an IPv4 header's second word (RFC 791, section 3.1).
const (
	moreFragments  = 0x2000
	fragmentOffset = 0x1fff
)

// kindOf reads an IPv4 packet of 20 bytes at least.
func (t *traffic) kindOf(from, to int, ip []byte) uint16 {
	h := headers{to: uint8(to), protocol: ip[9]}
	s := &t.sources[from]
	at := binary.BigEndian.Uint16(ip[6:])
	if at&fragmentOffset != 0 {
		if f := s.first(h, binary.BigEndian.Uint16(ip[4:])); f != nil {
			s.ports = f.ports
			return f.number
		}
	} else {
		h.protocol, h.ports = endsOf(ip)
	}
	s.ports = h.ports
	if !s.known || h != s.last {
		s.last, s.number, s.known = h, t.numberOf(from, h), true
	}
	if at&moreFragments != 0 && at&fragmentOffset == 0 {
		s.fragments[s.fragmentAt] = fragmented{to: h.to, protocol: ip[9], id: binary.BigEndian.Uint16(ip[4:]), number: s.number, ports: h.ports}
		s.fragmentAt = (s.fragmentAt + 1) % rememberedFragments
	}
	return s.number
}

// first is that of the packet which a later fragment belongs to; nil: it is not known.
func (s *source) first(h headers, id uint16) *fragmented {
	for i := range s.fragments {
		if f := &s.fragments[i]; f.id == id && f.to == h.to && f.protocol == h.protocol {
			return f
		}
	}
	return nil
}

// endsOf is the protocol and the ports of a packet that is no later fragment. Of an ICMP
// error they are those of the packet that it is about, which went the other way (RFC 792).
func endsOf(ip []byte) (protocol uint8, ports uint32) {
	protocol = ip[9]
	b := ip[min(len(ip), int(ip[0]&15)*4):]
	switch {
	case protocol == unix.IPPROTO_ICMP && len(b) >= 28 && (b[0] == 3 || b[0] == 5 || b[0] == 11 || b[0] == 12):
		protocol, ports = endsOf(b[8:])
		return protocol, ports<<16 | ports>>16
	case len(b) < 4:
		return protocol, 0
	}
	switch protocol {
	case unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_SCTP, unix.IPPROTO_DCCP, unix.IPPROTO_UDPLITE:
		return protocol, binary.BigEndian.Uint32(b)
	}
	return protocol, 0
}

// numberOf is the number of the kind of packets from a device with such headers.
func (t *traffic) numberOf(from int, h headers) uint16 {
	k := kind{from: uint8(from), to: h.to, protocol: h.protocol, fromPort: uint16(h.ports >> 16), toPort: uint16(h.ports)}
	switch f, to := t.listeners.Contains(int(k.fromPort)), t.listeners.Contains(int(k.toPort)); {
	case to && !f:
		k.fromPort = 0
	case f && !to:
		k.toPort = 0
	}
	n, known := t.numbers[k]
	if !known && len(t.kinds) >= maxKinds {
		k = kind{from: k.from, to: k.to}
		n, known = t.numbers[k]
	}
	if !known {
		n = uint16(len(t.kinds))
		t.numbers[k] = n
		t.kinds = append(t.kinds, k)
		t.counts = append(t.counts, make([]radiocontrol.Traffic, len(t.hops))...)
		t.moments = append(t.moments, t.momentsOf(&k))
		if t.window > 0 {
			t.windows = append(t.windows, sliding{step: max(1, t.window/windowSteps)})
		}
	}
	return n
}

// momentsOf are those of a kind, of which no packet has come yet.
func (t *traffic) momentsOf(k *kind) (m moments) {
	if !k.toListener() {
		return m
	}
	known := true
	for i := range t.flows {
		f := &t.flows[i]
		if !slices.Contains(f.Ports, int(k.toPort)) {
			continue
		}
		m.flows++
		known = known && f.SizeBytes > 0
		if m.payload == 0 || f.SizeBytes < m.payload {
			m.payload = f.SizeBytes
		}
	}
	if !known {
		m.payload = 0
	}
	return m
}

// add counts what became of a packet at a hop.
func (t *traffic) add(e *link.Event) {
	n := int(t.of[e.Handle])
	c := &t.counts[n*len(t.hops)+e.Hop]
	missed := true
	switch e.Outcome {
	case link.Dropped:
		c.DroppedPackets++
	case link.Delivered:
		c.DeliveredPackets++
		c.DeliveredBytes += int64(e.Bytes)
		missed = false
		if t.ends[e.Hop] == t.kinds[n].to {
			t.arrived(n, e)
		}
		fallthrough
	default:
		c.SentPackets++
		c.SentBytes += int64(e.Bytes)
	}
	if missed && int32(e.Bytes) > t.large[e.Hop] {
		c.MissedLarge++
	}
}

// report is what was counted; nodes are those of the devices.
func (t *traffic) report(nodes []*device) []radiocontrol.Traffic {
	var out []radiocontrol.Traffic
	for i, k := range t.kinds {
		for j, h := range t.hops {
			c := t.counts[i*len(t.hops)+j]
			if c.SentPackets+c.DroppedPackets == 0 {
				continue
			}
			if t.window > 0 && t.ends[j] == k.to {
				c.MostInWindow = t.windows[i].most
			}
			c.From, c.To, c.Second = h.From, h.To, h.Second
			c.Source, c.Destination = nodes[k.from].node.role, nodes[k.to].node.role
			m := &t.moments[i]
			if c.From == c.Source {
				c.FirstAt, c.FlowingAt = m.began()
				c.Connections = m.whole()
			}
			if t.ends[j] == k.to {
				c.ArrivedAt, c.CarriedAt = m.arrivedAt, m.carriedAt
			}
			c.Protocol, c.SourcePort, c.DestinationPort = int(k.protocol), int(k.fromPort), int(k.toPort)
			out = append(out, c)
		}
	}
	return out
}

// windowSteps is in how many steps a window slides.
const windowSteps = 200

// sliding is the most that came within any time of windowSteps steps: such a time touches
// one step more, and all of that counts.
type sliding struct {
	step      time.Duration
	bytes     [windowSteps + 1]int64
	at        int64 // the newest step
	sum, most int64
}

func (s *sliding) add(at time.Duration, bytes int64) {
	now := int64(at / s.step)
	for n := min(now-s.at, int64(len(s.bytes))); n > 0; n-- {
		old := &s.bytes[(now-n+1)%int64(len(s.bytes))]
		s.sum -= *old
		*old = 0
	}
	s.at = max(s.at, now)
	s.bytes[now%int64(len(s.bytes))] += bytes
	s.sum += bytes
	s.most = max(s.most, s.sum)
}
