package protocoltest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"linktrial/protocols/protocoltest/link"
)

// The further addresses of either side, where a check has a [link.Link] of its own.
const (
	clientAddress2 = "192.0.2.2"
	serverAddress2 = "198.51.100.2"
	// The same in IPv6 (RFC 3849).
	clientAddress6 = "2001:db8:1::1"
	serverAddress6 = "2001:db8:2::1"
	// nowhere is an address that no route leads to (RFC 5737, TEST-NET-3).
	nowhere = "203.0.113.1"
)

// flowingBytes is more than any handshake: who has sent so much has started
// the clock, which runs from just after the header is written.
const flowingBytes = 16 * kib

// newLinkNetwork makes a client and a server namespace with a link between them
// that the suite carries.
func newLinkNetwork(client, server []string) (*network, error) {
	l, err := link.New(client, server)
	if errors.Is(err, link.ErrNoTUN) {
		return nil, skip("%v", link.ErrNoTUN)
	}
	if err != nil {
		return nil, fmt.Errorf("make a link between network namespaces: %w", err)
	}
	return &network{client: l.Client, server: l.Server, link: l}, nil
}

// newNetworkApart is the network of a check that runs apart, with all addresses;
// or the loopback interface under the conditions of [newNetwork].
func newNetworkApart(loopback string) (*network, error) {
	if loopback != "" {
		return &network{loopback: loopback}, nil
	}
	return newLinkNetwork(
		[]string{clientAddress, clientAddress2, clientAddress6},
		[]string{serverAddress, serverAddress2, serverAddress6})
}

// needLink skips a check that needs the suite's own link.
func (s *suite) needLink() (*link.Link, error) {
	if s.net.link == nil {
		return nil, skip("needs a link between network namespaces: %s", s.net.loopback)
	}
	return s.net.link, nil
}

// onLink runs a measurement over a link that the suite can hold. Everyone has
// namespaces of its own: what another measurement's drivers still send is not on
// this link.
func (s *suite) onLink(measure func(*link.Link) error) error {
	if s.net.loopback != "" {
		return skip("packets on the loopback interface cannot be held: %s", s.net.loopback)
	}
	n, err := newLinkNetwork([]string{clientAddress}, []string{serverAddress})
	if err != nil {
		return err
	}
	before := s.net
	s.net = n
	defer func() {
		s.cleanup()
		s.net = before
		n.close()
	}()
	return measure(n.link)
}

// awaitHeld waits until the link holds something of the client; false: c ended before.
func awaitHeld(ctx context.Context, l *link.Link, c *proc, within time.Duration, what string) (bool, error) {
	t := time.NewTimer(within)
	defer t.Stop()
	for {
		changed := l.Changed()
		if l.Up.Traffic().Held > 0 {
			return true, nil
		}
		select {
		case <-changed:
		case <-c.ended:
			return false, nil
		case <-t.C:
			up, down := l.Traffic()
			return false, fmt.Errorf("%s within %s: the link has seen %d bytes of the client and %d of the server", what, within.Round(time.Millisecond), up.Content, down.Content)
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// loseOneOf loses one of so many packets with content once the client's clock
// runs; nil for 0: none. The function is for one lane.
func loseOneOf(each int) func(link.Packet) bool {
	if each == 0 {
		return nil
	}
	n := 0
	return func(p link.Packet) bool {
		if p.Content == 0 || p.Came < flowingBytes {
			return false
		}
		n++
		return n%each == 0
	}
}
