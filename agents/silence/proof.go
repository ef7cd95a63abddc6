package silence

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"linktrial/executor/journal"
	"linktrial/internal/packetsocket"
)

// Proof counts the packets between this node and the orchestrator on all interfaces of
// the node. It rests on nothing that keeps the agent silent: the kernel picks the
// packets by the orchestrator's address and port, and counts them.
type Proof struct {
	fd    int
	ends  []netip.AddrPort // the orchestrator's
	local map[netip.Addr]bool
	own   func() (map[netip.Addr]bool, error) // reads local
}

// lookupLimit bounds the look-up of the orchestrator's addresses, before a run begins.
const lookupLimit = 10 * time.Second

// maxAddresses bounds the orchestrator's addresses: a jump in the filter is at most 255
// instructions long.
const maxAddresses = 16

// NewProof counts from now on until Close.
func NewProof(ctx context.Context, orchestrator string) (*Proof, error) {
	fail := func(err error) (*Proof, error) {
		return nil, fmt.Errorf("control packets cannot be counted: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, lookupLimit)
	defer cancel()
	addresses, port, err := endpoints(ctx, orchestrator)
	if err != nil {
		return fail(err)
	}
	fd, err := packetsocket.Open(controlFilter(addresses, port), 0)
	if err != nil {
		return fail(err)
	}
	p := &Proof{fd: fd, own: ownAddresses}
	for _, a := range addresses {
		p.ends = append(p.ends, netip.AddrPortFrom(a.Unmap(), port))
	}
	if p.local, err = p.own(); err != nil {
		_ = unix.Close(fd) // nothing was written
		return fail(err)
	}
	return p, nil
}

// ownAddresses are the node's.
func ownAddresses() (map[netip.Addr]bool, error) {
	here, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	own := map[netip.Addr]bool{}
	for _, a := range here {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil {
			own[prefix.Addr().Unmap()] = true
		}
	}
	return own, nil
}

// Ends are where the orchestrator's packets come from and go to, at its end. One on this
// node has every address of it.
func Ends(ctx context.Context, orchestrator string) (out []netip.AddrPort, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookupLimit)
	defer cancel()
	addresses, port, err := endpoints(ctx, orchestrator)
	if err != nil {
		return nil, err
	}
	own, err := ownAddresses()
	if err != nil {
		return nil, err
	}
	here := false
	for _, a := range addresses {
		out = append(out, netip.AddrPortFrom(a.Unmap(), port))
		here = here || own[a.Unmap()]
	}
	if here {
		for a := range own {
			out = append(out, netip.AddrPortFrom(a, port))
		}
	}
	return out, nil
}

// endpoints are the orchestrator's addresses and port.
func endpoints(ctx context.Context, orchestrator string) ([]netip.Addr, uint16, error) {
	u, err := url.Parse(orchestrator)
	if err != nil {
		return nil, 0, err
	}
	name := u.Port()
	if name == "" {
		name = u.Scheme
	}
	port, err := net.DefaultResolver.LookupPort(ctx, "tcp", name)
	if err != nil {
		return nil, 0, err
	}
	all, err := net.DefaultResolver.LookupNetIP(ctx, "ip", u.Hostname())
	if err != nil {
		return nil, 0, err
	}
	if len(all) > maxAddresses {
		return nil, 0, fmt.Errorf("%s has %d addresses, expected at most %d", u.Hostname(), len(all), maxAddresses)
	}
	return all, uint16(port), nil
}

// Take is what was counted since it was called last.
func (p *Proof) Take() (c journal.ControlTraffic, err error) {
	var head [maxHead]byte
	fresh := false
	for {
		n, _, err := unix.Recvfrom(p.fd, head[:], unix.MSG_TRUNC)
		if errors.Is(err, unix.EAGAIN) {
			break
		}
		if errors.Is(err, unix.EINTR) || errors.Is(err, unix.ENETDOWN) { // of one interface
			continue
		}
		if err != nil {
			return c, fmt.Errorf("control packets: %w", err)
		}
		c.Bytes += int64(n)
		end, ok := p.node(head[:min(n, len(head))])
		if ok && !p.local[end] && !fresh { // an interface may have come with another address
			if own, err := p.own(); err == nil {
				p.local, fresh = own, true
			}
		}
		if ok && !p.local[end] {
			c.Others, c.OthersBytes = c.Others+1, c.OthersBytes+int64(n)
		}
	}
	// Those for which the socket had no room are among them.
	s, err := unix.GetsockoptTpacketStats(p.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err != nil {
		return c, fmt.Errorf("control packets: %w", err)
	}
	c.Packets = int64(s.Packets)
	return c, nil
}

// maxHead is the longest IP header, IPv4's with all options, and the ports after it.
const maxHead = 64

// node is the address of the node that a packet, of which this is the beginning, is from
// or to: the end that is not the orchestrator.
func (p *Proof) node(b []byte) (netip.Addr, bool) {
	source, destination, ok := packetEnds(b)
	switch {
	case ok && slices.Contains(p.ends, source):
		return destination.Addr(), true
	case ok && slices.Contains(p.ends, destination):
		return source.Addr(), true
	}
	return netip.Addr{}, false
}

// packetEnds are both ends of a TCP packet. Offsets are of RFC 791 and RFC 8200.
func packetEnds(b []byte) (source, destination netip.AddrPort, ok bool) {
	if len(b) == 0 {
		return
	}
	from, size, head := 12, 4, int(b[0]&15)*4
	if b[0]>>4 == 6 {
		from, size, head = 8, 16, 40
	}
	if len(b) < head+4 || head < from+2*size {
		return
	}
	s, _ := netip.AddrFromSlice(b[from : from+size])
	d, _ := netip.AddrFromSlice(b[from+size : from+2*size])
	return netip.AddrPortFrom(s.Unmap(), binary.BigEndian.Uint16(b[head:])), netip.AddrPortFrom(d.Unmap(), binary.BigEndian.Uint16(b[head+2:])), true
}

// Close ends the count.
func (p *Proof) Close() error { return unix.Close(p.fd) }

// controlFilter takes TCP packets from and to one of the addresses, with the port at
// that end. Offsets are of RFC 791, RFC 8200 and RFC 9293.
func controlFilter(addresses []netip.Addr, port uint16) []bpf.Instruction {
	var v4, v6 []netip.Addr
	for _, a := range addresses {
		if a = a.Unmap(); a.Is4() {
			v4 = append(v4, a)
		} else {
			v6 = append(v6, a)
		}
	}
	over4 := slices.Concat([]bpf.Instruction{
		bpf.LoadAbsolute{Off: 9, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.IPPROTO_TCP, SkipTrue: 1}, bpf.RetConstant{Val: 0},
		bpf.LoadMemShift{Off: 0},
	}, matchEnds(v4, port, 12, bpf.LoadIndirect{Off: 0, Size: 2}, bpf.LoadIndirect{Off: 2, Size: 2}))
	over6 := slices.Concat([]bpf.Instruction{
		bpf.LoadAbsolute{Off: 6, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.IPPROTO_TCP, SkipTrue: 1}, bpf.RetConstant{Val: 0},
	}, matchEnds(v6, port, 8, bpf.LoadAbsolute{Off: 40, Size: 2}, bpf.LoadAbsolute{Off: 42, Size: 2}))
	return slices.Concat([]bpf.Instruction{
		bpf.LoadExtension{Num: bpf.ExtProto},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.ETH_P_IP, SkipFalse: uint8(len(over4))},
	}, over4, []bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.ETH_P_IPV6, SkipTrue: 1}, bpf.RetConstant{Val: 0},
	}, over6)
}

// matchEnds takes packets whose source, at an offset, or destination after it, is one of
// the addresses of one family, where the port at that end is this one.
func matchEnds(addresses []netip.Addr, port uint16, source uint32, sourcePort, destinationPort bpf.Instruction) []bpf.Instruction {
	var code []bpf.Instruction
	for _, a := range addresses {
		words := a.AsSlice()
		for end, load := range []bpf.Instruction{sourcePort, destinationPort} {
			at := source + uint32(end*len(words))
			rest := len(words)/2 + 3 // instructions about this end
			for i := 0; i < len(words); i += 4 {
				rest -= 2
				code = append(code, bpf.LoadAbsolute{Off: at + uint32(i), Size: 4},
					bpf.JumpIf{Cond: bpf.JumpEqual, Val: binary.BigEndian.Uint32(words[i:]), SkipFalse: uint8(rest)})
			}
			code = append(code, load, bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(port), SkipFalse: 1}, bpf.RetConstant{Val: 0xffff})
		}
	}
	return append(code, bpf.RetConstant{Val: 0})
}
