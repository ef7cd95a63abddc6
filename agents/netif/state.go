package netif

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"linktrial/agents/netif/settings"
)

// Radio is one radio of a node, as a run uses it.
type Radio struct {
	Device  string     // its network interface
	Address netip.Addr // of the node on the radio's network; the zero value: not known
	MTU     int        // that the interface should have, in bytes; 0: the one that it has when it is watched first
	// Peers are addresses of other nodes on the radio's network. Packets to them must
	// leave through the interface.
	Peers []netip.Addr
	// Near are such addresses that count only where the interface has an address in their
	// network: a relay may reach others over another radio.
	Near []netip.Addr
}

// State is what of a network interface a transfer depends on, at one moment.
type State struct {
	There, Up, Carrier bool
	Loopback           bool // and no radio's: its MTU is its own
	Resolves           bool // it finds hardware addresses by ARP and ND
	Index              int
	MAC                string // hardware address; empty: it has none
	MTU                int
	RenamedTo          string             // the name that the interface with the known index has now, where There is not set
	Addressed          bool               // has the radio's address
	Unusable           string             // why the address cannot be used though the interface has it; empty: it can
	Has                []string           // its addresses of the kind of the radio's
	Homeless           bool               // nor has another interface of the node the radio's address
	Detours            []string           // how packets to other nodes leave past it
	settings           *settings.Settings // nil: not read
}

// settings says which settings are the radio's.
func (r *Radio) settings() *settings.Of {
	of := &settings.Of{Device: r.Device, From: r.Address}
	for _, to := range slices.Concat(r.Peers, r.Near) {
		if to = to.Unmap(); routed(r, to) {
			of.To = append(of.To, to)
		}
	}
	return of
}

// usable reports whether packets can leave through the interface from the address.
func (s *State) usable() bool {
	return s.There && s.Up && s.Carrier && !s.Homeless && s.Unusable == ""
}

// transfers reports whether its routes and settings matter.
func (s *State) transfers() bool { return s.usable() && !s.Loopback }

// Read reads the state of a radio's interface in this process's network namespace.
func Read(r *Radio) (State, error) {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return State{}, fmt.Errorf("state of interface %s: %w", r.Device, err)
	}
	defer h.Close()
	return read(h, nil, r, 0), nil
}

// Faults says what keeps the interface from carrying packets for the radio's node; empty:
// nothing.
func (s *State) Faults(r *Radio) string {
	return s.wrong(&expected{radio: r, mtu: r.MTU})
}

// read reads the state, the settings with a reader of them, nil for none. Where there is no
// interface of that name, it looks whether that of a known index, 0 for none, has another
// name.
func read(h *netlink.Handle, reads *settings.Reader, r *Radio, known int) State {
	l, err := h.LinkByName(r.Device)
	if err != nil {
		var s State
		if known == 0 {
			return s
		}
		if l, err := h.LinkByIndex(known); err == nil {
			s.RenamedTo = l.Attrs().Name
		}
		return s
	}
	a := l.Attrs()
	s := State{There: true, Loopback: a.Flags&net.FlagLoopback != 0, Up: a.Flags&net.FlagUp != 0, Carrier: a.Flags&net.FlagRunning != 0, Index: a.Index, MAC: a.HardwareAddr.String(), MTU: a.MTU}
	s.Resolves = a.EncapType == "ether" && a.RawFlags&unix.IFF_NOARP == 0 && len(a.HardwareAddr) == 6
	if !r.Address.IsValid() {
		return s
	}
	addresses, _ := h.AddrList(l, netlink.FAMILY_ALL) // of an interface that has gone: none
	s.readAddresses(r, addresses)
	if s.transfers() {
		s.readRoutes(h, r, addresses)
		if reads != nil {
			s.settings = reads.Read(r.settings(), a)
		}
	}
	return s
}

