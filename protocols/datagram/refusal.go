package datagram

import (
	"encoding/binary"
	"errors"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Connected reports whether the socket has one other end.
func (s *Socket) Connected() bool { return s.config.Remote.IsValid() }

// mostRefusals bounds what one call of Refusals returns.
const mostRefusals = 256

// Refusals returns the addresses whose nodes have reported since the last call that
// nobody has their port (ICMP and ICMPv6, port unreachable), of a socket that is not
// connected. Read and Write fail with ECONNREFUSED when there are some; the error is of
// no packet that they were given. The reports are not authenticated.
func (s *Socket) Refusals() []netip.AddrPort {
	var list []netip.AddrPort
	_ = control(s.raw, func(fd int) error { // of a closed socket there are none
		var control [512]byte
		for len(list) < mostRefusals {
			_, n, _, from, err := unix.Recvmsg(fd, nil, control[:], unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT)
			if errors.Is(err, unix.EINTR) {
				continue
			}
			if err != nil {
				return nil // there are no more
			}
			if a, ok := addrPort(from); ok && isRefusal(control[:n]) {
				list = append(list, a)
			}
		}
		return nil
	})
	return list
}

// isRefusal reads the control messages of a report: struct sock_extended_err of ip(7).
func isRefusal(control []byte) bool {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return false
	}
	for _, m := range messages {
		v4 := m.Header.Level == unix.IPPROTO_IP && m.Header.Type == unix.IP_RECVERR
		v6 := m.Header.Level == unix.IPPROTO_IPV6 && m.Header.Type == unix.IPV6_RECVERR
		if !v4 && !v6 || len(m.Data) < 16 {
			continue
		}
		origin := m.Data[4]
		return binary.NativeEndian.Uint32(m.Data) == uint32(unix.ECONNREFUSED) &&
			(origin == unix.SO_EE_ORIGIN_ICMP || origin == unix.SO_EE_ORIGIN_ICMP6)
	}
	return false
}

func addrPort(a unix.Sockaddr) (netip.AddrPort, bool) {
	switch a := a.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port)), true
	case *unix.SockaddrInet6:
		return unmap(netip.AddrPortFrom(netip.AddrFrom16(a.Addr), uint16(a.Port))), true
	}
	return netip.AddrPort{}, false
}
