// Package discovery lets laptops find an orchestrator on the networks of their machine,
// by multicast DNS (RFC 6762) and DNS-SD (RFC 6763): the service _linktrial._tcp. Comes
// in: which interfaces are not used, such as the radio's. Goes out: an announcement while
// it is wanted ([Announce]), and the orchestrators that answer ([Find]).
//
// Nothing here is authenticated: anybody on the network can answer. Who is found proves by
// the short code that it is the right one (internal/joinexchange).
//
// Packets carry the number of the interface that they came by, so that none that came by
// an interface that is not used is answered: the sockets of github.com/hashicorp/mdns,
// one an interface, get the packets of all interfaces on which any program of the machine
// has joined the group, and answer there.
package discovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"
)

// How the service is called, and where it is asked for.
const (
	serviceName = "_linktrial._tcp.local."
	port        = 5353
)

// Service is what is announced.
type Service struct {
	Instance string // for people: the name of the machine
	ID       string // tells orchestrators with one name apart
	Version  string
	Port     int
	// Only is the one address at which the orchestrator listens; invalid: at all of the machine.
	Only netip.Addr
	// Unused reports whether an interface is not used, such as the radio's; nil: none.
	Unused func(net.Interface) bool
}

// Found is an orchestrator that answered.
type Found struct {
	Instance, ID, Version string
	Port                  int
	Addresses             []netip.Addr // with the zone where they need one; those that answered come first
	Interface             string       // of this machine
	answered              []netip.Addr // while it is searched
}

// Address is HOST:PORT to call it at.
func (f *Found) Address() string {
	return net.JoinHostPort(f.Addresses[0].String(), fmt.Sprint(f.Port))
}

// Interfaces returns the interfaces of this machine that can be used: up, with multicast,
// not the loopback, and not unused; nil: none is unused.
func Interfaces(unused func(net.Interface) bool) ([]net.Interface, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("interfaces of this machine: %w", err)
	}
	const needs = net.FlagUp | net.FlagMulticast
	return slices.DeleteFunc(all, func(i net.Interface) bool {
		return i.Flags&needs != needs || i.Flags&net.FlagLoopback != 0 || unused != nil && unused(i)
	}), nil
}

// When it is asked again, and how long others than the first one are waited for.
var asks = []time.Duration{0, time.Second, 3 * time.Second}

const settle = 1500 * time.Millisecond

// ErrNoInterface is returned where there is nothing to search on.
var ErrNoInterface = errors.New("no network interface of this machine is up and can multicast")

// Find asks on the interfaces that interfaces returns, which is called before each time
// that it asks, and returns the orchestrators that answer, sorted by name, until the first
// one has been known for 1.5 s or ctx has ended; without an answer the list is empty. An
// error is returned where nothing could be asked.
func Find(ctx context.Context, interfaces func() ([]net.Interface, error)) ([]Found, error) {
	links, err := open(0)
	if err != nil {
		return nil, err
	}
	defer links.close()
	answers := make(chan packet)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	links.read(ctx, answers)

	var found []Found
	var done <-chan time.Time
	var used []net.Interface
	asked := errors.New("nothing was asked")
	began := time.Now()
	for next := 0; ; {
		var ask <-chan time.Time
		if next < len(asks) {
			ask = time.After(asks[next] - time.Since(began))
		}
		select {
		case <-ask:
			next++
			if used, err = interfaces(); err != nil {
				return nil, err
			}
			if err := links.ask(used); err == nil || asked != nil {
				asked = err // one success is enough
			}
		case p := <-answers:
			f, ok := readAnswer(p.bytes)
			i := slices.IndexFunc(used, func(i net.Interface) bool { return i.Index == p.link })
			if !ok || i < 0 {
				continue
			}
			f.Interface = used[i].Name
			f.on(used[i].Name, p.from.Addr())
			found = add(found, f)
			if done == nil {
				done = time.After(settle)
			}
		case <-done:
			return finished(found), nil
		case <-ctx.Done():
			if len(found) == 0 && asked != nil {
				return nil, asked
			}
			return finished(found), nil
		}
	}
}

// finished is what was found, in the order in which addresses should be tried.
func finished(found []Found) []Found {
	for i := range found {
		f := &found[i]
		slices.SortStableFunc(f.Addresses, func(a, b netip.Addr) int { return cmp.Compare(f.rank(a), f.rank(b)) })
		f.answered = nil
	}
	return found
}

// on completes the addresses of an answer that came by a link.
func (f *Found) on(link string, from netip.Addr) {
	for i, a := range f.Addresses {
		if a.IsLinkLocalUnicast() && a.Is6() {
			f.Addresses[i] = a.WithZone(link)
		}
	}
	f.answered = []netip.Addr{from}
}

// rank orders addresses: those that answered, which this machine reaches, before others,
// and those that every program can be given before those with a zone.
func (f *Found) rank(a netip.Addr) int {
	n := 2
	switch {
	case a.Is4():
		n = 0
	case a.Zone() == "":
		n = 1
	}
	if !slices.Contains(f.answered, a) {
		n += 3
	}
	return n
}

// maxFound bounds what is kept of answers, which anybody may send.
const maxFound = 50

// add adds an orchestrator, or the addresses of one that is known.
func add(found []Found, f Found) []Found {
	for i := range found {
		k := &found[i]
		if k.Instance != f.Instance || k.ID != f.ID || k.Port != f.Port {
			continue
		}
		for _, a := range f.Addresses {
			if !slices.Contains(k.Addresses, a) && len(k.Addresses) < maxFound {
				k.Addresses = append(k.Addresses, a)
			}
		}
		for _, a := range f.answered {
			if !slices.Contains(k.answered, a) && len(k.answered) < maxFound {
				k.answered = append(k.answered, a)
			}
		}
		return found
	}
	if len(found) >= maxFound {
		return found
	}
	found = append(found, f)
	slices.SortStableFunc(found, func(a, b Found) int {
		return cmp.Or(cmp.Compare(a.Instance, b.Instance), cmp.Compare(a.ID, b.ID))
	})
	return found
}
