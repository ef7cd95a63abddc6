package lttcp_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"

	"linktrial/protocols/datagram/edge/edgetest"
	"linktrial/protocols/lttcp"
)

var loopback = netip.MustParseAddrPort("127.0.0.1:0")

// connected is both ends of a connection over the loopback interface.
func connected(t *testing.T, o lttcp.Options) (client, server *lttcp.Conn) {
	t.Helper()
	l, err := lttcp.Listen(loopback, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if client, err = lttcp.Dial(ctx, netip.AddrPort{}, l.Addr(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Abort)
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	return client, server
}

func TestStream(t *testing.T) {
	client, server := connected(t, lttcp.Options{})
	want := bytes.Repeat([]byte("a stream of bytes "), 100_000)
	go func() {
		_, _ = client.Write(want)
		_ = client.CloseWrite()
	}()
	got, err := io.ReadAll(server)
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%d bytes arrived (%v), expected %d", len(got), err, len(want))
	}
	if _, err := server.Write([]byte(".")); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Close(t.Context()) }()
	if got, err = io.ReadAll(client); err != nil || string(got) != "." {
		t.Fatalf("%q came back (%v)", got, err)
	}
	if err := errors.Join(client.Close(t.Context()), <-ended); err != nil {
		t.Error(err)
	}
	if _, err := client.Write([]byte("more")); err == nil {
		t.Error("a closed connection takes bytes")
	}
}

func TestAbort(t *testing.T) {
	client, server := connected(t, lttcp.Options{})
	client.Abort()
	if _, err := server.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the server reads %v, expected %v", err, syscall.ECONNRESET)
	}
	if _, err := client.Write([]byte("a")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the client writes %v, expected %v", err, net.ErrClosed)
	}
}

func TestDeadlines(t *testing.T) {
	client, server := connected(t, lttcp.Options{Buffer: 16 << 10, Queue: 16 << 10})
	if err := client.SetDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a read after the deadline: %v", err)
	}
	// The server does not read: a write waits, and ends with a deadline that is set then.
	if err := client.SetDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	wrote := make(chan error, 1)
	go func() {
		_, err := client.Write(make([]byte, 1<<20))
		wrote <- err
	}()
	buf := make([]byte, 1)
	if _, err := io.ReadFull(server, buf); err != nil { // it has begun
		t.Fatal(err)
	}
	if err := client.SetDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if err := <-wrote; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a write that waits: %v", err)
	}
}

func TestRefused(t *testing.T) {
	s, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(loopback)) // a port that is free afterwards
	if err != nil {
		t.Fatal(err)
	}
	to := s.LocalAddr().(*net.UDPAddr).AddrPort()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := lttcp.Dial(t.Context(), netip.AddrPort{}, to, lttcp.Options{}); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dial to a port without a listener: %v, expected %v", err, syscall.ECONNREFUSED)
	}
}

func TestClosedListener(t *testing.T) {
	l, err := lttcp.Listen(loopback, lttcp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.Close(), l.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("accept after close: %v", err)
	}
	if _, err := lttcp.Listen(loopback, lttcp.Options{Segment: 10}); err == nil {
		t.Error("segments of 10 bytes are taken")
	}
}

// TestClientGone: a server ends the connection of a client that has ended without a
// word, because the client's node says that nobody has its port.
func TestClientGone(t *testing.T) {
	l, err := lttcp.Listen(loopback, lttcp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	at, stop := edgetest.PassOn(t, l.Addr())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	client, err := lttcp.Dial(ctx, netip.AddrPort{}, at, lttcp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Abort)
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	stop()
	if err := server.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = server.Write(make([]byte, 100_000))
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("after the client's end: %v, expected %v", err, syscall.ECONNRESET)
	}
}
