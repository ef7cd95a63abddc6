package main

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"linktrial/protocols/contract"
	"linktrial/protocols/harness"
	"linktrial/protocols/tcp/mptcp"
	"linktrial/protocols/tcp/socket"
)

// multipathOf reports whether the option multipath is on. It refuses what holds for
// one path alone.
func multipathOf(p *contract.Parameters, m metrics, window int) (bool, error) {
	if on, _ := p.Options["multipath"].(bool); !on {
		return false, nil
	}
	if m.wanted() {
		return false, harness.Unsupported("option multipath: initial_window and ecn are metrics of one connection's route, and further paths would not have them")
	}
	if name, _ := p.Options["congestion"].(string); window != 0 || strings.HasPrefix(name, fixedWindow) {
		return false, harness.Unsupported("option multipath: congestion control %q keeps the window of one radio, and each path would have it", name)
	}
	if err := kernelHasMultipath(); err != nil {
		return false, harness.Unsupported("option multipath: %w", err)
	}
	if p.Role != contract.RoleQuery && len(p.Paths) < 2 {
		return true, nil // of one path: nothing is set up on the node
	}
	if err := mptcp.Possible(); err != nil {
		return false, harness.Unsupported("option multipath: %w", err)
	}
	return true, nil
}

// kernelHasMultipath opens a socket, which the kernel refuses where it has no MPTCP
// or net.mptcp.enabled is 0.
func kernelHasMultipath() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_MPTCP)
	switch {
	case err == nil:
		return unix.Close(fd)
	case errors.Is(err, unix.ENOPROTOOPT):
		return errors.New("Multipath TCP is turned off here: 'sysctl -w net.mptcp.enabled=1'") //nolint:staticcheck // a name
	}
	return errors.Join(errors.New("this kernel has no Multipath TCP, which needs Linux 5.16 or newer with CONFIG_MPTCP"), err)
}

// radios are the addresses of this node's paths.
func radios(p *contract.Parameters) ([]netip.Addr, error) {
	var out []netip.Addr
	for _, path := range p.Paths {
		a, err := netip.ParseAddr(path.Address)
		if err != nil {
			return nil, harness.Failf(contract.CodeBadParameters, "paths: %w", err)
		}
		out = append(out, a.Unmap())
	}
	return out, nil
}

// announce tells clients of the server's further radios.
func announce(p *contract.Parameters) (release func(), err error) {
	all, err := radios(p)
	if err != nil || len(all) < 2 {
		return func() {}, err
	}
	release, err = mptcp.Announce(all[1:], uint16(p.Local.Port))
	if err != nil {
		return nil, harness.Failf(contract.CodeListenFailed, "further paths: %w", err)
	}
	return release, nil
}

// accept lets the client's connection use its further radios.
func accept(p *contract.Parameters) (release func(), err error) {
	all, err := radios(p)
	if err != nil || len(all) < 2 {
		return func() {}, err
	}
	release, err = mptcp.Accept(len(all)-1, all)
	if err != nil {
		return nil, harness.Unsupported("option multipath: further paths: %w", err)
	}
	return release, nil
}

// handshakeLimit is how long one attempt to connect may take. The kernel leaves
// Multipath TCP out of a SYN that it repeats for the third time (after two without an
// answer, net.mptcp.syn_retrans_before_tcp_fallback), and where that is answered out of
// every SYN for an hour (net.mptcp.blackhole_timeout): on a radio, which loses any SYN
// alike, the attempt ends before, and the next one begins with a new SYN.
func handshakeLimit() time.Duration {
	const margin = 500 * time.Millisecond
	repeats := 2
	if b, err := os.ReadFile("/proc/sys/net/mptcp/syn_retrans_before_tcp_fallback"); err == nil {
		if n, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil {
			repeats = max(0, min(n, 8))
		}
	}
	// The first timeout is a second and each doubles (RFC 6298).
	return (1<<(repeats+1)-1)*time.Second - margin
}

