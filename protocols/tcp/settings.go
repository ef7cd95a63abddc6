package main

import (
	"context"
	"maps"

	"golang.org/x/sys/unix"

	"linktrial/protocols/contract"
	"linktrial/protocols/harness"
	"linktrial/protocols/tcp/mptcp"
	"linktrial/protocols/tcp/socket"
)

// query tries every setting on a socket that is never connected.
func query(_ context.Context, p *contract.Parameters) (*contract.Info, error) {
	there, err := socket.Usable()
	if err != nil {
		return nil, err
	}
	s, err := settings(p)
	if err != nil {
		return nil, err
	}
	protocol := 0
	if s.Multipath {
		protocol = unix.IPPROTO_MPTCP
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return nil, harness.Unsupported("open a TCP socket: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	if p.Role == contract.RoleQuery {
		delete(s.Options, "congestion") // one that is missing is not the whole driver
	}
	if err := s.Apply(fd); err != nil {
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
	if p.Role == contract.RoleQuery {
		names, origins := socket.Additional(there)
		i.Choices["congestion"] = append(there, names...)
		for name, origin := range origins {
			i.Detail["congestion="+name] = origin
		}
	}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		i.Detail["kernel"] = unix.ByteSliceToString(u.Release[:])
	}
	for name, opt := range map[string]int{"rto_min": unix.TCP_RTO_MIN_US, "rto_max": unix.TCP_RTO_MAX_MS} {
		if _, err := unix.GetsockoptInt(fd, unix.IPPROTO_TCP, opt); err != nil {
			i.Detail["option_"+name] = "not in this kernel"
		}
	}
	if p.Role == contract.RoleQuery {
		if err := kernelHasMultipath(); err != nil {
			i.Detail["option_multipath"] = err.Error()
		} else if err := mptcp.Possible(); err != nil {
			i.Detail["option_multipath"] = err.Error()
		}
	}
	if routes != nil {
		i.Detail["option_initial_window"] = routes.Error()
	}
	return i, nil
}

func settings(p *contract.Parameters) (socket.Settings, error) {
	w, err := window(p)
	if err != nil {
		return socket.Settings{}, err
	}
	m, err := metricsOf(p)
	if err != nil {
		return socket.Settings{}, err
	}
	s := socket.Settings{Device: p.Device, Mark: w, DSCP: p.DSCP, Options: maps.Clone(p.Options)}
	if s.Multipath, err = multipathOf(p, m, w); err == nil && s.Multipath && len(p.Paths) > 1 {
		// The kernel would bind the subflows of the other radios to this one, too.
		s.Device = ""
	}
	return s, err
}
