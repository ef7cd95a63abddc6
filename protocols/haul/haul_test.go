package haul_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"linktrial/protocols/datagram/edge/edgetest"
	"linktrial/protocols/haul"
)

var loopback = netip.MustParseAddrPort("127.0.0.1:0")

func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func listen(t *testing.T, o haul.Options) *haul.Listener {
	t.Helper()
	l, err := haul.Listen(loopback, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// connect makes both ends of a connection.
func connect(t *testing.T, o haul.Options) (client, server *haul.Conn, l *haul.Listener) {
	t.Helper()
	l = listen(t, o)
	client, err := haul.Dial(soon(t), netip.AddrPort{}, l.Addr(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Abort("the test is over") })
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	return client, server, l
}

func TestManyConnections(t *testing.T) {
	const many = 50
	l := listen(t, haul.Options{})
	ctx := soon(t)
	var group sync.WaitGroup
	group.Go(func() {
		for range many {
			c, err := l.Accept()
			if err != nil {
				t.Error(err)
				return
			}
			group.Go(func() {
				m, err := c.Receive(ctx)
				if err == nil {
					err = c.Send(ctx, m)
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
	})
	for i := range many {
		group.Go(func() {
			c, err := haul.Dial(ctx, netip.AddrPort{}, l.Addr(), haul.Options{})
			if err != nil {
				t.Error(err)
				return
			}
			text := bytes.Repeat([]byte{byte(i)}, 10_000)
			if err := c.Send(ctx, haul.Message{Data: text}); err != nil {
				t.Error(err)
			}
			if m, err := c.Receive(ctx); err != nil || !bytes.Equal(m.Data, text) {
				t.Errorf("connection %d: %d bytes came back, %v", i, len(m.Data), err)
			}
			if err := c.Close(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

func TestCloseDelivers(t *testing.T) {
	client, server, _ := connect(t, haul.Options{})
	ctx := soon(t)
	text := bytes.Repeat([]byte("x"), 300_000)
	if err := client.Send(ctx, haul.Message{Data: text}); err != nil {
		t.Fatal(err)
	}
	if err := client.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if m, err := server.Receive(ctx); err != nil || !bytes.Equal(m.Data, text) {
		t.Fatalf("%d bytes, %v", len(m.Data), err)
	}
	if _, err := server.Receive(ctx); !errors.Is(err, io.EOF) {
		t.Errorf("after a close: %v, expected io.EOF", err)
	}
	if err := client.Send(ctx, haul.Message{Data: text}); err == nil {
		t.Error("a message was sent over a closed connection")
	}
}

func TestAbort(t *testing.T) {
	client, server, _ := connect(t, haul.Options{})
	client.Abort("enough")
	_, err := server.Receive(soon(t))
	var abort *haul.AbortError
	if !errors.As(err, &abort) || !errors.Is(err, haul.ErrAborted) || !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("after an abort: %v", err)
	}
	if abort.Reason != "enough" || !strings.Contains(err.Error(), `"enough"`) {
		t.Errorf("the reason is %q, in %q", abort.Reason, err)
	}
	if err := server.Send(soon(t), haul.Message{Data: []byte("x")}); !errors.As(err, &abort) {
		t.Errorf("send after an abort: %v", err)
	}
	if _, err := client.Receive(soon(t)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("receive at the end that aborted: %v", err)
	}
}

// TestAbortReasons holds that any reason arrives as text of at most 200 bytes.
func TestAbortReasons(t *testing.T) {
	for reason, want := range map[string]string{
		"":                             "",
		"line\nand \x00":               "line\nand \x00",
		"damaged \xff text":            "damaged \uFFFD text",
		strings.Repeat("x", 300):       strings.Repeat("x", 200),
		"x" + strings.Repeat("é", 150): "x" + strings.Repeat("é", 99),
	} {
		client, server, _ := connect(t, haul.Options{})
		server.Abort(reason)
		_, err := client.Receive(soon(t))
		var abort *haul.AbortError
		if !errors.As(err, &abort) || abort.Reason != want {
			t.Errorf("%q: %v", reason, err)
		}
		if strings.ContainsAny(err.Error(), "\n\x00") {
			t.Errorf("%q is not one line", err)
		}
	}
}

func TestServerKilled(t *testing.T) {
	client, _, l := connect(t, haul.Options{})
	ctx := soon(t)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	var err error
	for err == nil {
		err = client.Send(ctx, haul.Message{Data: make([]byte, 1000)})
	}
	if !errors.Is(err, haul.ErrAborted) && !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, net.ErrClosed) {
		t.Errorf("after the listener's end: %v", err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("accept after close: %v", err)
	}
}

func TestNobodyListens(t *testing.T) {
	s, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(loopback))
	if err != nil {
		t.Fatal(err)
	}
	to := s.LocalAddr().(*net.UDPAddr).AddrPort()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := haul.Dial(soon(t), netip.AddrPort{}, to, haul.Options{}); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dial to a closed port: %v", err)
	}
}

func TestNoAnswer(t *testing.T) {
	s, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(loopback))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := haul.Dial(ctx, netip.AddrPort{}, s.LocalAddr().(*net.UDPAddr).AddrPort(), haul.Options{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("dial without an answer: %v", err)
	}
}

func TestKeysDiffer(t *testing.T) {
	l := listen(t, haul.Options{Key: bytes.Repeat([]byte{1}, 32)})
	_, err := haul.Dial(soon(t), netip.AddrPort{}, l.Addr(), haul.Options{Key: bytes.Repeat([]byte{2}, 32)})
	if !errors.Is(err, haul.ErrRefused) {
		t.Errorf("dial with another key: %v", err)
	}
}

func TestRebind(t *testing.T) {
	client, server, _ := connect(t, haul.Options{})
	ctx := soon(t)
	before := server.RemoteAddr()
	if err := client.Rebind(netip.MustParseAddrPort("127.0.0.2:0")); err != nil {
		t.Fatal(err)
	}
	if err := client.Send(ctx, haul.Message{Data: []byte("moved")}); err != nil {
		t.Fatal(err)
	}
	if m, err := server.Receive(ctx); err != nil || string(m.Data) != "moved" {
		t.Fatalf("%q, %v", m.Data, err)
	}
	if err := server.Send(ctx, haul.Message{Data: []byte("back")}); err != nil {
		t.Fatal(err)
	}
	if m, err := client.Receive(ctx); err != nil || string(m.Data) != "back" {
		t.Fatalf("%q, %v", m.Data, err)
	}
	if after := server.RemoteAddr(); after == before || after.Addr() != netip.MustParseAddr("127.0.0.2") {
		t.Errorf("the client was %v and is %v", before, after)
	}
}

func TestDeadlines(t *testing.T) {
	client, server, _ := connect(t, haul.Options{Buffer: 64 << 10})
	s := client.Stream(1)
	server.Stream(1)
	past := time.Now().Add(-time.Second)
	_ = s.SetDeadline(past)
	if _, err := s.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read: %v", err)
	}
	// While it waits.
	_ = s.SetDeadline(time.Time{})
	failed := make(chan error)
	go func() {
		_, err := s.Read(make([]byte, 1))
		failed <- err
	}()
	_ = s.SetDeadline(past)
	if err := <-failed; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read that waits: %v", err)
	}
	// Nobody reads, so that the queue fills.
	_ = s.SetDeadline(time.Now().Add(100 * time.Millisecond))
	n, err := s.Write(make([]byte, 10<<20))
	if !errors.Is(err, os.ErrDeadlineExceeded) || n == 0 || n > 1<<20 {
		t.Errorf("write: %d bytes, %v", n, err)
	}
}

// TestClientGone: a server ends the connection of a client that has ended without a
// word, because the client's node says that nobody has its port. It does not go on
// sending what nobody will ever take.
func TestClientGone(t *testing.T) {
	l := listen(t, haul.Options{})
	at, stop := edgetest.PassOn(t, l.Addr())
	client, err := haul.Dial(soon(t), netip.AddrPort{}, at, haul.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Abort("the test is over") })
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	ctx := soon(t)
	if err := client.Send(ctx, haul.Message{Class: haul.ReliableSequenced, Data: []byte("here")}); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Receive(ctx); err != nil { // the server knows now where the client is
		t.Fatal(err)
	}
	stop()
	for err == nil {
		err = server.Send(ctx, haul.Message{Data: make([]byte, 100_000)})
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("after the client's end: %v, expected %v", err, syscall.ECONNRESET)
	}
}
