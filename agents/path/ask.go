package path

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"

	"linktrial/executor"
	"linktrial/internal/backoff"
)

const (
	smallBytes = 256 // of a small datagram's payload: what a node says of one listener fits
	usualMTU   = 1500
	least      = 300 * time.Millisecond // between two packets of one way
	lateAfter  = time.Second            // an answer that has not come since is lost
	airtimes   = 4                      // of a packet on the radio, between two of them
)

// Paths implements [executor.Paths].
type Paths struct {
	Device string
	Key    Key
	// Rate is what the radio carries, in bit/s; 0: not known. Questions come no faster.
	Rate float64
}

// Exchange implements [executor.Paths].
func (p *Paths) Exchange(ctx context.Context, ends executor.PathEnds, methods executor.PathMethods, q executor.PathQuestion) executor.PathExchange {
	ctx, done := context.WithCancel(ctx)
	defer done()
	x := &exchange{
		end: End{Address: ends.From, Device: p.Device, Key: p.Key}, to: ends.To, methods: methods, done: done,
		rate: p.Rate, mtu: usualMTU, sent: map[[nonceBytes]byte]probe{}, late: lateAfter,
	}
	if i, err := net.InterfaceByName(p.Device); err == nil && i.MTU < 1<<15 {
		x.mtu = i.MTU
	}
	x.text, _ = json.Marshal(q) // it always can be
	if headBytes+len(x.text) > smallBytes {
		x.text, _ = json.Marshal(executor.PathQuestion{Since: q.Since})
	}
	var running sync.WaitGroup
	if methods&(executor.PathUDP|executor.PathUDPFull) != 0 {
		running.Go(func() { x.udp(ctx) })
	}
	if methods&(executor.PathTCP|executor.PathTCPFull) != 0 {
		running.Go(func() { x.tcp(ctx) })
	}
	if methods&executor.PathICMP != 0 {
		running.Go(func() { x.icmp(ctx) })
	}
	running.Wait()
	return x.result()
}

// exchange is one exchange with a node.
type exchange struct {
	end     End
	to      string
	methods executor.PathMethods
	text    []byte // of the question
	rate    float64
	mtu     int
	done    context.CancelFunc

	mu   sync.Mutex
	out  executor.PathExchange
	sent map[[nonceBytes]byte]probe
	late time.Duration
}

// probe is a datagram that was sent.
type probe struct {
	full     bool
	at       time.Time
	answered bool
}

// pass takes note that packets have passed; s is what the node said, nil for nothing.
func (x *exchange) pass(methods executor.PathMethods, s *executor.NodeState) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.out.Passed |= methods & x.methods
	x.out.Node = cmp.Or(s, x.out.Node)
	if x.out.Passed == x.methods && (x.out.Node != nil || x.out.Refused == x.methods&^executor.PathICMP) {
		x.done()
	}
}

// refuse takes note that the node answers, and nobody listens there.
func (x *exchange) refuse(methods executor.PathMethods) {
	x.mu.Lock()
	x.out.Refused |= methods & x.methods &^ x.out.Passed
	x.mu.Unlock()
	x.pass(methods, nil)
}

// note keeps why nothing could be sent.
func (x *exchange) note(err error) {
	if err == nil || errors.Is(err, net.ErrClosed) || !own(err) {
		return
	}
	var number syscall.Errno
	errors.As(err, &number)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.out.Fault = number.Error()
}

