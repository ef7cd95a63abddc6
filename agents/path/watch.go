package path

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
	"golang.org/x/time/rate"

	"linktrial/executor"
	"linktrial/internal/packetsocket"
)

// A packet socket has packets before this node's firewall when they come in, and after it
// when they leave (packet(7); net/core/dev.c). A raw socket has those that came in after
// it (raw(7); ip_local_deliver_finish). What the one has and the other has not, the node
// itself has dropped.

// watch counts the packets of one IP protocol to and from a port that is at this node or
// at the far one.
type watch struct {
	end         End
	protocol    int
	port        uint16
	portIsLocal bool     // the port is this node's
	numbers     []uint32 // of the probes to answer
	pace        *rate.Limiter

	taps *os.File
	raw  net.PacketConn

	mu     sync.Mutex
	counts executor.PortCounts
	// peers are the other ends' ports that packets to the port have come from. What goes
	// to other ones belongs to earlier connections: a kernel repeats its answer to one
	// that nobody has completed for a minute.
	peers map[uint16]bool

	reading sync.WaitGroup
	stop    context.CancelFunc
}

// openWatch counts until close. It needs CAP_NET_RAW.
func openWatch(ctx context.Context, e End, protocol, port int, here bool) (*watch, error) {
	w := &watch{end: e, protocol: protocol, port: uint16(port), portIsLocal: here, pace: rate.NewLimiter(answersASecond, answersASecond), peers: map[uint16]bool{}}
	w.counts.Protocol = protocol
	if here {
		w.numbers = numbers(&e.Key, maxProbes)
	}
	index := max(0, e.identity())
	if e.loopback() {
		index = 0
	}
	fd, err := packetsocket.Open(packetsocket.Ports(uint32(port), uint32(port)), index)
	if err != nil {
		return nil, err
	}
	w.taps = os.NewFile(uintptr(fd), "packets of a port")
	taps, err := w.taps.SyscallConn()
	if err == nil {
		network := fmt.Sprintf("ip4:%d", protocol)
		if a, _ := netip.ParseAddr(e.Address); a.Is6() && !a.Is4In6() {
			network = fmt.Sprintf("ip6:%d", protocol)
		}
		w.raw, err = e.config().ListenPacket(ctx, network, e.Address)
	}
	if err != nil {
		_ = w.taps.Close() // nothing was written
		return nil, err
	}
	w.stop = func() { _ = w.taps.Close(); _ = w.raw.Close() } // what was sent needs no answer
	w.reading.Go(func() { w.tap(taps) })
	w.reading.Go(w.receive)
	return w, nil
}

func (w *watch) close() {
	w.stop()
	w.reading.Wait()
}

func (w *watch) counted() executor.PortCounts {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.counts
}

// expect has answers to a port of this node count from now on: one can be read before the
// tap has the packet that it answers.
func (w *watch) expect(port uint16) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.peers[port] = true
}

// tap counts what passes the interface, and returns when the socket is closed.
func (w *watch) tap(raw syscall.RawConn) {
	var b [packetsocket.Snapshot]byte
	_ = raw.Read(func(fd uintptr) bool { // its error is that the socket is closed
		for {
			n, from, err := unix.Recvfrom(int(fd), b[:], 0)
			switch {
			case errors.Is(err, unix.EAGAIN):
				return false
			case errors.Is(err, unix.EINTR), errors.Is(err, unix.ENETDOWN):
				continue
			case err != nil:
				return true
			}
			if link, ok := from.(*unix.SockaddrLinklayer); ok {
				w.takeTapped(b[:n], link.Pkttype)
			}
		}
	})
}

func (w *watch) takeTapped(b []byte, kind uint8) {
	h, ok := packetsocket.ParseHead(b)
	if !ok || h.Fragmented || int(h.Protocol) != w.protocol {
		return
	}
	size := 40 // of IPv6's header
	if b[0]>>4 == 4 {
		size = int(b[0]&15) * 4
	}
	if refusal(w.protocol, b[size:]) {
		return
	}
	to, in := h.DestinationPort == w.port, kind == unix.PACKET_HOST
	if kind != unix.PACKET_OUTGOING && !in || !to && h.SourcePort != w.port {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case to && in == w.portIsLocal:
		w.peers[h.SourcePort] = true
	case to || in == w.portIsLocal || !w.peers[h.DestinationPort]:
		return
	}
	if in {
		w.counts.Arrived++
	} else {
		w.counts.Left++
	}
}

// receive counts what has passed this node's firewall, and answers probes to a port of
// this node. It returns when the socket is closed.
func (w *watch) receive() {
	b := make([]byte, 1<<16)
	for {
		n, from, err := w.raw.ReadFrom(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		source, destination, ok := ports(b[:n])
		if err != nil || !ok || refusal(w.protocol, b[:n]) {
			continue
		}
		w.mu.Lock()
		counts := w.portIsLocal && destination == w.port || !w.portIsLocal && source == w.port && w.peers[destination]
		if counts {
			w.counts.Passed++
		}
		w.mu.Unlock()
		if !counts {
			continue
		}
		if number, ok := probeNumber(w.protocol, b[:n]); ok && w.portIsLocal && slices.Contains(w.numbers, number) && w.pace.Allow() {
			w.reply(from, source, number)
		}
	}
}

// reply answers a probe from the port.
func (w *watch) reply(from net.Addr, port uint16, number uint32) {
	to, ok := from.(*net.IPAddr)
	if !ok {
		return
	}
	far, err := addrPort((&net.IPAddr{IP: to.IP}).String(), int(port))
	own, err2 := addrPort(w.end.Address, int(w.port))
	if err != nil || err2 != nil {
		return
	}
	p := packet{protocol: w.protocol, from: own, to: far, answer: true, number: number}
	_, err = w.raw.WriteTo(p.encode(), to)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts.Sent++
	w.counts.Fault = faultOf(err)
}

// faultOf is the text of an error of this node; empty: it could send.
func faultOf(err error) string {
	var number syscall.Errno
	if err == nil || !own(err) || !errors.As(err, &number) {
		return ""
	}
	return number.Error()
}
