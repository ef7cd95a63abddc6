//go:build kernels

package inside

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"linktrial/internal/namespace"
	"linktrial/internal/process"
)

// TestSockets shows what the kernel has without a driver of the project: a pair
// of sockets between two namespaces carries data.
func TestSockets(t *testing.T) {
	for _, ccid := range []byte{2, 3} {
		try(t, "sockets", fmt.Sprintf("DCCP, CCID %d", ccid), func(t *testing.T) ([]string, error) { return dccp(netem(t, conditions{}), ccid) })
	}
	try(t, "sockets", "MPTCP", func(t *testing.T) ([]string, error) { return mptcp(t.Context(), netem(t, conditions{})) })
}

// Of <linux/dccp.h>.
const (
	dccpService = 2  // DCCP_SOCKOPT_SERVICE
	dccpCCID    = 13 // DCCP_SOCKOPT_CCID
	dccpTXCCID  = 14 // DCCP_SOCKOPT_TX_CCID
)

const (
	dccpPort    = 7002
	dccpPackets = 50
	socketWait  = 10 * time.Second
)

// dccp sends packets over one connection and counts those that arrive.
func dccp(w *way, ccid byte) ([]string, error) {
	open := func(ns string) (fd int, err error) {
		err = process.InNamespace(namespace.Path(ns), func() error {
			fd, err = unix.Socket(unix.AF_INET, unix.SOCK_DCCP|unix.SOCK_CLOEXEC, unix.IPPROTO_DCCP)
			return err
		})
		if err != nil {
			return -1, fmt.Errorf("open a DCCP socket: %w", err)
		}
		tv := unix.NsecToTimeval(int64(socketWait))
		err = errors.Join(
			unix.SetsockoptInt(fd, unix.SOL_DCCP, dccpService, 0x6c74),
			unix.SetsockoptString(fd, unix.SOL_DCCP, dccpCCID, string(ccid)),
			unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv),
			unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &tv))
		if err != nil {
			_ = unix.Close(fd)
			return -1, fmt.Errorf("options of a DCCP socket: %w", err)
		}
		return fd, nil
	}
	listener, err := open(w.server)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(listener) }()
	addr := &unix.SockaddrInet4{Port: dccpPort, Addr: [4]byte{10, 77, 0, 3}}
	if err := errors.Join(unix.Bind(listener, addr), unix.Listen(listener, 1)); err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	from, err := open(w.client)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(from) }()
	if err := unix.Connect(from, addr); err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	to, _, err := unix.Accept(listener)
	if err != nil {
		return nil, fmt.Errorf("accept: %w", err)
	}
	defer func() { _ = unix.Close(to) }()
	got, err := unix.GetsockoptInt(from, unix.SOL_DCCP, dccpTXCCID)
	if err != nil {
		return nil, fmt.Errorf("the connection's CCID: %w", err)
	}
	if got != int(ccid) {
		return nil, fmt.Errorf("the connection has CCID %d, expected %d", got, ccid)
	}
	tv := unix.NsecToTimeval(int64(socketWait))
	if err := unix.SetsockoptTimeval(to, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv); err != nil {
		return nil, fmt.Errorf("receive: %w", err)
	}
	b := make([]byte, 2048)
	for i := range dccpPackets {
		sent := bytes.Repeat([]byte{byte(i)}, 100)
		if err := send(from, sent); err != nil {
			return nil, fmt.Errorf("send packet %d: %w", i, err)
		}
		n, err := unix.Read(to, b)
		if err != nil {
			return nil, fmt.Errorf("receive packet %d: %w", i, err)
		}
		if !bytes.Equal(b[:n], sent) {
			return nil, fmt.Errorf("packet %d has other content", i)
		}
	}
	return []string{fmt.Sprintf("%d of %d packets arrived", dccpPackets, dccpPackets)}, nil
}

// send waits until the congestion control lets a packet go: its queue is short.
func send(fd int, b []byte) error {
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		_, err := unix.Write(fd, b)
		if !errors.Is(err, unix.EAGAIN) || time.Since(begin) > socketWait {
			return err
		}
	}
}

// mptcp carries bytes over a connection that both ends made with MPTCP.
func mptcp(ctx context.Context, w *way) ([]string, error) {
	var l net.Listener
	var c net.Conn
	err := process.InNamespace(namespace.Path(w.server), func() (err error) {
		lc := net.ListenConfig{}
		lc.SetMultipathTCP(true)
		l, err = lc.Listen(ctx, "tcp4", net.JoinHostPort(serverAddress, "7003"))
		return err
	})
	if err != nil {
		return nil, err
	}
	defer l.Close()
	err = process.InNamespace(namespace.Path(w.client), func() (err error) {
		// A dialer's goroutine would not be in the namespace: a numeric address has none.
		d := net.Dialer{}
		d.SetMultipathTCP(true)
		c, err = d.DialContext(ctx, "tcp4", l.Addr().String())
		return err
	})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	s, err := l.Accept()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	for name, end := range map[string]net.Conn{"client": c, "server": s} {
		used, err := end.(*net.TCPConn).MultipathTCP()
		if err != nil {
			return nil, fmt.Errorf("the %s's connection: %w", name, err)
		}
		if !used {
			return nil, fmt.Errorf("the %s's connection fell back to TCP", name)
		}
	}
	sent := bytes.Repeat([]byte("linktrial"), 100_000)
	failed := make(chan error, 1)
	go func() {
		_, err := c.Write(sent)
		failed <- errors.Join(err, c.(*net.TCPConn).CloseWrite())
	}()
	got, err := io.ReadAll(s)
	if err := errors.Join(err, <-failed); err != nil {
		return nil, err
	}
	if !bytes.Equal(got, sent) {
		return nil, fmt.Errorf("%d bytes arrived of %d, or others", len(got), len(sent))
	}
	return []string{fmt.Sprintf("%d bytes arrived", len(got))}, nil
}
