package preflight

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"

	"linktrial/internal/backoff"
)

// takeLimit bounds the time for a packet that is there.
const takeLimit = time.Second

// minMTU is the least MTU that IPv4 allows (RFC 791).
const minMTU = 68

// pinger sends echo requests to one peer, unfragmented, through one interface.
// It is for one goroutine.
type pinger struct {
	conn   net.PacketConn
	peer   net.Addr
	to     netip.Addr
	v6     bool
	raw    bool // the socket sees every ICMP message of the node
	id     int
	seq    int
	header int // of IP and ICMP, in bytes

	count        int           // of probes
	spread, last time.Duration // until the next probe at most, and after the last
}

// newPinger opens a socket. As root or with CAP_NET_RAW it is bound to the
// device, so that no other path leads to the peer.
func newPinger(device, from, to string) (*pinger, error) {
	dst, err := netip.ParseAddr(to)
	if err != nil {
		return nil, fmt.Errorf("radio address %q of the peer is not an IP address", to)
	}
	src, err := netip.ParseAddr(from)
	if err != nil {
		return nil, fmt.Errorf("radio address %q of this node is not an IP address", from)
	}
	dst, src = dst.Unmap(), src.Unmap()
	if dst.Is6() != src.Is6() {
		return nil, fmt.Errorf("radio addresses %s and %s are of different IP versions", from, to)
	}
	p := &pinger{to: dst, v6: dst.Is6(), id: 1 + rand.IntN(0xfffe), header: ipv4.HeaderLen + 8}
	family, proto := unix.AF_INET, unix.IPPROTO_ICMP
	if p.v6 {
		family, proto, p.header = unix.AF_INET6, unix.IPPROTO_ICMPV6, ipv6.HeaderLen+8
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, proto)
	if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
		p.raw = true
		fd, err = unix.Socket(family, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, proto)
	}
	if err != nil {
		return nil, fmt.Errorf("this node may not send probes: %w", err)
	}
	if err := p.prepare(fd, device, src); err != nil {
		_ = unix.Close(fd) // nothing was sent by it
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "icmp")
	p.conn, err = net.FilePacketConn(f) // has a descriptor of its own
	f.Close()
	if err != nil {
		return nil, fmt.Errorf("probe socket: %w", err)
	}
	p.peer = &net.UDPAddr{IP: dst.AsSlice()}
	if p.raw {
		p.peer = &net.IPAddr{IP: dst.AsSlice()}
	}
	return p, nil
}

func (p *pinger) prepare(fd int, device string, src netip.Addr) error {
	// Unfragmented or not at all, whatever path MTU the kernel has recorded.
	level, option, probe := unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE
	var addr unix.Sockaddr
	if p.v6 {
		level, option, probe = unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_PROBE
		addr = &unix.SockaddrInet6{Addr: src.As16()}
	} else {
		addr = &unix.SockaddrInet4{Addr: src.As4()}
	}
	if err := unix.SetsockoptInt(fd, level, option, probe); err != nil {
		return fmt.Errorf("probe socket: forbid fragments: %w", err)
	}
	if err := bindTo(fd, device); errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("there is no interface %s", device)
	} else if err != nil {
		return fmt.Errorf("probe socket: interface %s: %w", device, err)
	}
	if err := unix.Bind(fd, addr); err != nil {
		return fmt.Errorf("no interface of this node has the radio address %s: %w", src, err)
	}
	return nil
}

// bindTo makes a socket send through an interface, where one is given. Without the right to
// do so, the routes decide.
func bindTo(fd int, device string) error {
	if device == "" {
		return nil
	}
	err := unix.BindToDevice(fd, device)
	if errors.Is(err, unix.EPERM) {
		return nil
	}
	return err
}

func (p *pinger) close() { _ = p.conn.Close() }

// send sends one echo request that is an IP packet of the given size.
func (p *pinger) send(bytes int) (seq int, err error) {
	p.seq = (p.seq + 1) & 0xffff
	m := icmp.Message{Type: ipv4.ICMPTypeEcho, Body: &icmp.Echo{ID: p.id, Seq: p.seq, Data: make([]byte, max(0, bytes-p.header))}}
	if p.v6 {
		m.Type = ipv6.ICMPTypeEchoRequest // the kernel adds the checksum
	}
	b, err := m.Marshal(nil)
	if err != nil {
		return p.seq, err
	}
	_, err = p.conn.WriteTo(b, p.peer)
	return p.seq, err
}

