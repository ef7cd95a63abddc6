package netif

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"linktrial/internal/packetsocket"
)

// A question is asked three times (RFC 5227, section 1.1: PROBE_NUM), but closer together
// than there, because people wait: an answer that comes later is heard all the same.
const (
	questions     = 3
	questionEvery = 200 * time.Millisecond
)

// Duplicate looks whether another machine on the radio's link has the radio's address, and
// returns its hardware address, empty for none. It takes 0.6 s. A link on which nobody can
// be asked, such as a point-to-point modem's, has none.
func Duplicate(ctx context.Context, r *Radio) (mac string, err error) {
	s, err := Read(r)
	if err != nil || !s.asks(r) {
		return "", err
	}
	l, err := listen(s.Index, r)
	if err != nil {
		return "", err
	}
	defer l.close()
	found, err := l.ask(ctx)
	return found.String(), err
}

// Taken is [Duplicate] for an address that the radio's interface does not have yet: it is
// asked for before it is used (RFC 5227, section 2.1). An interface without a carrier has
// nobody to ask.
func Taken(ctx context.Context, r *Radio) (mac string, err error) {
	s, err := Read(r)
	if err != nil || !s.There || !s.Up || !s.Carrier || !s.Resolves || s.Addressed {
		return "", err
	}
	l, err := listen(s.Index, r)
	if err != nil {
		return "", err
	}
	defer l.close()
	found, err := l.ask(ctx)
	return found.String(), err
}

// asks reports whether machines on the link can be asked for the radio's address.
func (s *State) asks(r *Radio) bool {
	return s.usable() && s.Resolves && r.Address.IsValid()
}

// listener hears on the link of an interface which machines claim an address.
type listener struct {
	socket  *os.File
	raw     syscall.RawConn
	index   int
	address netip.Addr
}

// listen needs CAP_NET_RAW.
func listen(index int, r *Radio) (*listener, error) {
	address := r.Address.Unmap().WithZone("")
	fd, err := openClaims(address, index)
	if err != nil {
		return nil, fmt.Errorf("whether another machine has the address %s cannot be asked for: %w", address, err)
	}
	l := &listener{socket: os.NewFile(uintptr(fd), "claims of "+address.String()), index: index, address: address}
	l.raw, err = l.socket.SyscallConn()
	if err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

func openClaims(address netip.Addr, index int) (fd int, err error) {
	protocol, filter := claims(address)
	return packetsocket.OpenFor(protocol, filter, index)
}

func (l *listener) close() { _ = l.socket.Close() } // what was sent needs no answer

// ask asks all machines on the link for the address, and returns the first other one that
// claims it; nil: none has within questions * questionEvery.
func (l *listener) ask(ctx context.Context) (net.HardwareAddr, error) {
	for range questions {
		if err := l.send(); err != nil {
			return nil, err
		}
		found, err := l.next(ctx, time.Now().Add(questionEvery))
		if found != nil || err != nil {
			return found, err
		}
	}
	return nil, nil
}

func (l *listener) send() error {
	i, err := net.InterfaceByIndex(l.index)
	if err != nil {
		return err
	}
	if len(i.HardwareAddr) != 6 {
		return fmt.Errorf("hardware address %s of interface %s, expected 6 bytes", i.HardwareAddr, i.Name)
	}
	packet, to := question(l.address, i.HardwareAddr)
	protocol, _ := claims(l.address)
	there := &unix.SockaddrLinklayer{Protocol: packetsocket.Network(protocol), Ifindex: l.index, Halen: 6}
	copy(there.Addr[:], to)
	var sent error
	if err := l.raw.Control(func(fd uintptr) { sent = unix.Sendto(int(fd), packet, 0, there) }); err != nil {
		return err
	}
	if errors.Is(sent, unix.ENOBUFS) || errors.Is(sent, unix.EAGAIN) { // the queue of a radio under load
		return nil
	}
	return sent
}

// next returns the next other machine that claims the address; nil: none until the limit,
// the zero value for no limit, or before ctx has ended.
func (l *listener) next(ctx context.Context, limit time.Time) (net.HardwareAddr, error) {
	if err := l.socket.SetReadDeadline(limit); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = l.socket.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	packet := make([]byte, headBytes+advertised)
	for {
		n, from, err := l.receive(packet)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil, nil
		case err != nil:
			return nil, err
		}
		var link net.HardwareAddr
		if s, ok := from.(*unix.SockaddrLinklayer); ok {
			link = s.Addr[:min(int(s.Halen), len(s.Addr))]
		}
		if mac := claimant(packet[:min(n, len(packet))], l.address, link); mac != nil && !ownMAC(mac) {
			return slices.Clone(mac), nil
		}
	}
}

// receive waits for a packet until the socket's deadline, and takes one that has come by
// then: on a busy machine this process may be awake only after the deadline.
func (l *listener) receive(packet []byte) (n int, from unix.Sockaddr, err error) {
	err = unix.EAGAIN
	take := func(fd uintptr) {
		n, from, err = unix.Recvfrom(int(fd), packet, unix.MSG_TRUNC|unix.MSG_DONTWAIT)
	}
	waited := l.raw.Read(func(fd uintptr) bool {
		take(fd)
		return !errors.Is(err, unix.EAGAIN)
	})
	if errors.Is(waited, os.ErrDeadlineExceeded) {
		if closed := l.raw.Control(take); closed != nil {
			return 0, nil, closed
		}
		if errors.Is(err, unix.EAGAIN) {
			err = waited
		}
		return n, from, err
	}
	return n, from, errors.Join(waited, err)
}

// ownMAC reports whether an interface of this node has a hardware address: it may have two
// on one link, of which Linux answers for each other's addresses.
func ownMAC(mac net.HardwareAddr) bool {
	all, _ := net.Interfaces() // without any, none
	return slices.ContainsFunc(all, func(i net.Interface) bool { return slices.Equal(i.HardwareAddr, mac) })
}