// own reports whether an error of a socket is about this node: it has not the address, the
// interface or a route, or its firewall lets nothing out.
func own(err error) bool {
	for _, e := range []error{unix.EADDRNOTAVAIL, unix.ENODEV, unix.ENETDOWN, unix.ENETUNREACH, unix.EPERM, unix.EACCES} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func (x *exchange) result() executor.PathExchange {
	x.mu.Lock()
	defer x.mu.Unlock()
	now := time.Now()
	for _, p := range x.sent {
		switch {
		case p.full:
			x.out.Full++
		case p.answered:
			x.out.Small++
			x.out.SmallBack++
		case now.Sub(p.at) > x.late:
			x.out.Small++
		}
	}
	return x.out
}

// pause is the time between two packets of so many bytes.
func (x *exchange) pause(bytes int) time.Duration {
	if x.rate <= 0 {
		return least
	}
	return max(least, time.Duration(airtimes*float64(bytes)*8/x.rate*float64(time.Second)))
}

func (x *exchange) state(text []byte) *executor.NodeState {
	var s executor.NodeState
	if len(text) == 0 || json.Unmarshal(text, &s) != nil {
		return nil
	}
	return &s
}

// udp sends datagrams of both sizes, and again, until ctx ends.
func (x *exchange) udp(ctx context.Context) {
	c, err := x.dialUDP(ctx)
	for err != nil {
		x.note(err)
		if !backoff.Sleep(ctx, least) {
			return
		}
		c, err = x.dialUDP(ctx)
	}
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	defer func() { _ = c.Close() }() // nothing was written that could be lost
	var sending sync.WaitGroup
	defer sending.Wait()
	if x.methods&executor.PathUDP != 0 {
		sending.Go(func() { x.send(ctx, c, false) })
	}
	if x.methods&executor.PathUDPFull != 0 {
		sending.Go(func() { x.send(ctx, c, true) })
	}
	b := make([]byte, 1<<16)
	for {
		n, err := c.Read(b)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, unix.ECONNREFUSED):
			x.refuse(executor.PathUDP | executor.PathUDPFull)
		case err != nil:
			x.note(err)
			backoff.Sleep(ctx, 10*time.Millisecond) // the error of one packet, not of the socket
		default:
			x.takeDatagram(b[:n])
		}
	}
}

func (x *exchange) dialUDP(ctx context.Context) (*net.UDPConn, error) {
	d := x.end.dialer()
	d.LocalAddr = nil
	if a, err := netip.ParseAddr(x.end.Address); err == nil {
		d.LocalAddr = net.UDPAddrFromAddrPort(netip.AddrPortFrom(a, 0))
	}
	c, err := d.DialContext(ctx, "udp", x.remote())
	if err != nil {
		return nil, err
	}
	u, ok := c.(*net.UDPConn)
	if !ok {
		_ = c.Close()
		return nil, errors.New("not a UDP socket")
	}
	return u, nil
}

func (x *exchange) remote() string { return net.JoinHostPort(x.to, strconv.Itoa(Port)) }

// send sends datagrams of one size until ctx ends, small ones on while full ones do not
// pass: where both are lost, it is the channel's.
func (x *exchange) send(ctx context.Context, c *net.UDPConn, full bool) {
	for {
		size := smallBytes
		if full {
			size = max(size, x.fullBytes(c))
		}
		m := message{kind: question, text: x.text, padding: size - headBytes - len(x.text)}
		_, _ = rand.Read(m.nonce[:]) // it never fails
		x.mu.Lock()
		x.sent[m.nonce] = probe{full: full, at: time.Now()}
		x.mu.Unlock()
		_, err := c.Write(m.padded(&x.end.Key))
		if errors.Is(err, unix.ECONNREFUSED) {
			x.refuse(executor.PathUDP | executor.PathUDPFull)
		}
		x.note(err)
		if err != nil { // it was not sent
			x.mu.Lock()
			delete(x.sent, m.nonce)
			x.mu.Unlock()
		}
		if !backoff.Sleep(ctx, x.pause(size)) {
			return
		}
	}
}

// fullBytes is the payload of the largest datagram that the path takes unfragmented, as far
// as the kernel knows: by the interface, and by what hops have said.
func (x *exchange) fullBytes(c *net.UDPConn) int {
	header, level, option := 28, unix.IPPROTO_IP, unix.IP_MTU // IPv4 and UDP
	if a, err := netip.ParseAddr(x.to); err == nil && a.Is6() && !a.Is4In6() {
		header, level, option = 48, unix.IPPROTO_IPV6, unix.IPV6_MTU
	}
	mtu := x.mtu
	if raw, err := c.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			if known, err := unix.GetsockoptInt(int(fd), level, option); err == nil {
				mtu = min(mtu, known)
			}
		})
	}
	return mtu - header
}

