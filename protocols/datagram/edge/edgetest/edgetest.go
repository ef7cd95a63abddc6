// Package edgetest helps to test transports over UDP.
package edgetest

import (
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
)

// PassOn stands between a client and a server until it is stopped: then nobody has the
// port any more that the server takes for the client's.
func PassOn(t *testing.T, server netip.AddrPort) (at netip.AddrPort, stop func()) {
	t.Helper()
	front, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	back, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(server))
	if err != nil {
		t.Fatal(err)
	}
	var client atomic.Pointer[netip.AddrPort]
	go func() {
		for b := make([]byte, 9000); ; {
			n, from, err := front.ReadFromUDPAddrPort(b)
			if err != nil {
				return
			}
			client.Store(&from)
			_, _ = back.Write(b[:n])
		}
	}()
	go func() {
		for b := make([]byte, 9000); ; {
			n, err := back.Read(b)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if to := client.Load(); err == nil && to != nil {
				_, _ = front.WriteToUDPAddrPort(b[:n], *to)
			}
		}
	}()
	stop = func() { _ = front.Close(); _ = back.Close() }
	t.Cleanup(stop)
	return front.LocalAddr().(*net.UDPAddr).AddrPort(), stop
}
