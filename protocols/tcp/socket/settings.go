// Package socket sets a TCP socket up as a driver's options say, and connects
// it for as long as a driver tries. Comes in and goes out: options by their names
// in a plan, sockets of the kernel. It is what the drivers of TCP and of split
// connections have in common.
package socket

import (
	"errors"
	"fmt"
	"math"
	"net"
	"syscall"

	"golang.org/x/sys/unix"

	"linktrial/protocols/harness"
)

// Settings are what a socket gets before it connects or listens.
type Settings struct {
	// Device is the interface that the socket is bound to; "": any.
	Device string
	// Mark is the socket's mark (SO_MARK), by which a congestion control of a fixed
	// window gets it in bytes; 0: none.
	Mark int
	// Multipath makes it a socket of Multipath TCP.
	Multipath bool
	// DSCP is the code point of its packets; 0: the default.
	DSCP int
	// Options are congestion, nodelay, mss, send_buffer, receive_buffer, rto_min,
	// rto_max, syn_retries and user_timeout, each where it is there, with the type
	// that a manifest gives it. Others are ignored.
	Options map[string]any
}

// Listen is what a driver's listener is opened with; its connections inherit
// what is set on it.
func (s Settings) Listen() *net.ListenConfig {
	lc := &net.ListenConfig{Control: s.Control, KeepAlive: -1}
	// Go's listeners speak Multipath TCP by default, whose values are others.
	lc.SetMultipathTCP(s.Multipath)
	return lc
}

// Dialer is what a driver connects with.
func (s Settings) Dialer() *net.Dialer {
	// Keepalive probes would end connections in long outages.
	d := &net.Dialer{Control: s.Control, KeepAlive: -1}
	d.SetMultipathTCP(s.Multipath)
	return d
}

// Control applies the settings, for [net.Dialer] and [net.ListenConfig]: before
// connect and listen.
func (s Settings) Control(_, _ string, c syscall.RawConn) error {
	var err error
	if cerr := c.Control(func(fd uintptr) {
		if err = s.Apply(int(fd)); err == nil && s.Device != "" {
			err = s.bindDevice(int(fd))
		}
	}); cerr != nil {
		return cerr
	}
	return err
}

// bindDevice ties the socket to the radio's interface. Without the right to do
// so the address alone has to lead there.
func (s Settings) bindDevice(fd int) error {
	err := unix.BindToDevice(fd, s.Device)
	if err == nil || errors.Is(err, unix.EPERM) {
		return nil
	}
	return harness.Unsupported("bind to device %s: %w", s.Device, err)
}

// Apply sets what the options say on a socket. What the kernel does not take is
// unsupported, with the reason.
func (s Settings) Apply(fd int) error {
	if err := setMark(fd, s.Mark); err != nil {
		return err
	}
	if err := harness.MarkSocket(fd, s.DSCP); err != nil {
		return err
	}
	if c, ok := s.Options["congestion"].(string); ok {
		set := setCongestion
		if s.Multipath {
			set = setCongestionOfAll
		}
		if err := set(fd, c); err != nil {
			return err
		}
	}
	if on, ok := s.Options["nodelay"].(bool); ok {
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, truth(on)); err != nil {
			return harness.Unsupported("option nodelay: %w", err)
		}
	}
	if n, ok := s.Options["mss"].(int64); ok {
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_MAXSEG, int(n)); err != nil {
			return harness.Unsupported("option mss: the kernel refuses %d bytes: %w", n, err)
		}
	}
	if n, ok := s.Options["send_buffer"].(int64); ok {
		if err := buffer(fd, "send_buffer", "wmem_max", unix.SO_SNDBUF, unix.SO_SNDBUFFORCE, int(n)); err != nil {
			return err
		}
	}
	if n, ok := s.Options["receive_buffer"].(int64); ok {
		if err := buffer(fd, "receive_buffer", "rmem_max", unix.SO_RCVBUF, unix.SO_RCVBUFFORCE, int(n)); err != nil {
			return err
		}
	}
	if ms, ok := s.Options["rto_min"].(float64); ok {
		if err := timeout(fd, "rto_min", unix.TCP_RTO_MIN_US, int(math.Round(ms*1000))); err != nil {
			return err
		}
	}
	if ms, ok := s.Options["rto_max"].(float64); ok {
		if err := timeout(fd, "rto_max", unix.TCP_RTO_MAX_MS, int(math.Round(ms))); err != nil {
			return err
		}
	}
	if n, ok := s.Options["syn_retries"].(int64); ok {
		if err := timeout(fd, "syn_retries", unix.TCP_SYNCNT, int(n)); err != nil {
			return err
		}
	}
	if ms, ok := s.Options["user_timeout"].(float64); ok {
		if err := timeout(fd, "user_timeout", unix.TCP_USER_TIMEOUT, int(math.Round(ms))); err != nil {
			return err
		}
	}
	return nil
}

func timeout(fd int, name string, opt, value int) error {
	err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, opt, value)
	if errors.Is(err, unix.ENOPROTOOPT) {
		return harness.Unsupported("option %s: this kernel cannot set it for one socket: %w", name, err)
	}
	if err != nil {
		return harness.Unsupported("option %s: the kernel refuses it: %w", name, err)
	}
	return nil
}

// buffer sets a socket buffer. The kernel silently takes less than it is asked
// for; that would be another treatment than the plan's, so it is refused.
func buffer(fd int, name, sysctl string, opt, force, n int) error {
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, force, n) != nil { // needs CAP_NET_ADMIN
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, opt, n); err != nil {
			return harness.Unsupported("option %s: %w", name, err)
		}
	}
	got, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, opt)
	if err != nil {
		return fmt.Errorf("option %s: %w", name, err)
	}
	// It answers twice what it was asked for: the rest is for its own bookkeeping (socket(7)).
	if got < 2*n {
		return harness.Unsupported("option %s: the kernel gives %d of %d bytes, see net.core.%s", name, got/2, n, sysctl)
	}
	return nil
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

func setMark(fd, mark int) error {
	if mark == 0 {
		return nil
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, mark); err != nil {
		return harness.Unsupported("the window of %d bytes cannot be set on the socket (SO_MARK needs CAP_NET_ADMIN): %w", mark, err)
	}
	return nil
}

// scratch opens a socket that is never connected.
func scratch() (fd int, err error) {
	fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, harness.Unsupported("open a TCP socket: %w", err)
	}
	return fd, nil
}

// Try reports whether a socket takes the settings.
func (s Settings) Try() error {
	fd, err := scratch()
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	return s.Apply(fd)
}