// receive waits for an answer of the peer until the deadline or until ctx
// ends: its sequence number, or -1.
func (p *pinger) receive(ctx context.Context, deadline time.Time) (int, error) {
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	if err := p.conn.SetReadDeadline(deadline); err != nil {
		return -1, err
	}
	stop := context.AfterFunc(ctx, func() { _ = p.conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	buf := make([]byte, 1<<16)
	for {
		n, from, err := p.conn.ReadFrom(buf)
		if errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() == nil {
			n, from, err = p.receivePending(buf)
		}
		switch {
		case ctx.Err() != nil, errors.Is(err, os.ErrDeadlineExceeded):
			return -1, ctx.Err()
		case err != nil:
			return -1, err
		}
		seq, ok := parseReply(buf[:n], p.v6, p.raw, p.id)
		if ok && addrOf(from) == p.to {
			return seq, nil
		}
	}
}

// receivePending takes what has come by the deadline, which has passed: on a busy machine this
// process may be awake only after it. Without anything the deadline was exceeded.
func (p *pinger) receivePending(buf []byte) (n int, from net.Addr, err error) {
	raw, err := p.conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return 0, nil, err
	}
	var waiting error
	err = raw.Control(func(fd uintptr) {
		_, _, waiting = unix.Recvfrom(int(fd), nil, unix.MSG_PEEK|unix.MSG_DONTWAIT)
	})
	switch {
	case err != nil:
		return 0, nil, err
	case errors.Is(waiting, unix.EAGAIN):
		return 0, nil, os.ErrDeadlineExceeded
	case waiting != nil: // an error of the socket, which was taken with it
		return 0, nil, waiting
	}
	// It is there, unless the kernel finds it damaged as it is read.
	if err := p.conn.SetReadDeadline(time.Now().Add(takeLimit)); err != nil {
		return 0, nil, err
	}
	n, from, err = p.conn.ReadFrom(buf)
	return n, from, errors.Join(err, p.conn.SetReadDeadline(time.Unix(1, 0)))
}

func addrOf(a net.Addr) netip.Addr {
	var ip net.IP
	switch a := a.(type) {
	case *net.UDPAddr:
		ip = a.IP
	case *net.IPAddr:
		ip = a.IP
	}
	addr, _ := netip.AddrFromSlice(ip)
	return addr.Unmap()
}

// parseReply reads an echo reply and returns its sequence number. Where the
// socket sees all of the node's ICMP, the identifier must be ours.
func parseReply(b []byte, v6, raw bool, id int) (seq int, ok bool) {
	want := byte(ipv4.ICMPTypeEchoReply)
	if v6 {
		want = byte(ipv6.ICMPTypeEchoReply)
	}
	if len(b) < 8 || b[0] != want || b[1] != 0 {
		return 0, false
	}
	if raw && int(binary.BigEndian.Uint16(b[4:])) != id {
		return 0, false
	}
	return int(binary.BigEndian.Uint16(b[6:])), true
}

// probe sends small probes one after the other and returns the round trips of
// those that were answered. The next one leaves when the one before was
// answered, or after a second: a slow radio is not filled with probes.
func (p *pinger) probe(ctx context.Context) (rtts []time.Duration, sent int, err error) {
	at := map[int]time.Time{}
	wait := func(until time.Time, enough func() bool) error {
		for !enough() {
			seq, err := p.receive(ctx, until)
			if err != nil && ctx.Err() != nil {
				return err
			}
			if seq < 0 && err == nil {
				return nil // the time is up
			}
			if t, mine := at[seq]; mine && err == nil {
				rtts = append(rtts, time.Since(t))
				delete(at, seq)
			}
			// An error of the socket is a radio's or router's report on an earlier probe.
		}
		return nil
	}
	for range p.count {
		began := time.Now()
		seq, serr := p.send(probeBytes)
		if serr != nil {
			err = serr
			backoff.Sleep(ctx, probePause)
			continue
		}
		sent++
		at[seq] = began
		if wait(began.Add(p.spread), func() bool { _, open := at[seq]; return !open }) != nil {
			return rtts, sent, ctx.Err()
		}
		backoff.Sleep(ctx, time.Until(began.Add(probePause)))
	}
	last := p.last
	if len(rtts) > 0 { // an answer four times slower than the slowest does not come
		last = min(last, max(time.Second, 4*slices.Max(rtts)))
	}
	_ = wait(time.Now().Add(last), func() bool { return len(at) == 0 })
	return rtts, sent, err
}

// fits reports whether one of several packets of the size comes back whole, and
// why not, from the socket's error where it has one.
func (p *pinger) fits(ctx context.Context, bytes, tries int, patience time.Duration) (bool, string) {
	why := "no answer came"
	for range tries {
		seq, err := p.send(bytes)
		if errors.Is(err, unix.EMSGSIZE) {
			return false, "this node's own interface takes only smaller ones"
		}
		if err != nil {
			return false, err.Error()
		}
		for until := time.Now().Add(patience); ; {
			got, err := p.receive(ctx, until)
			if ctx.Err() != nil {
				return false, "the time for the search was up"
			}
			if errors.Is(err, unix.EMSGSIZE) {
				return false, "a router on the way takes only smaller ones"
			}
			if err == nil && got == seq {
				return true, ""
			}
			if err == nil && got < 0 {
				break
			}
		}
	}
	return false, why
}

// median of at least one.
func median(ds []time.Duration) time.Duration {
	s := slices.Sorted(slices.Values(ds))
	n := len(s)
	if n%2 == 1 {
		return s[n/2]
	}
	return (s[n/2-1] + s[n/2]) / 2
}

// formatDuration has three significant digits.
func formatDuration(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.2f ms", d.Seconds()*1e3)
	case d < time.Second:
		return fmt.Sprintf("%.0f ms", d.Seconds()*1e3)
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}
