package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"linktrial/protocols/contract"
	"linktrial/protocols/harness"
	"linktrial/protocols/probe/pattern"
)

// Options of DCCP's sockets (linux/dccp.h).
const (
	dccpService   = 2  // DCCP_SOCKOPT_SERVICE
	dccpLargest   = 5  // DCCP_SOCKOPT_GET_CUR_MPS
	dccpAvailable = 12 // DCCP_SOCKOPT_AVAILABLE_CCIDS
	dccpCCID      = 13 // DCCP_SOCKOPT_CCID
	dccpTXCCID    = 14 // DCCP_SOCKOPT_TX_CCID
	dccpQueue     = 17 // DCCP_SOCKOPT_QPOLICY_TXQLEN
)

// serviceCode is what both ends must have alike (RFC 4340, section 8.1.2): "LTPR".
const serviceCode = 0x4c545052

// whereDCCP says which kernels have DCCP.
const whereDCCP = "Linux up to 6.15 has it, as the modules dccp, dccp_ipv4 and dccp_ipv6 (Debian 12's 6.1 and 6.12 do: modprobe dccp_ipv4); Linux 6.16 removed it"

// settings are what a probe's options say of its transport.
type settings struct {
	dccp bool
	ccid int
}

func settingsOf(p *contract.Parameters) settings {
	s := settings{dccp: p.Options["transport"] == pattern.DCCP, ccid: pattern.DefaultCCID}
	switch v := p.Options["ccid"].(type) {
	case int64:
		s.ccid = int(v)
	case float64:
		s.ccid = int(v)
	}
	return s
}

// ccidsHere are the congestion controls (CCIDs) of this kernel's DCCP; the error is
// that of a kernel without it.
func ccidsHere() ([]int, error) {
	fd, err := socketDCCP(unix.AF_INET)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(fd) }()
	var buf [64]byte
	n, err := getsockopt(fd, dccpAvailable, buf[:])
	if err != nil {
		return nil, harness.Unsupported("the congestion controls of DCCP: %w", err)
	}
	var out []int
	for _, b := range buf[:n] {
		out = append(out, int(b))
	}
	slices.Sort(out)
	return out, nil
}

func socketDCCP(family int) (int, error) {
	fd, err := unix.Socket(family, unix.SOCK_DCCP|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.IPPROTO_DCCP)
	switch {
	case errors.Is(err, unix.ESOCKTNOSUPPORT), errors.Is(err, unix.EPROTONOSUPPORT), errors.Is(err, unix.EAFNOSUPPORT), errors.Is(err, unix.EINVAL):
		return -1, harness.Unsupported("this kernel has no DCCP (%w): %s", err, whereDCCP)
	case err != nil:
		return -1, fmt.Errorf("open a DCCP socket: %w", err)
	}
	return fd, nil
}

// openDCCP opens a socket with the options of a probe.
func openDCCP(p *contract.Parameters, inet6 bool) (int, error) {
	family := unix.AF_INET
	if inet6 {
		family = unix.AF_INET6
	}
	fd, err := socketDCCP(family)
	if err != nil {
		return -1, err
	}
	ccid := settingsOf(p).ccid
	if err := errors.Join(
		unix.SetsockoptString(fd, unix.SOL_DCCP, dccpService, string(binary.BigEndian.AppendUint32(nil, serviceCode))),
		unix.SetsockoptString(fd, unix.SOL_DCCP, dccpCCID, string([]byte{byte(ccid)})),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, receiveBuffer),
		harness.MarkSocket(fd, p.DSCP),
	); err != nil {
		_ = unix.Close(fd)
		return -1, harness.Unsupported("options of a DCCP socket with CCID %d: %w", ccid, err)
	}
	return fd, nil
}

func getsockopt(fd, name int, into []byte) (int, error) {
	text, err := unix.GetsockoptString(fd, unix.SOL_DCCP, name)
	return copy(into, text), err
}

func sockaddr(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is6() {
		return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
	}
	return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
}

func addrPort(s unix.Sockaddr) netip.AddrPort {
	switch a := s.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(a.Addr).Unmap(), uint16(a.Port))
	}
	return netip.AddrPort{}
}

// dccpConn is one connection.
type dccpConn struct {
	*os.File
	raw syscall.RawConn
}

