package discovery

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// rescan is how often interfaces are looked for that came up since.
	rescan = 2 * time.Second
	// answersASecond bounds what is sent for questions, which anybody may send in
	// anybody's name.
	answersASecond = 20
)

// Announce answers questions for the service until stop is called, on each interface that
// can be used, also one that comes up later.
func Announce(s Service) (stop func(), err error) {
	links, err := open(port)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	questions := make(chan packet)
	links.read(ctx, questions)
	var done sync.WaitGroup
	done.Go(func() { s.serve(ctx, links, questions) })
	return func() {
		cancel()
		links.close()
		done.Wait()
	}, nil
}

func (s *Service) serve(ctx context.Context, links families, questions <-chan packet) {
	limit := rate.NewLimiter(answersASecond, answersASecond)
	tick := time.NewTicker(rescan)
	defer tick.Stop()
	used := s.join(links)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			before := used
			used = s.join(links)
			links.leave(before, used)
		case q := <-questions:
			id, ok := readQuestion(q.bytes)
			if addresses := used[q.link]; ok && q.group && len(addresses) > 0 && limit.Allow() && s.uses(q.link) {
				s.reply(q, id, addresses)
			}
		}
	}
}

// join joins the group on the interfaces that are used, and returns the addresses that
// are told on each, by its index.
func (s *Service) join(links families) map[int][]netip.Addr {
	used := map[int][]netip.Addr{}
	all, err := Interfaces(s.Unused)
	if err != nil {
		return used // asked again soon
	}
	for _, i := range all {
		addresses := s.addresses(i)
		if len(addresses) == 0 {
			continue
		}
		for _, f := range links {
			_ = f.join(&i) // it fails where it is joined already, and where the family has no address
		}
		used[i.Index] = addresses
	}
	return used
}

// uses reports whether an interface is used still: it can have become a radio's since the
// interfaces were looked for.
func (s *Service) uses(link int) bool {
	i, err := net.InterfaceByIndex(link)
	return err == nil && (s.Unused == nil || !s.Unused(*i))
}

// addresses are those of an interface at which the orchestrator listens.
func (s *Service) addresses(i net.Interface) []netip.Addr {
	all, err := i.Addrs()
	if err != nil {
		return nil
	}
	var out []netip.Addr
	for _, a := range all {
		n, ok := a.(*net.IPNet)
		if !ok {
			continue
		}
		ip, ok := netip.AddrFromSlice(n.IP)
		if ip = ip.Unmap(); ok && s.listensAt(ip) {
			out = append(out, ip)
		}
	}
	return out
}

// listensAt reports whether the orchestrator can be reached at an address of the machine:
// 0.0.0.0 is all of IPv4, :: all of both.
func (s *Service) listensAt(ip netip.Addr) bool {
	if s.Only == netip.IPv4Unspecified() {
		return ip.Is4()
	}
	return !s.Only.IsValid() || s.Only.IsUnspecified() || s.Only.WithZone("") == ip
}

// reply answers who asked, or the group where the answer is for all (RFC 6762, 6.7).
func (s *Service) reply(q packet, id uint16, addresses []netip.Addr) {
	legacy := q.from.Port() != port
	b, err := s.answer(id, addresses, legacy)
	if err != nil {
		return // no name that DNS takes; tests hold that there is none
	}
	to := q.via.toGroup()
	if legacy {
		to = q.from
	}
	_ = q.via.write(b, q.link, to) // lost like any datagram: who asks asks again
}
