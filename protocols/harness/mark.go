package harness

import (
	"errors"
	"fmt"
	"syscall"
)

// MarkControl marks sockets with [MarkSocket], for [net.Dialer] and [net.ListenConfig].
func MarkControl(dscp int) func(network, address string, c syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) (err error) {
		cerr := c.Control(func(fd uintptr) { err = MarkSocket(int(fd), dscp) })
		return errors.Join(err, cerr)
	}
}

// MarkSocket gives the packets of a socket a DSCP (RFC 2474), of both families
// where it carries both; 0 changes nothing. What sets the ECN bits of single packets
// must leave the upper six bits to it.
func MarkSocket(fd, dscp int) error {
	if dscp == 0 {
		return nil
	}
	domain, err := syscall.GetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_DOMAIN)
	if err != nil {
		return fmt.Errorf("family of the socket: %w", err)
	}
	if domain == syscall.AF_INET6 {
		if err := syscall.SetsockoptInt(fd, syscall.IPPROTO_IPV6, syscall.IPV6_TCLASS, dscp<<2); err != nil {
			return Unsupported("DSCP %d of a socket: IPV6_TCLASS: %w", dscp, err)
		}
	}
	if err := syscall.SetsockoptInt(fd, syscall.IPPROTO_IP, syscall.IP_TOS, dscp<<2); err != nil {
		return Unsupported("DSCP %d of a socket: IP_TOS: %w", dscp, err)
	}
	return nil
}
