package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"linktrial/protocols/contract"
	"linktrial/protocols/harness"
)

const (
	available = "/proc/sys/net/ipv4/tcp_available_congestion_control"
	allowed   = "/proc/sys/net/ipv4/tcp_allowed_congestion_control"
)

func controls(file string) ([]string, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return strings.Fields(string(b)), nil
}

// probe tries every setting on a socket that is never connected.
func probe(_ context.Context, p *contract.Parameters) (*contract.Info, error) {
	there, err := controls(available)
	if err != nil {
		return nil, harness.Unsupported("the kernel's congestion controls: %w", err)
	}
	s := settings(p)
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, harness.Unsupported("open a TCP socket: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	if p.Role == contract.RoleProbe {
		there = slices.DeleteFunc(there, func(c string) bool { return unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, c) != nil })
		delete(s.options, "congestion") // one that is missing is not the whole driver
	}
	if err := s.apply(fd); err != nil {
		return nil, err
	}
	m, err := metricsOf(p)
	if err != nil {
		return nil, err
	}
	routes := canRoute()
	if m.wanted() && p.Role != contract.RoleServer && routes != nil {
		return nil, routes
	}
	i := &contract.Info{Implementation: "linux-kernel", Choices: map[string][]string{"congestion": there}, Detail: map[string]string{}}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		i.Detail["kernel"] = unix.ByteSliceToString(u.Release[:])
	}
	for name, opt := range map[string]int{"rto_min": unix.TCP_RTO_MIN_US, "rto_max": unix.TCP_RTO_MAX_MS} {
		if _, err := unix.GetsockoptInt(fd, unix.IPPROTO_TCP, opt); err != nil {
			i.Detail["option_"+name] = "not in this kernel"
		}
	}
	if routes != nil {
		i.Detail["option_initial_window"] = routes.Error()
	}
	return i, nil
}

type socketSettings struct {
	device  string
	window  int // bytes; 0: the congestion control's own
	unfit   error
	options map[string]any
}

func settings(p *contract.Parameters) socketSettings {
	s := socketSettings{device: p.Device, options: map[string]any{}}
	for k, v := range p.Options {
		s.options[k] = v
	}
	s.window, s.unfit = window(p)
	return s
}

// control is for net.Dialer and net.ListenConfig: before connect and listen.
func (s socketSettings) control(_, _ string, c syscall.RawConn) error {
	var err error
	if cerr := c.Control(func(fd uintptr) {
		if err = s.apply(int(fd)); err == nil && s.device != "" {
			err = s.bindDevice(int(fd))
		}
	}); cerr != nil {
		return cerr
	}
	return err
}

// bindDevice ties the socket to the radio's interface. Without the right to do
// so the address alone has to lead there.
func (s socketSettings) bindDevice(fd int) error {
	err := unix.BindToDevice(fd, s.device)
	if err == nil || errors.Is(err, unix.EPERM) {
		return nil
	}
	return harness.Unsupported("bind to device %s: %w", s.device, err)
}

func (s socketSettings) apply(fd int) error {
	if s.unfit != nil {
		return s.unfit
	}
	if err := setWindow(fd, s.window); err != nil {
		return err
	}
	if c, ok := s.options["congestion"].(string); ok {
		if err := unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, c); err != nil {
			return congestionError(c, err)
		}
	}
	if on, ok := s.options["nodelay"].(bool); ok {
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, truth(on)); err != nil {
			return harness.Unsupported("option nodelay: %w", err)
		}
	}
	if n, ok := s.options["mss"].(int64); ok {
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_MAXSEG, int(n)); err != nil {
			return harness.Unsupported("option mss: the kernel refuses %d bytes: %w", n, err)
		}
	}
	if n, ok := s.options["send_buffer"].(int64); ok {
		if err := buffer(fd, "send_buffer", "wmem_max", unix.SO_SNDBUF, unix.SO_SNDBUFFORCE, int(n)); err != nil {
			return err
		}
	}
	if n, ok := s.options["receive_buffer"].(int64); ok {
		if err := buffer(fd, "receive_buffer", "rmem_max", unix.SO_RCVBUF, unix.SO_RCVBUFFORCE, int(n)); err != nil {
			return err
		}
	}
	if ms, ok := s.options["rto_min"].(float64); ok {
		if err := timeout(fd, "rto_min", unix.TCP_RTO_MIN_US, int(math.Round(ms*1000))); err != nil {
			return err
		}
	}
	if ms, ok := s.options["rto_max"].(float64); ok {
		if err := timeout(fd, "rto_max", unix.TCP_RTO_MAX_MS, int(math.Round(ms))); err != nil {
			return err
		}
	}
	if n, ok := s.options["syn_retries"].(int64); ok {
		if err := timeout(fd, "syn_retries", unix.TCP_SYNCNT, int(n)); err != nil {
			return err
		}
	}
	if ms, ok := s.options["user_timeout"].(float64); ok {
		if err := timeout(fd, "user_timeout", unix.TCP_USER_TIMEOUT, int(math.Round(ms))); err != nil {
			return err
		}
	}
	return nil
}

func congestionError(c string, err error) error {
	switch {
	case errors.Is(err, unix.EPERM):
		list, _ := controls(allowed)
		return harness.Unsupported("congestion control %q needs CAP_NET_ADMIN; without it there are %s: %w", c, strings.Join(list, ", "), err)
	case errors.Is(err, unix.ENOENT):
		list, _ := controls(available)
		return harness.Unsupported("this kernel has no congestion control %q; there are %s: %w", c, strings.Join(list, ", "), err)
	}
	return harness.Unsupported("congestion control %q: %w", c, err)
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
