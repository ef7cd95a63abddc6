package main

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"linktrial/protocols/contract"
	"linktrial/protocols/harness"
)

func parameters(t *testing.T, role contract.Role, set map[string]any) *contract.Parameters {
	t.Helper()
	m, err := contract.ParseManifest("driver.yaml", manifest)
	if err != nil {
		t.Fatal(err)
	}
	o, err := m.CheckOptions(set)
	if err != nil {
		t.Fatal(err)
	}
	return &contract.Parameters{Role: role, Local: contract.Endpoint{Address: "127.0.0.1"}, Options: o}
}

// pair opens a listener and a connection to it, of whose stream the first byte has arrived.
func pair(t *testing.T, set map[string]any) (client, server *conn) {
	t.Helper()
	l, err := listen(t.Context(), parameters(t, contract.RoleServer, set))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	accepted := make(chan harness.Conn, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			_, err = c.Write([]byte{contract.ByteReady})
		}
		if err != nil {
			t.Error(err)
		}
		accepted <- c
	}()
	p := parameters(t, contract.RoleClient, set)
	p.Remote = contract.Endpoint{Address: "127.0.0.1", Port: l.(*listener).Addr().(*net.UDPAddr).Port}
	c, err := dial(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	client, server = c.(*conn), (<-accepted).(*conn)
	t.Cleanup(client.Abort)
	t.Cleanup(server.Abort)
	if _, err := io.ReadFull(client, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return client, server
}

// TestTransfer: everything is acknowledged in the end, and both ends close at once.
func TestTransfer(t *testing.T) {
	client, server := pair(t, map[string]any{"key_exchange": "x25519"})
	const size = 3 << 20
	read := make(chan int64, 1)
	go func() {
		n, err := io.Copy(io.Discard, server)
		if err != nil {
			t.Error(err)
		}
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		read <- n
	}()
	if _, err := client.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	if x := client.Info().Detail["key_exchange"]; x != "X25519" {
		t.Errorf("key exchange %s", x)
	}
	began := time.Now()
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	if n := <-read; n != size {
		t.Errorf("%d bytes arrived, expected %d", n, size)
	}
	if took := time.Since(began); took > closeWithin {
		t.Errorf("the ends closed after %s: one has not heard of the other", took)
	}
	var s contract.Sample
	client.Sample(&s, true)
	if s.AckedBytes == nil || *s.AckedBytes != size || s.CwndBytes == nil || *s.CwndBytes <= 0 || s.SRTTUS == nil || s.Timeouts == nil || s.LossEvents == nil {
		t.Errorf("sample %+v", s)
	}
	server.Sample(&s, false)
}

// TestWithoutEvents: what only events tell is absent, not 0.
func TestWithoutEvents(t *testing.T) {
	client, _ := pair(t, map[string]any{"events": false})
	var s contract.Sample
	client.Sample(&s, true)
	if s.AckedBytes != nil || s.FlightBytes != nil || s.LossEvents != nil || s.Retransmits != nil || s.Timeouts != nil || s.CwndBytes == nil || s.SRTTUS == nil {
		t.Errorf("sample %+v", s)
	}
}

// TestAbort: the other end is told, with the contract's code.
func TestAbort(t *testing.T) {
	client, server := pair(t, nil)
	client.Abort()
	_, err := server.Read(make([]byte, 1))
	var f *harness.Failure
	if !errors.As(err, &f) || f.Code != contract.CodeReset {
		t.Errorf("the other end reads %v, expected a failure with %s", err, contract.CodeReset)
	}
}

// TestLostPath: what the kernel says of a path is a lost packet in a transfer, and
// the end of connecting.
func TestLostPath(t *testing.T) {
	s := &socket{}
	var reported error
	s.listenFor(func(err error) { reported = err })
	unreachable := &net.OpError{Op: "write", Err: syscall.ENETUNREACH}
	if !s.told(unreachable) || !errors.Is(reported, syscall.ENETUNREACH) || !errors.Is(whileConnecting(reported), syscall.ENETUNREACH) {
		t.Errorf("an unreachable network: reported %v", reported)
	}
	if whileConnecting(syscall.ENOBUFS) != nil {
		t.Error("a full queue ends connecting")
	}
	for _, err := range []error{net.ErrClosed, syscall.EMSGSIZE, syscall.EIO, nil} {
		if s.told(err) {
			t.Errorf("%v is kept from the library", err)
		}
	}
}

func TestWindows(t *testing.T) {
	_, err := newSettings(parameters(t, contract.RoleClient, map[string]any{"stream_window": 1e6, "stream_window_max": 1e5}))
	var f *harness.Failure
	if !errors.As(err, &f) || f.Code != contract.CodeBadParameters {
		t.Errorf("a window beyond its maximum: %v", err)
	}
	s, err := newSettings(parameters(t, contract.RoleClient, nil))
	if err != nil || s.quic.InitialStreamReceiveWindow != 512<<10 || s.quic.MaxConnectionReceiveWindow != 15<<20 || s.quic.MaxIdleTimeout != forever {
		t.Errorf("%+v, %v", s.quic, err)
	}
}
