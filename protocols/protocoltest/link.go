package protocoltest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"linktrial/protocols/protocoltest/link"
)

// flowingBytes is more than any handshake: who has sent so much has started
// the clock, which runs from just after the header is written.
const flowingBytes = 16 * kib

// newLinkNetwork makes a client and a server namespace with a link between them
// that the suite carries; all: each end has further addresses, and of IPv6.
func newLinkNetwork(a addresses, all bool) (*network, error) {
	client, server := []string{a.client}, []string{a.server}
	if all {
		client, server = append(client, a.client2, a.client6), append(server, a.server2, a.server6)
	}
	l, err := link.New(client, server)
	if errors.Is(err, link.ErrNoTUN) {
		return nil, skip("%v", link.ErrNoTUN)
	}
	if err != nil {
		return nil, fmt.Errorf("make a link between network namespaces: %w", err)
	}
	n := &network{client: l.Client, server: l.Server, link: l, at: a}
	return n.used()
}

// newNetworkApart is the network of a check that runs apart, with all addresses;
// or the loopback interface under the conditions of [newNetwork].
func newNetworkApart(at addresses, loopback string) (*network, error) {
	if loopback != "" {
		return &network{loopback: loopback, at: at}, nil
	}
	return newLinkNetwork(at, true)
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
	n, err := newLinkNetwork(s.ends.at, false)
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
