package transfer

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"linktrial/executor/runsheet"
	"linktrial/internal/packetsocket"
)

// counted are the packets of connections to one listener that passed an interface of
// this node.
type counted struct {
	toReceived, toSent, fromReceived, fromSent int64
	fragments                                  int64
	protocol                                   uint8 // of IP; 0: there were none
	interfaces                                 []int // their indexes, in the order of their first packets
}

// counter counts the packets from and to ports on all interfaces. The kernel hands them
// over as they arrive, before a firewall of this node, and as they leave, after it.
type counter struct {
	ports     map[uint16]*counted
	addresses map[netip.Addr]bool // one end of each packet

	mu        sync.Mutex
	fragments map[packetsocket.Fragment]place // by what their first one has

	file    *os.File
	reading sync.WaitGroup
}

// place is the listener to whose connections a packet belongs, and the direction.
type place struct {
	port uint16
	to   bool // it goes to the port
}

// maxFragments bounds the packets whose later fragments are told from others.
const maxFragments = 4096

func newCounter(ports []uint16, addresses []netip.Addr) *counter {
	c := &counter{ports: map[uint16]*counted{}, addresses: map[netip.Addr]bool{}, fragments: map[packetsocket.Fragment]place{}}
	for _, p := range ports {
		c.ports[p] = &counted{}
	}
	for _, a := range addresses {
		c.addresses[a.Unmap().WithZone("")] = true
	}
	return c
}

// startCounter counts until close.
func startCounter(ports []uint16, addresses []netip.Addr) (*counter, error) {
	c := newCounter(ports, addresses)
	fd, err := packetsocket.Open(packetsocket.Ports(runsheet.FirstPort, runsheet.LastPort), 0)
	if err != nil {
		return nil, err
	}
	// More than what the default holds of a burst; fewer would only make the values smaller.
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 8<<20)
	c.file = os.NewFile(uintptr(fd), "packets")
	raw, err := c.file.SyscallConn()
	if err != nil {
		_ = c.file.Close() // nothing was written
		return nil, err
	}
	c.reading.Go(func() { c.read(raw) })
	return c, nil
}

// read returns when the socket is closed.
func (c *counter) read(raw syscall.RawConn) {
	var head [packetsocket.Snapshot]byte
	_ = raw.Read(func(fd uintptr) bool { // its error is that the socket is closed
		for {
			n, from, err := unix.Recvfrom(int(fd), head[:], 0)
			if errors.Is(err, unix.EAGAIN) {
				return false
			}
			if err != nil {
				if errors.Is(err, unix.EINTR) || errors.Is(err, unix.ENETDOWN) { // of one interface
					continue
				}
				return true
			}
			if link, ok := from.(*unix.SockaddrLinklayer); ok {
				c.count(head[:n], link.Ifindex, link.Pkttype)
			}
		}
	})
}

// count adds one packet, of which b is the beginning.
func (c *counter) count(b []byte, ifindex int, kind uint8) {
	h, ok := packetsocket.ParseHead(b)
	if !ok || !c.addresses[h.Source] && !c.addresses[h.Destination] {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.placeOf(&h)
	if !ok {
		return
	}
	n := c.ports[at.port]
	out := kind == unix.PACKET_OUTGOING
	switch {
	case at.to && out:
		n.toSent++
	case at.to:
		n.toReceived++
	case out:
		n.fromSent++
	default:
		n.fromReceived++
	}
	if h.Fragmented {
		n.fragments++
	}
	n.protocol = h.Protocol
	if !slices.Contains(n.interfaces, ifindex) {
		n.interfaces = append(n.interfaces, ifindex)
	}
}

func (c *counter) placeOf(h *packetsocket.Head) (place, bool) {
	if h.Fragmented && !h.First {
		at, ok := c.fragments[h.Fragment]
		return at, ok
	}
	at := place{h.DestinationPort, true}
	if c.ports[at.port] == nil {
		at = place{h.SourcePort, false}
	}
	if c.ports[at.port] == nil {
		return at, false
	}
	if h.Fragmented && len(c.fragments) < maxFragments {
		c.fragments[h.Fragment] = at
	}
	return at, true
}

// of returns what was counted of a port.
func (c *counter) of(port uint16) counted {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := *c.ports[port]
	n.interfaces = slices.Clone(n.interfaces)
	return n
}

// close ends the count and waits for that.
func (c *counter) close() {
	_ = c.file.Close() // nothing was written
	c.reading.Wait()
}

// names of interfaces; one that has gone has its index.
func (n *counted) names() []string {
	var out []string
	for _, i := range n.interfaces {
		name := "?"
		if l, err := net.InterfaceByIndex(i); err == nil {
			name = l.Name
		}
		out = append(out, name)
	}
	return out
}