// newDCCPConn takes a socket that does not block, and is being connected or is.
func newDCCPConn(fd int) (*dccpConn, error) {
	c := &dccpConn{File: os.NewFile(uintptr(fd), "dccp")}
	var err error
	if c.raw, err = c.SyscallConn(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Write never waits.
func (c *dccpConn) Write(b []byte) (n int, err error) {
	if e := c.raw.Control(func(fd uintptr) {
		for {
			if n, err = unix.Write(int(fd), b); !errors.Is(err, unix.EINTR) {
				return
			}
		}
	}); e != nil {
		return 0, e
	}
	if errors.Is(err, unix.EAGAIN) {
		return 0, errHeld
	}
	return n, err
}

// receive returns one packet; what a connection which has ended returns is an error.
// The kernel tells no time of arrival of DCCP's packets, so it is that at which this
// process gets them.
func (c *dccpConn) receive(b []byte) (n int, arrived int64, err error) {
	n, err = c.Read(b)
	arrived = time.Now().UnixNano()
	if errors.Is(err, io.EOF) || errors.Is(err, unix.ENOTCONN) {
		return 0, 0, unix.ECONNRESET
	}
	return n, arrived, err
}

// largest is the most payload that a packet can have now (MPS).
func (c *dccpConn) largest() (n int) {
	_ = c.raw.Control(func(fd uintptr) { n, _ = unix.GetsockoptInt(int(fd), unix.SOL_DCCP, dccpLargest) })
	return n
}

// info is what the kernel says of the connection.
func (c *dccpConn) info(ccid int) (*contract.Info, error) {
	var got, queue int
	var err error
	if e := c.raw.Control(func(fd uintptr) {
		got, err = unix.GetsockoptInt(int(fd), unix.SOL_DCCP, dccpTXCCID)
		queue, _ = unix.GetsockoptInt(int(fd), unix.SOL_DCCP, dccpQueue)
	}); e != nil || err != nil {
		return nil, fmt.Errorf("the connection's congestion control: %w", errors.Join(e, err))
	}
	if got != ccid {
		return nil, harness.Unsupported("the connection has CCID %d, expected %d", got, ccid)
	}
	return &contract.Info{Implementation: implementation, Detail: map[string]string{
		"transport": pattern.DCCP, "ccid": fmt.Sprint(got), "queue_packets": fmt.Sprint(queue), "largest_packet_bytes": fmt.Sprint(c.largest()),
	}}, nil
}

// dialDCCP connects. The kernel repeats the request until limits.connect_ms, or ctx
// has ended.
func dialDCCP(ctx context.Context, p *contract.Parameters, local, remote netip.AddrPort) (*dccpConn, error) {
	fd, err := openDCCP(p, remote.Addr().Is6())
	if err != nil {
		return nil, err
	}
	if local.IsValid() {
		err = unix.Bind(fd, sockaddr(local))
	}
	if err == nil {
		err = unix.Connect(fd, sockaddr(remote))
	}
	// Registered with the poller only now: a socket that is not being connected is
	// reported as closed.
	if err != nil && !errors.Is(err, unix.EINPROGRESS) {
		_ = unix.Close(fd)
		return nil, err
	}
	c, err := newDCCPConn(fd)
	if err != nil {
		return nil, err
	}
	if err := c.connected(ctx, time.Duration(p.Limits.ConnectMS)*time.Millisecond); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// connected waits until both ends know of the connection.
func (c *dccpConn) connected(ctx context.Context, within time.Duration) error {
	if within > 0 {
		if err := c.SetWriteDeadline(time.Now().Add(within)); err != nil {
			return err
		}
	}
	defer context.AfterFunc(ctx, func() { _ = c.SetWriteDeadline(time.Unix(1, 0)) })()
	var failed error
	err := c.raw.Write(func(fd uintptr) bool {
		n, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR)
		if err == nil && n != 0 {
			err = syscall.Errno(n)
		}
		if err != nil {
			failed = err
			return true
		}
		_, err = unix.Getpeername(int(fd))
		return err == nil
	})
	switch {
	case ctx.Err() != nil:
		return errAborted
	case failed != nil:
		return failed
	}
	return err
}
