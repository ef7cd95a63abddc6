package main

import (
	"errors"
	"net"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"linktrial/protocols/contract"
	"linktrial/protocols/harness"
	"linktrial/protocols/tcp/socket"
)

// conn is one connection. As long as its transfer has not ended, the process's
// end in whatever way (SIGKILL too) resets it: a socket without an owner would
// go on sending what is in its buffer, into the next trial's time.
type conn struct {
	*net.TCPConn
	raw   syscall.RawConn
	info  *contract.Info
	route *ownRoute // nil: as every connection's
	spare bool      // keep little unsent
	paths *paths    // nil: plain TCP
}

// newConn takes over a connection and its route, also where it fails. multipath is nil
// for plain TCP, else what undoes that the node accepts further paths.
func newConn(c *net.TCPConn, p *contract.Parameters, route *ownRoute, multipath func()) (harness.Conn, error) {
	k := &conn{TCPConn: c, route: route}
	var err error
	if k.raw, err = c.SyscallConn(); err == nil {
		err = c.SetLinger(0)
	}
	if multipath != nil && err == nil {
		if k.paths, err = newPaths(k.raw, p, multipath); err != nil {
			multipath()
		}
	}
	// Go turns Nagle's algorithm off on every connection by itself.
	if on, ok := p.Options["nodelay"].(bool); ok && err == nil {
		err = c.SetNoDelay(on)
	}
	if p.Transfer.DurationMS > 0 && err == nil {
		err = k.keepLittleUnsent()
	}
	if err != nil {
		k.Abort()
		return nil, err
	}
	k.info = k.describe()
	return k, nil
}

// notSent is how much a sender that a time bounds leaves to the kernel beyond
// what is under way, in bytes: what the kernel has not sent when the time is up,
// it would send all the same, with a deep send buffer for minutes. The kernel
// asks for more when half of it is sent, so that it always has some segments
// to answer an acknowledgement with, and wakes the sender seldom.
const notSent = 16 << 10

// keepLittleUnsent lets the kernel say that it wants more only when it has
// little left to send (TCP_NOTSENT_LOWAT).
func (c *conn) keepLittleUnsent() error {
	var err error
	if cerr := c.raw.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, notSent)
	}); cerr != nil {
		return cerr
	}
	if err != nil && c.paths != nil {
		return harness.Unsupported("a flow that ends after a time, over Multipath TCP: this kernel cannot bound what is not sent yet (TCP_NOTSENT_LOWAT), which Linux 6.9 can: %w", err)
	}
	if err != nil {
		return harness.Unsupported("bound what is not sent yet (TCP_NOTSENT_LOWAT): %w", err)
	}
	c.spare = true
	return nil
}

// Write waits, where little shall be unsent, until the kernel wants more: it
// takes more all the same, up to the end of the 64 KiB that it makes segments of.
func (c *conn) Write(b []byte) (int, error) {
	if c.spare {
		var perr error
		err := c.raw.Write(func(fd uintptr) bool {
			p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
			_, perr = unix.Poll(p, 0)
			return p[0].Revents != 0 || perr != nil && !errors.Is(perr, unix.EINTR)
		})
		if err = errors.Join(err, perr); err != nil {
			return 0, err
		}
	}
	return c.TCPConn.Write(b)
}

// describe says what the connection really got.
func (c *conn) describe() *contract.Info {
	i := &contract.Info{Implementation: "linux-kernel", Detail: map[string]string{}}
	_ = c.raw.Control(func(fd uintptr) {
		if name, from, err := socket.Congestion(int(fd)); err == nil {
			i.Detail["congestion"], i.Detail["congestion_from"] = name, from
		}
	})
	if c.paths != nil {
		i.Detail["multipath"] = "on"
		i.Detail["paths"] = strconv.Itoa(len(c.paths.of))
	}
	if t, n, err := socket.Info(c.raw); err == nil && n >= int(unsafe.Offsetof(t.Rto)) {
		// TCPI_OPT_* of <linux/tcp.h>.
		for bit, name := range map[uint8]string{1: "timestamps", 2: "sack", 4: "window_scale", 8: "ecn"} {
			if t.Options&bit != 0 {
				i.Detail[name] = "on"
			} else {
				i.Detail[name] = "off"
			}
		}
		// Before any data: what the connection starts with.
		i.Detail["initial_window_segments"] = strconv.Itoa(int(t.Snd_cwnd))
	}
	return i
}