func (x *exchange) takeDatagram(b []byte) {
	m, err := decodeDatagram(&x.end.Key, b)
	if err != nil || m.kind != answer {
		return
	}
	x.mu.Lock()
	p, ok := x.sent[m.nonce]
	if ok {
		p.answered = true
		x.sent[m.nonce] = p
		x.late = max(x.late, 3*time.Since(p.at))
	}
	x.mu.Unlock()
	switch {
	case !ok:
	case p.full:
		x.pass(executor.PathUDPFull|executor.PathUDP, x.state(m.text))
	default:
		x.pass(executor.PathUDP, x.state(m.text))
	}
}

// tcp connects, and again, until ctx ends. A connection is given up for another one when it
// has had no answer for some time: its kernel waits ever longer before it sends again.
func (x *exchange) tcp(ctx context.Context) {
	var connecting sync.WaitGroup
	defer connecting.Wait()
	for range maxConnections / 2 {
		connecting.Go(func() { x.connect(ctx) })
		if !backoff.Sleep(ctx, max(5*least, x.pause(2*usualMTU))) {
			return
		}
	}
	<-ctx.Done()
}

// connect exchanges a question and its padding over one connection.
func (x *exchange) connect(ctx context.Context) {
	c, err := x.end.dialer().DialContext(ctx, "tcp", x.remote())
	if errors.Is(err, unix.ECONNREFUSED) {
		x.refuse(executor.PathTCP | executor.PathTCPFull)
	}
	if err != nil {
		x.note(err)
		return
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	x.pass(executor.PathTCP, nil)
	m := message{kind: question, text: x.text, padding: x.mtu} // more than a segment holds
	_, _ = rand.Read(m.nonce[:])                               // it never fails
	if _, err := c.Write(m.encode(&x.end.Key)); err != nil {
		return
	}
	a, err := readMessage(c, &x.end.Key)
	if err != nil || a.kind != answer || a.nonce != m.nonce || a.padding != m.padding {
		return
	}
	x.pass(executor.PathTCP, x.state(a.text))
	if _, err := c.Write(make([]byte, m.padding)); err != nil {
		return
	}
	if _, err := io.CopyN(io.Discard, c, int64(m.padding)); err == nil {
		x.pass(executor.PathTCPFull, nil)
	}
}

// icmp sends echo requests until ctx ends, where this node may.
func (x *exchange) icmp(ctx context.Context) {
	to, err := netip.ParseAddr(x.to)
	if err != nil {
		return
	}
	network, protocol := "ip4:icmp", 1 // of IANA's protocol numbers
	var kind, back icmp.Type = ipv4.ICMPTypeEcho, ipv4.ICMPTypeEchoReply
	if to.Is6() && !to.Is4In6() {
		network, protocol, kind, back = "ip6:ipv6-icmp", 58, ipv6.ICMPTypeEchoRequest, ipv6.ICMPTypeEchoReply
	}
	c, err := x.end.config().ListenPacket(ctx, network, x.end.Address)
	if err != nil {
		return // it may not, or the other ways meet the same fault
	}
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	defer func() { _ = c.Close() }() // nothing was written that could be lost
	nonce := []byte(rand.Text())
	var sending sync.WaitGroup
	defer sending.Wait()
	sending.Go(func() {
		for n := 1; ; n++ {
			m := icmp.Message{Type: kind, Body: &icmp.Echo{ID: 0x4c54, Seq: n, Data: nonce}}
			if b, err := m.Marshal(nil); err == nil {
				_, _ = c.WriteTo(b, &net.IPAddr{IP: to.AsSlice(), Zone: to.Zone()}) // a loss like any other
			}
			if !backoff.Sleep(ctx, x.pause(len(nonce)+28)) {
				return
			}
		}
	})
	b := make([]byte, 1<<16)
	for ctx.Err() == nil {
		n, _, err := c.ReadFrom(b)
		if err != nil {
			backoff.Sleep(ctx, 10*time.Millisecond)
			continue
		}
		m, err := icmp.ParseMessage(protocol, b[:n])
		if err != nil || m.Type != back {
			continue
		}
		if e, ok := m.Body.(*icmp.Echo); ok && string(e.Data) == string(nonce) {
			x.pass(executor.PathICMP, nil)
		}
	}
}
