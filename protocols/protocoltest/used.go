package protocoltest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"time"

	"linktrial/internal/process"
	"linktrial/protocols/contract"
)

// What the interfaces of a network have carried before its first driver starts, in bytes,
// in either direction: counters that begin at 0 would say that this is no run.
const (
	leastUsed = 128 * kib
	mostUsed  = 8 * mib
)

// At so many datagrams at a time none is lost.
const usedAtOnce = 16

// use sends as much between the ends, both ways, as draws say.
func (n *network) use() error {
	client, err := n.datagrams(contract.RoleClient)
	if err != nil {
		return fmt.Errorf("use the network before its drivers: %w", err)
	}
	defer func() { _ = client.Close() }() // all has been read
	server, err := n.datagrams(contract.RoleServer)
	if err != nil {
		return fmt.Errorf("use the network before its drivers: %w", err)
	}
	defer func() { _ = server.Close() }() // all has been read
	for _, way := range [][2]*net.UDPConn{{client, server}, {server, client}} {
		left := int(leastUsed * math.Pow(float64(mostUsed/leastUsed), rand.Float64()))
		if err := carry(way[0], way[1], left); err != nil {
			return fmt.Errorf("use the network before its drivers: %w", err)
		}
	}
	if n.link != nil {
		n.link.Begin(0)
	}
	return nil
}

// used is the network after [network.use]; it is closed where that fails.
func (n *network) used() (*network, error) {
	if err := n.use(); err != nil {
		n.close()
		return nil, err
	}
	return n, nil
}

// datagrams is a socket at the address of a role, in its namespace.
func (n *network) datagrams(r contract.Role) (c *net.UDPConn, err error) {
	address, _ := n.address(r)
	err = process.InNamespace(n.namespace(r), func() error {
		c, err = net.ListenUDP("udp4", &net.UDPAddr{IP: net.ParseIP(address)})
		return err
	})
	return c, err
}

// carry sends so many bytes from one socket to another one, and reads them there.
func carry(from, to *net.UDPConn, left int) error {
	block := make([]byte, 1400)
	for left > 0 {
		sent := 0
		for ; sent < usedAtOnce && left > 0; sent++ {
			if _, err := from.WriteTo(block[:min(left, len(block))], to.LocalAddr()); err != nil {
				return err
			}
			left -= len(block)
		}
		if err := to.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			return err
		}
		for range sent {
			if _, _, err := to.ReadFrom(block); err != nil {
				return err
			}
		}
	}
	return nil
}