// onceMultipath is once, within handshakeLimit.
func (d *dialing) onceMultipath(ctx context.Context) (*net.TCPConn, error) {
	limited, cancel := context.WithTimeout(ctx, handshakeLimit())
	defer cancel()
	c, err := d.once(limited)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return nil, errors.Join(syscall.ETIMEDOUT, err) // as the kernel would, so that Redial goes on
	}
	return c, err
}

// paths are the subflows of a connection of Multipath TCP.
type paths struct {
	of      []contract.Path
	watch   *mptcp.Watch
	release func()
	client  bool
	kept    atomic.Bool // the server's first byte is still in the socket
	read    bool        // the first byte was given out; of the reader alone
}

// errFallback is the end of a connection that is not what it is called.
func errFallback(err error) error {
	if errors.Is(err, mptcp.ErrFallback) {
		return harness.Failf(contract.CodeProtocolViolation, "%w", err)
	}
	return err
}

func newPaths(raw syscall.RawConn, p *contract.Parameters, release func()) (*paths, error) {
	if _, err := mptcp.ReadInfo(raw); err != nil {
		return nil, errFallback(err)
	}
	if err := sameCongestion(raw, p); err != nil {
		return nil, err
	}
	all, err := radios(p)
	if err != nil {
		return nil, err
	}
	of := p.Paths
	if len(of) == 0 {
		a, err := harness.AddrPort(p.Local, "local")
		if err != nil {
			return nil, err
		}
		all, of = []netip.Addr{a.Addr()}, []contract.Path{{Device: p.Device, Address: p.Local.Address}}
	}
	return &paths{of: of, watch: mptcp.NewWatch(raw, all), release: release, client: p.Role == contract.RoleClient}, nil
}

// sameCongestion refuses a connection whose congestion control is not the option's.
func sameCongestion(raw syscall.RawConn, p *contract.Parameters) error {
	want, ok := p.Options["congestion"].(string)
	if !ok {
		return nil
	}
	var got string
	var err error
	if cerr := raw.Control(func(fd uintptr) { got, _, err = socket.Congestion(int(fd)) }); cerr != nil {
		return cerr
	}
	if err != nil {
		return harness.Unsupported("congestion control of a connection of Multipath TCP: %w", err)
	}
	if got != want {
		return harness.Unsupported("the connection of Multipath TCP got the congestion control %q, expected %q", got, want)
	}
	return nil
}

// readFirst gives out the first byte that arrives, and leaves it in the socket: the
// kernel resets a connection of Multipath TCP whose process ends with bytes unread, and
// sends what is unsent of any other for up to net.mptcp.close_timeout, into the next
// trial's time. SO_LINGER does not do that here.
func (c *conn) readFirst(b []byte) (n int, err error) {
	cerr := c.raw.Read(func(fd uintptr) bool {
		n, _, err = unix.Recvfrom(int(fd), b[:1], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		return !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR)
	})
	if err = errors.Join(cerr, err); err != nil {
		return 0, err
	}
	if n == 0 {
		return c.TCPConn.Read(b) // the end, as it is told
	}
	c.paths.kept.Store(true)
	return n, nil
}

// readOn waits for what follows the first byte, and takes that out of the socket. A look
// at two bytes (MSG_PEEK) would not do: kernels before Linux 6.15 do not find what has
// arrived behind a byte that nobody has taken.
func (c *conn) readOn(b []byte) (int, error) {
	err := c.raw.Read(func(fd uintptr) bool {
		n, err := unix.IoctlGetInt(int(fd), unix.SIOCINQ)
		if err == nil && n == 1 { // the first byte alone: more, or the end, is to come
			p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
			_, perr := unix.Poll(p, 0)
			return perr == nil && p[0].Revents != 0
		}
		return true // what the kernel cannot say (before Linux 5.17), a read waits for
	})
	if err != nil {
		return 0, err
	}
	if err := c.dropFirst(); err != nil {
		return 0, err
	}
	return c.TCPConn.Read(b)
}

