package main

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"
)

// carrier takes packets from a site's TUN device to the other node, each in one
// UDP datagram, and back.
type carrier struct {
	wan *os.File
	udp *net.UDPConn
	// to is where the other node is; the zero value for a server, which learns it
	// from what comes.
	to netip.AddrPort

	mu      sync.Mutex
	clients map[netip.Addr]netip.AddrPort // of a server, by inner address
	refused chan struct{}                 // closed when no server listens there
	once    sync.Once
	last    time.Time // when the last packet went out
	work    sync.WaitGroup
}

// maxClients bounds how many inner addresses a server remembers. A client that is
// forgotten is known again with its next packet.
const maxClients = 4096

func carry(wan *os.File, udp *net.UDPConn, to netip.AddrPort) *carrier {
	c := &carrier{wan: wan, udp: udp, to: to, clients: map[netip.Addr]netip.AddrPort{}, refused: make(chan struct{})}
	c.work.Go(c.out)
	c.work.Go(c.in)
	return c
}

// Places in an IPv4 header (RFC 791).
const (
	ipv4Header  = 20
	source      = 12
	destination = 16
	totalLength = 2
)

// inner returns the addresses of an IPv4 packet; false for anything else.
func inner(b []byte) (from, to netip.Addr, ok bool) {
	if len(b) < ipv4Header || b[0]>>4 != 4 || int(binary.BigEndian.Uint16(b[totalLength:])) > len(b) {
		return from, to, false
	}
	return netip.AddrFrom4([4]byte(b[source:])), netip.AddrFrom4([4]byte(b[destination:])), true
}

// out carries what the gateway sends.
func (c *carrier) out() {
	b := make([]byte, 1<<16)
	for {
		n, err := c.wan.Read(b)
		if err != nil {
			return // closed
		}
		_, dst, ok := inner(b[:n])
		if !ok {
			continue
		}
		c.mu.Lock()
		to := c.to
		if !to.IsValid() {
			to = c.clients[dst]
		}
		c.last = time.Now()
		c.mu.Unlock()
		if !to.IsValid() {
			continue
		}
		// A packet that cannot be sent is lost, as on any link.
		if c.to.IsValid() {
			_, err = c.udp.Write(b[:n])
		} else {
			_, err = c.udp.WriteToUDPAddrPort(b[:n], to)
		}
		c.note(err)
	}
}

// in carries what the other node sends.
func (c *carrier) in() {
	b := make([]byte, 1<<16)
	for {
		n, from, err := c.udp.ReadFromUDPAddrPort(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		c.note(err)
		src, _, ok := inner(b[:n])
		if err != nil || !ok {
			continue
		}
		if !c.to.IsValid() {
			c.mu.Lock()
			if _, known := c.clients[src]; !known && len(c.clients) >= maxClients {
				clear(c.clients)
			}
			c.clients[src] = from
			c.mu.Unlock()
		}
		// What the device does not take is lost, as on any link.
		_, _ = c.wan.Write(b[:n])
	}
}

// note closes refused when the other node has said that nobody listens.
func (c *carrier) note(err error) {
	if errors.Is(err, syscall.ECONNREFUSED) {
		c.once.Do(func() { close(c.refused) })
	}
}

// Farewell: how long a carrier waits for the gateway's last packets, the end of
// connections, and for how long none must have come.
const (
	farewell      = 200 * time.Millisecond
	farewellQuiet = 20 * time.Millisecond
)

// drain waits until the gateway sends no more, or for as long as it may.
func (c *carrier) drain() {
	for begin := time.Now(); time.Since(begin) < farewell; time.Sleep(farewellQuiet / 4) {
		c.mu.Lock()
		since := time.Since(c.last)
		c.mu.Unlock()
		if since > farewellQuiet && time.Since(begin) > farewellQuiet {
			return
		}
	}
}

// close ends the carrier and waits for its goroutines.
func (c *carrier) close() {
	_ = c.udp.Close() // it fails only where it was closed already
	c.wan.Close()
	c.work.Wait()
}