func (s *State) readAddresses(r *Radio, addresses []netlink.Addr) {
	own := r.Address.Unmap().WithZone("")
	for _, x := range addresses {
		have, _ := netip.AddrFromSlice(x.IP)
		have = have.Unmap()
		if have == own {
			s.Addressed, s.Unusable = true, unusable(x.Flags)
		}
		if have.Is4() == own.Is4() && have.IsLinkLocalUnicast() == own.IsLinkLocalUnicast() {
			s.Has = append(s.Has, have.String())
		}
	}
	if !s.Addressed || s.Unusable != "" {
		can := bindable(r.Address)
		s.Homeless = !s.Addressed && !can
		if can { // an optimistic one is tentative and can be used (RFC 4429)
			s.Unusable = ""
		}
	}
}

// unusable says why the kernel refuses an address with these flags of RTM_NEWADDR
// (rtnetlink(7)): of IPv6, until nobody else on the link is known to have it (RFC 4862,
// section 5.4). One that is deprecated can be used by who names it, as drivers do.
func unusable(flags int) string {
	switch {
	case flags&unix.IFA_F_DADFAILED != 0:
		return "another machine on the link has it as well (the kernel says dadfailed)"
	case flags&unix.IFA_F_TENTATIVE != 0:
		return "the kernel still looks whether another machine on the link has it (tentative)"
	}
	return ""
}

// bindable reports whether sockets can have an address. Not every address that they can
// have is one of an interface: all of 127.0.0.0/8 are the loopback's.
func bindable(address netip.Addr) bool {
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(address, 0)))
	if err != nil {
		return !errors.Is(err, unix.EADDRNOTAVAIL)
	}
	_ = c.Close()
	return true
}

// expected is what an interface has to have besides being up.
type expected struct {
	radio     *Radio
	mtu       int
	addressed bool               // had the radio's address when it was watched first
	settings  *settings.Settings // nil: any
}

// wrong says what keeps an interface from carrying packets as expected; empty: nothing.
func (s *State) wrong(want *expected) string {
	var out []string
	switch {
	case !s.There && s.RenamedTo != "":
		return "it does not exist: the interface is now named " + s.RenamedTo
	case !s.There:
		return "it does not exist"
	case !s.Up:
		out = append(out, "it is down")
	case !s.Carrier:
		out = append(out, "it has no carrier")
	}
	if want.mtu != 0 && s.MTU != want.mtu {
		out = append(out, fmt.Sprintf("its MTU is %d, expected %d", s.MTU, want.mtu))
	}
	switch {
	case want.addressed && !s.Addressed:
		out = append(out, "it has lost its address"+s.instead(want.radio))
	case s.Homeless: // since before it was watched
		out = append(out, "it does not have the node's radio address"+s.instead(want.radio))
	case s.Unusable != "":
		out = append(out, fmt.Sprintf("its address %s cannot be used: %s", want.radio.Address, s.Unusable))
	}
	out = append(out, s.Detours...)
	for _, c := range s.settings.Changed(want.settings) {
		out = append(out, c.String()+": put it back")
	}
	return strings.Join(out, ", ")
}

// instead says which addresses the interface has where it lacks the radio's.
func (s *State) instead(r *Radio) string {
	if len(s.Has) == 0 {
		return fmt.Sprintf(" %s and has none", r.Address)
	}
	return fmt.Sprintf(" %s and has %s", r.Address, strings.Join(s.Has, " and "))
}

// replaced says that the interface is another one than the one before; empty: it is not.
// Sockets that are bound to an interface stay bound to its index, and other nodes send to
// the hardware address that they know until they ask again.
func (s *State) replaced(before *State) string {
	switch {
	case !s.There || before.Index == 0:
		return ""
	case s.Index != before.Index:
		return fmt.Sprintf("another interface has its name (index %d, before %d)", s.Index, before.Index)
	case s.MAC != before.MAC:
		return fmt.Sprintf("its hardware address is %s, before %s", s.MAC, before.MAC)
	}
	return ""
}

// HowToAdd is the command that gives an interface an address, in quotes, for people. The
// length of its network is a guess: that of most small ones.
func HowToAdd(address netip.Addr, device string) string {
	length := 24
	if address.Is6() && !address.Is4In6() {
		length = 64
	}
	return fmt.Sprintf("'ip address add %s/%d dev %s'", address.WithZone(""), length, device)
}