func (c *conn) Info() *contract.Info { return c.info }

func (c *conn) Close() error {
	// Back to an orderly end: what was written still arrives.
	err := c.SetLinger(-1)
	if c.paths != nil {
		err = errors.Join(err, c.dropFirst())
		defer c.paths.release()
	}
	if cerr := c.TCPConn.Close(); err == nil {
		err = cerr
	}
	c.route.remove()
	return err
}

func (c *conn) Abort() {
	if c.paths != nil {
		c.disconnect()
		defer c.paths.release()
	}
	_ = c.TCPConn.Close()
	c.route.remove()
}

// infiniteSsthresh is the kernel's initial threshold, TCP_INFINITE_SSTHRESH: no value.
const infiniteSsthresh = 0x7fffffff

// Sample reads TCP_INFO. The kernel's fields have grown with time; those that
// it does not have stay absent.
func (c *conn) Sample(s *contract.Sample, sender bool) {
	if c.paths != nil {
		c.sampleMultipath(s, sender)
		return
	}
	t, n, err := socket.Info(c.raw)
	if err != nil {
		return
	}
	has := func(offset, size uintptr) bool { return n >= int(offset+size) }
	s.SRTTUS, s.RTTVarUS = ptr(int64(t.Rtt)), ptr(int64(t.Rttvar))
	s.More = map[string]float64{}
	if !sender {
		s.More["receiver_rtt_us"] = float64(t.Rcv_rtt)
		if has(unsafe.Offsetof(t.Rcv_ooopack), unsafe.Sizeof(t.Rcv_ooopack)) {
			s.More["out_of_order_packets"] = float64(t.Rcv_ooopack)
		}
		if has(unsafe.Offsetof(t.Rcv_wnd), unsafe.Sizeof(t.Rcv_wnd)) {
			s.More["receive_window_bytes"] = float64(t.Rcv_wnd)
		}
		return
	}
	mss := int64(t.Snd_mss)
	s.CwndBytes = ptr(int64(t.Snd_cwnd) * mss)
	if t.Snd_ssthresh < infiniteSsthresh {
		s.SsthreshBytes = ptr(int64(t.Snd_ssthresh) * mss)
	}
	s.FlightBytes = ptr(flightBytes(&t))
	s.RTOUS = ptr(int64(t.Rto))
	s.Retransmits = ptr(int64(t.Total_retrans))
	s.More["backoff"] = float64(t.Backoff)
	s.More["mss_bytes"] = float64(mss)
	if has(unsafe.Offsetof(t.Pacing_rate), unsafe.Sizeof(t.Pacing_rate)) && t.Pacing_rate != ^uint64(0) {
		s.PacingBPS = ptr(float64(t.Pacing_rate) * 8)
	}
	if has(unsafe.Offsetof(t.Bytes_acked), unsafe.Sizeof(t.Bytes_acked)) && t.Bytes_acked > 0 {
		s.AckedBytes = ptr(int64(t.Bytes_acked) - 1) // the SYN counts for one
	}
	if has(unsafe.Offsetof(t.Min_rtt), unsafe.Sizeof(t.Min_rtt)) && t.Min_rtt != ^uint32(0) {
		s.MinRTTUS = ptr(int64(t.Min_rtt))
	}
	// Of payload alone: what a SYN or a bare acknowledgement costs is in neither. Both came
	// with Linux 4.19.
	if has(unsafe.Offsetof(t.Bytes_retrans), unsafe.Sizeof(t.Bytes_retrans)) {
		s.TransmittedBytes, s.RetransmittedBytes = ptr(int64(t.Bytes_sent)), ptr(int64(t.Bytes_retrans))
	}
	if has(unsafe.Offsetof(t.Delivery_rate), unsafe.Sizeof(t.Delivery_rate)) && t.Delivery_rate > 0 {
		s.BandwidthBPS = ptr(float64(t.Delivery_rate) * 8)
	}
	if has(unsafe.Offsetof(t.Total_rto), unsafe.Sizeof(t.Total_rto)) {
		s.Timeouts = ptr(int64(t.Total_rto))
	}
}

// flightBytes is RFC 6675's pipe, as the kernel counts it.
func flightBytes(t *unix.TCPInfo) int64 {
	return max(0, int64(t.Unacked)-int64(t.Sacked)-int64(t.Lost)+int64(t.Retrans)) * int64(t.Snd_mss)
}

func ptr[T any](v T) *T { return &v }
