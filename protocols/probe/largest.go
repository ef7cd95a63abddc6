package main

import (
	"errors"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// sizeAttempts is how often a size is tried that is not answered: with one datagram,
	// then with two, with three.
	sizeAttempts = 3
	// commonMTU is that of Ethernet, which most ways have.
	commonMTU = 1500
)

// doNotFragment has no packet of a socket fragmented, neither here nor on the way, whatever
// the kernel believes of the way (IP_PMTUDISC_PROBE, ip(7)).
func doNotFragment(raw syscall.RawConn, inet6 bool) (err error) {
	return errors.Join(raw.Control(func(fd uintptr) {
		if inet6 {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_PROBE)
		} else {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE)
		}
	}), err)
}

// largestPayload is the most payload of a datagram that arrives at the other end without
// fragments, by halving: what the node does not send is known at once, and what the way
// swallows after some attempts. It takes a quarter of the probe's time at most; what is known
// then is the result.
func (x *searching) largestPayload() (int, error) {
	least, most := burstPayload, len(x.buf)
	try := commonMTU - x.header
	until := x.begin.Add(x.lasts / 4)
	for n := 0; least < most && time.Now().Before(until); n++ {
		passes, err := x.passes(try)
		if err != nil || x.stopped {
			return 0, err
		}
		if passes {
			least = try
		} else {
			most = try - 1
		}
		if try = (least + most + 1) / 2; n == 0 && passes {
			try = most
		}
	}
	return least, nil
}

// passes reports whether a datagram with so much payload arrives.
func (x *searching) passes(payload int) (bool, error) {
	air := time.Duration(float64(8*(payload+x.header)) / x.search.Estimate() * 1e9)
	first := len(x.asks)
	for n := range sizeAttempts {
		r, _, err := x.ask(payload, n+1, first, time.Now().Add(2*x.round+time.Duration(n+2)*air+reportMargin))
		switch {
		case errors.Is(err, errTooLarge):
			return false, nil
		case err != nil || x.stopped:
			return false, err
		case r != nil:
			return true, nil
		}
	}
	return false, nil
}
