package main

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// A server's socket is not connected, so the kernel keeps what a client's node or the
// way there reports of its packets (ICMP) in a queue of its own (IP_RECVERR, ip(7)).
// A client whose node refuses packets has ended: nothing more is sent to it.

// maxReports bounds the attempts at sending one packet.
const maxReports = 16

// hearRefusals has the kernel keep reports on the socket's packets.
func (g *udpGate) hearRefusals() (err error) {
	return errors.Join(g.raw.Control(func(fd uintptr) {
		if g.inet6 {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_RECVERR, 1)
		} else {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_RECVERR, 1)
		}
	}), err)
}

// isReport reports whether an error of the socket is about an earlier packet.
func isReport(err error) bool {
	for _, e := range []syscall.Errno{syscall.ECONNREFUSED, syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.EHOSTDOWN, syscall.ENOPROTOOPT,
		syscall.EACCES, syscall.EPROTO, syscall.EMSGSIZE, syscall.EOPNOTSUPP} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// takeReports empties the queue of reports, and says how many there were.
func (g *udpGate) takeReports() (n int) {
	var b [1]byte
	oob := make([]byte, 512)
	_ = g.raw.Control(func(fd uintptr) {
		for {
			_, oobn, _, to, err := unix.Recvmsg(int(fd), b[:], oob, unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT)
			if errors.Is(err, unix.EINTR) {
				continue
			}
			if err != nil {
				return
			}
			n++
			if client := addrPort(to); client.IsValid() && refuses(oob[:oobn]) {
				g.mu.Lock()
				g.gone = append(g.gone, client)
				g.mu.Unlock()
			}
		}
	})
	return n
}

// refuses reports whether a report says that nobody has the packet's port.
func refuses(control []byte) bool {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return false
	}
	for _, m := range messages {
		kind := m.Header.Level == unix.IPPROTO_IP && m.Header.Type == unix.IP_RECVERR || m.Header.Level == unix.IPPROTO_IPV6 && m.Header.Type == unix.IPV6_RECVERR
		// struct sock_extended_err begins with ee_errno (4 bytes) and ee_origin (1).
		if kind && len(m.Data) >= 5 && binary.NativeEndian.Uint32(m.Data) == uint32(unix.ECONNREFUSED) &&
			(m.Data[4] == unix.SO_EE_ORIGIN_ICMP || m.Data[4] == unix.SO_EE_ORIGIN_ICMP6) {
			return true
		}
	}
	return false
}

// nextGone is a client whose node refuses packets.
func (g *udpGate) nextGone() (client netip.AddrPort, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.gone) == 0 {
		return client, false
	}
	client, g.gone = g.gone[0], g.gone[1:]
	return client, true
}
