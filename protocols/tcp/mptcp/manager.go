package mptcp

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Endpoints and limits are the network namespace's, and outlive the process that has
// set them. Whatever a process of ours sets has therefore an owner that lives: a
// netlink socket whose number is unique in the namespace and ends with its process. An
// endpoint with one of our identities and no owner was left by a killed process, and
// the next one that starts removes it.
const (
	// firstID to lastID are the identities of our endpoints. The kernel gives its own
	// from 1 on, at most 8 at a time, and so does nobody else come near.
	firstID = 192
	lastID  = 223
	// firstMemo is the identity of the endpoint that remembers the limit which clients
	// have raised: it does nothing, and its identity is firstMemo and the earlier limit.
	firstMemo = 224
	lastMemo  = firstMemo + maxAccepted
	// maxAccepted is MPTCP_PM_ADDR_MAX, the highest limit that the kernel takes.
	maxAccepted = 8

	ownerOfEndpoint = 0x4C550000 // and the identity
	ownerOfLimit    = 0x4C560000 // and a slot
	clients         = 64         // slots
	ownerOfChanges  = 0x4C570000 // held while a process changes anything
)

// memoAddress is that of the endpoint that remembers a limit: one of those that no
// node has (RFC 5737).
var memoAddress = netip.MustParseAddr("192.0.2.76")

// changeWait is how long a process waits for another one that changes something.
const changeWait = 2 * time.Second

// Announce tells connections that come to this namespace of further addresses, at
// which they find the given port, too: the kernel listens there. What the caller gets
// takes that back. It needs CAP_NET_ADMIN.
func Announce(addresses []netip.Addr, port uint16) (release func(), err error) {
	m, done, err := change()
	if err != nil {
		return nil, err
	}
	defer done()
	if _, err := m.limitsFor(len(addresses)); err != nil {
		return nil, err
	}
	var held []*ownEndpoint
	release = func() {
		for _, e := range held {
			e.remove()
		}
	}
	for _, a := range addresses {
		e, err := m.announce(a, port)
		if err != nil {
			release()
			return nil, fmt.Errorf("announce %s port %d: %w", a, port, err)
		}
		held = append(held, e)
	}
	return release, nil
}

// Accept lets connections from this namespace connect to so many further addresses of
// the other end. What the caller gets sets the limit back, where no other process of
// ours needs it. own are the addresses of this node's radios. It needs CAP_NET_ADMIN.
func Accept(count int, own []netip.Addr) (release func(), err error) {
	m, done, err := change()
	if err != nil {
		return nil, err
	}
	defer done()
	l, err := m.limitsFor(count)
	if err != nil {
		return nil, err
	}
	owner, err := ownSlot()
	if err != nil {
		return nil, err
	}
	if int(l.accepted) < count {
		memo := &endpoint{id: firstMemo + uint8(min(l.accepted, maxAccepted)), address: memoAddress}
		if err := m.add(memo); err != nil && !errors.Is(err, unix.EEXIST) { // there where two clients ask for different counts
			_ = unix.Close(owner)
			return nil, fmt.Errorf("remember the limits: %w", err)
		}
		l.accepted = uint32(count)
		if err := m.setLimits(l); err != nil {
			_ = unix.Close(owner)
			return nil, fmt.Errorf("raise the limits: %w", err)
		}
	}
	return func() {
		_ = unix.Close(owner)
		if err := sweep(own); err != nil {
			slog.Warn("set the limits of MPTCP back", "error", err)
		}
	}, nil
}

// sweep removes what has no owner any more, and the endpoints that the kernel has made
// itself for the given addresses.
func sweep(own []netip.Addr) error {
	m, done, err := change()
	if err != nil {
		return err
	}
	defer done()
	if m.clientsLeft() {
		return nil
	}
	list, err := m.endpoints()
	if err != nil {
		return err
	}
	for i := range list {
		if e := &list[i]; e.flags&flagImplicit != 0 && slices.Contains(own, e.address) {
			if err := m.remove(e); err != nil && !errors.Is(err, unix.ENOENT) {
				return err
			}
		}
	}
	return nil
}

// limitsFor are the limits of a namespace that allows connections so many subflows
// beside the first.
func (m *manager) limitsFor(count int) (limits, error) {
	l, err := m.limits()
	if err == nil && int(l.subflows) < count {
		err = fmt.Errorf("this network namespace allows connections %d further subflows, expected at least %d: 'ip mptcp limits set subflows %d'", l.subflows, count, count)
	}
	return l, err
}

// Possible reports whether this process may change the path manager, or why not.
func Possible() error {
	m, err := open()
	if err != nil {
		return err
	}
	_, err = m.endpoints()
	return explain(err)
}

// ownEndpoint is an endpoint with its owner.
type ownEndpoint struct {
	endpoint
	owner int
}

func (m *manager) announce(a netip.Addr, port uint16) (*ownEndpoint, error) {
	list, err := m.endpoints()
	if err != nil {
		return nil, err
	}
	// The kernel gives endpoints of its own the identities after the last one.
	taken := map[uint8]bool{}
	for _, there := range list {
		taken[there.id] = true
	}
	id, owner := uint8(firstID), -1
	for ; id <= lastID && owner < 0; id++ {
		if taken[id] {
			continue
		}
		if owner, err = own(ownerOfEndpoint + int(id)); err != nil && !errors.Is(err, unix.EADDRINUSE) {
			return nil, err
		}
	}
	if owner < 0 {
		return nil, fmt.Errorf("each identity from %d to %d is taken", firstID, lastID)
	}
	e := &ownEndpoint{endpoint: endpoint{id: id - 1, address: a, port: port, flags: flagSignal}, owner: owner}
	if err := m.add(&e.endpoint); err != nil {
		_ = unix.Close(owner)
		return nil, err
	}
	return e, nil
}