// dropFirst takes the first byte out of the socket.
func (c *conn) dropFirst() error {
	if !c.paths.kept.CompareAndSwap(true, false) {
		return nil
	}
	var one [1]byte
	_, err := c.TCPConn.Read(one[:])
	return err
}

// Read of a connection of Multipath TCP also finds out whether it still is one.
func (c *conn) Read(b []byte) (n int, err error) {
	m := c.paths
	switch {
	case m == nil || !m.client || len(b) == 0:
		return c.TCPConn.Read(b)
	case !m.read:
		m.read = true
		n, err = c.readFirst(b)
	default:
		n, err = c.readOn(b)
	}
	if err == nil {
		if _, ierr := mptcp.ReadInfo(c.raw); ierr != nil {
			return 0, errFallback(ierr)
		}
	}
	return n, err
}

// disconnect resets the connection at once on all paths (MP_FASTCLOSE).
func (c *conn) disconnect() {
	_ = c.raw.Control(func(fd uintptr) {
		unspecified := unix.RawSockaddr{Family: unix.AF_UNSPEC}
		_, _, _ = unix.Syscall(unix.SYS_CONNECT, fd, uintptr(unsafe.Pointer(&unspecified)), unsafe.Sizeof(unspecified))
	})
}

// Paths is what each radio has carried.
func (c *conn) Paths(sender bool) []contract.PathResult {
	if c.paths == nil {
		return nil
	}
	list, err := c.paths.watch.Read()
	if err != nil {
		return nil
	}
	out := make([]contract.PathResult, len(list))
	total := int64(0)
	for i := range list {
		if i < len(c.paths.of) {
			out[i].Device, out[i].Address = c.paths.of[i].Device, c.paths.of[i].Address
		} else {
			out[i].Address = "other"
		}
		out[i].Bytes = list[i].ReceivedBytes
		if sender {
			out[i].Bytes = list[i].AckedBytes
		}
		total += out[i].Bytes
	}
	for i := range out {
		out[i].Share = float64(out[i].Bytes) / max(float64(total), 1)
	}
	return out
}

// sampleMultipath fills in what holds for all paths, and each path's own metrics as
// path1_…, path2_….
func (c *conn) sampleMultipath(s *contract.Sample, sender bool) {
	info, err := mptcp.ReadInfo(c.raw)
	if err != nil {
		return
	}
	list, err := c.paths.watch.Read()
	if err != nil {
		return
	}
	s.More = map[string]float64{}
	if sender {
		if info.AckedBytes >= 0 {
			s.AckedBytes = ptr(info.AckedBytes)
		}
		s.CwndBytes, s.FlightBytes, s.Retransmits = ptr(int64(0)), ptr(int64(0)), ptr(int64(0))
		s.TransmittedBytes, s.RetransmittedBytes = ptr(int64(0)), ptr(int64(0))
	}
	for i := range list {
		name := "path" + strconv.Itoa(i+1) + "_"
		if !sender {
			s.More[name+"received_bytes"] = float64(list[i].ReceivedBytes)
			continue
		}
		s.More[name+"acked_bytes"] = float64(list[i].AckedBytes)
		*s.TransmittedBytes += list[i].TransmittedBytes
		*s.RetransmittedBytes += list[i].RetransmittedBytes
		t := list[i].Now
		if t == nil {
			continue
		}
		mss := int64(t.Snd_mss)
		cwnd, flight := int64(t.Snd_cwnd)*mss, flightBytes(t)
		*s.CwndBytes += cwnd
		*s.FlightBytes += flight
		*s.Retransmits += int64(t.Total_retrans)
		s.More[name+"cwnd_bytes"], s.More[name+"srtt_us"] = float64(cwnd), float64(t.Rtt)
		s.More[name+"retransmits"] = float64(t.Total_retrans)
	}
}