func (e *ownEndpoint) remove() {
	m, err := open()
	if err == nil {
		err = m.remove(&e.endpoint)
	}
	if err != nil {
		slog.Warn("take back what was announced", "address", e.address.String(), "error", err)
	}
	_ = unix.Close(e.owner)
}

// change begins a change: no other process of ours changes anything until done is
// called, and what killed ones have left is gone.
func change() (m *manager, done func(), err error) {
	if m, err = open(); err != nil {
		return nil, nil, err
	}
	var fd int
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		if fd, err = own(ownerOfChanges); !errors.Is(err, unix.EADDRINUSE) || time.Since(began) > changeWait {
			break
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("change what connections of this network namespace may do: %w", err)
	}
	if err := m.removeLeft(); err != nil {
		_ = unix.Close(fd)
		return nil, nil, explain(err)
	}
	return m, func() { _ = unix.Close(fd) }, nil
}

// removeLeft removes what has no owner.
func (m *manager) removeLeft() error {
	list, err := m.endpoints()
	if err != nil {
		return err
	}
	for i := range list {
		e := &list[i]
		switch {
		case e.id >= firstID && e.id <= lastID && e.flags&flagSignal != 0:
			fd, err := own(ownerOfEndpoint + int(e.id))
			if err != nil {
				continue // its process lives
			}
			err = m.remove(e)
			_ = unix.Close(fd)
			if err != nil {
				return err
			}
		case e.id >= firstMemo && e.id <= lastMemo && e.address == memoAddress && !m.clientsLeft():
			l, err := m.limits()
			if err != nil {
				return err
			}
			l.accepted = uint32(e.id - firstMemo)
			if err := errors.Join(m.setLimits(l), m.remove(e)); err != nil {
				return err
			}
		}
	}
	return nil
}

// clientsLeft reports whether a client lives that needs the raised limits.
func (m *manager) clientsLeft() bool {
	for n := ownerOfLimit; n < ownerOfLimit+clients; n++ {
		fd, err := own(n)
		if err != nil {
			return true
		}
		_ = unix.Close(fd)
	}
	return false
}

// own takes a number for as long as the descriptor is open.
func own(number int) (fd int, err error) {
	fd, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return -1, err
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Pid: uint32(number)}); err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// ownSlot takes a client's number.
func ownSlot() (fd int, err error) {
	for n := ownerOfLimit; n < ownerOfLimit+clients; n++ {
		if fd, err = own(n); !errors.Is(err, unix.EADDRINUSE) {
			return fd, err
		}
	}
	return -1, fmt.Errorf("there are %d clients already: %w", clients, err)
}

// manager speaks to the path manager of the calling thread's network namespace.
type manager struct{ family uint16 }

func open() (*manager, error) {
	f, err := netlink.GenlFamilyGet(family)
	if err != nil {
		return nil, fmt.Errorf("this kernel has no path manager of MPTCP (CONFIG_MPTCP, Linux 5.16 or newer): %w", err)
	}
	return &manager{family: f.ID}, nil
}

func explain(err error) error {
	if errors.Is(err, unix.EPERM) {
		return fmt.Errorf("the paths of MPTCP are set up in the network namespace, which needs CAP_NET_ADMIN: %w", err)
	}
	return err
}

func (m *manager) request(command uint8, flags int, attribute ...*nl.RtAttr) ([][]byte, error) {
	r := nl.NewNetlinkRequest(int(m.family), flags)
	r.AddData(&nl.Genlmsg{Command: command, Version: version})
	for _, a := range attribute {
		r.AddData(a)
	}
	return r.Execute(unix.NETLINK_GENERIC, 0)
}

func (m *manager) endpoints() ([]endpoint, error) {
	answers, err := m.request(commandGetAddress, unix.NLM_F_DUMP)
	if err != nil {
		return nil, fmt.Errorf("list the endpoints of MPTCP: %w", err)
	}
	out := make([]endpoint, 0, len(answers))
	for _, b := range answers {
		e, err := parseEndpoint(b)
		if err != nil {
			return nil, fmt.Errorf("list the endpoints of MPTCP: %w", err)
		}
		out = append(out, e)
	}
	return out, nil
}

func (m *manager) add(e *endpoint) error {
	_, err := m.request(commandAddAddress, unix.NLM_F_ACK, e.attribute())
	return err
}

func (m *manager) remove(e *endpoint) error {
	_, err := m.request(commandDeleteAddress, unix.NLM_F_ACK, e.attribute())
	return err
}

func (m *manager) limits() (limits, error) {
	answers, err := m.request(commandGetLimits, 0)
	if err == nil && len(answers) != 1 {
		err = fmt.Errorf("%d answers, expected one", len(answers))
	}
	if err != nil {
		return limits{}, fmt.Errorf("read the limits of MPTCP: %w", err)
	}
	return parseLimits(answers[0])
}

func (m *manager) setLimits(l limits) error {
	_, err := m.request(commandSetLimits, unix.NLM_F_ACK, nl.NewRtAttr(attributeAccepted, u32(l.accepted)), nl.NewRtAttr(attributeSubflows, u32(l.subflows)))
	return err
}
