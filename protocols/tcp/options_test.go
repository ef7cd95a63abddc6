package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"linktrial/internal/process"
	"linktrial/protocols/contract"
	"linktrial/protocols/harness"
	"linktrial/protocols/tcp/socket"
)

func options(t *testing.T, set map[string]any) map[string]any {
	t.Helper()
	m, err := contract.ParseManifest("driver.yaml", manifest)
	if err != nil {
		t.Fatal(err)
	}
	o, err := m.CheckOptions(set)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// pair opens a listener and a connection to it with the given options.
func pair(t *testing.T, set map[string]any) (client, server *conn) {
	t.Helper()
	p := &contract.Parameters{Role: contract.RoleServer, Local: contract.Endpoint{Address: "127.0.0.1"}, Options: options(t, set)}
	l, err := listen(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	q := *p
	q.Remote = contract.Endpoint{Address: "127.0.0.1", Port: l.(*listener).Addr().(*net.TCPAddr).Port}
	c, err := dial(t.Context(), &q)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Abort)
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Abort)
	return c.(*conn), s.(*conn)
}

func option(t *testing.T, c *conn, level, opt int) int {
	t.Helper()
	var n int
	var err error
	if cerr := c.raw.Control(func(fd uintptr) { n, err = unix.GetsockoptInt(int(fd), level, opt) }); cerr != nil {
		t.Fatal(cerr)
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestOptionsReachBothEnds: the accepting socket has what the listener was given.
func TestOptionsReachBothEnds(t *testing.T) {
	set := map[string]any{"congestion": "reno", "nodelay": false, "mss": 1000.0, "send_buffer": 100_000.0, "receive_buffer": 200_000.0}
	if info, err := query(t.Context(), &contract.Parameters{Role: contract.RoleQuery}); err != nil {
		t.Fatal(err)
	} else if info.Detail["option_rto_max"] == "" {
		set["rto_min"], set["rto_max"] = 20.0, 5000.0
	} else {
		t.Logf("rto_min and rto_max are not tried: %s", info.Detail["option_rto_max"])
	}
	client, server := pair(t, set)
	for who, c := range map[string]*conn{"client": client, "server": server} {
		if got := c.Info().Detail["congestion"]; got != "reno" {
			t.Errorf("%s: congestion control %s", who, got)
		}
		if n := option(t, c, unix.IPPROTO_TCP, unix.TCP_NODELAY); n != 0 {
			t.Errorf("%s: TCP_NODELAY is %d", who, n)
		}
		if n := option(t, c, unix.IPPROTO_TCP, unix.TCP_MAXSEG); n > 1000 || n < 900 {
			t.Errorf("%s: segments of %d bytes, expected 1000 less the options", who, n)
		}
		if n := option(t, c, unix.SOL_SOCKET, unix.SO_SNDBUF); n != 200_000 {
			t.Errorf("%s: SO_SNDBUF is %d, expected twice 100000", who, n)
		}
		if n := option(t, c, unix.SOL_SOCKET, unix.SO_RCVBUF); n != 400_000 {
			t.Errorf("%s: SO_RCVBUF is %d, expected twice 200000", who, n)
		}
		if set["rto_max"] != nil {
			if n := option(t, c, unix.IPPROTO_TCP, unix.TCP_RTO_MAX_MS); n != 5000 {
				t.Errorf("%s: TCP_RTO_MAX_MS is %d", who, n)
			}
			// Rounded up to the kernel's tick, which is 10 ms at most.
			if n := option(t, c, unix.IPPROTO_TCP, unix.TCP_RTO_MIN_US); n < 20_000 || n > 30_000 {
				t.Errorf("%s: TCP_RTO_MIN_US is %d", who, n)
			}
		}
		if n := option(t, c, unix.SOL_SOCKET, unix.SO_KEEPALIVE); n != 0 {
			t.Errorf("%s: keepalive is on", who)
		}
		if n := option(t, c, unix.SOL_SOCKET, unix.SO_PROTOCOL); n != unix.IPPROTO_TCP {
			t.Errorf("%s: protocol %d, expected plain TCP", who, n)
		}
	}
}

func TestDefaultIsCubic(t *testing.T) {
	there, err := socket.Controls()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(there, "cubic") {
		t.Fatalf("this kernel has no cubic, there are %v", there)
	}
	client, server := pair(t, nil)
	for who, c := range map[string]*conn{"client": client, "server": server} {
		if got := c.Info().Detail["congestion"]; got != "cubic" {
			t.Errorf("%s: congestion control %s", who, got)
		}
	}
}

// TestRefusedByKernel: what the kernel does not take is unsupported, with the reason.
func TestRefusedByKernel(t *testing.T) {
	for _, c := range []struct {
		set  map[string]any
		want string
	}{
		{map[string]any{"congestion": "no-such"}, "there are " /* the list */},
		{map[string]any{"congestion": strings.Repeat("x", 100)}, "there are "},
	} {
		p := &contract.Parameters{Role: contract.RoleClient, Options: options(t, c.set)}
		_, err := query(t.Context(), p)
		var f *harness.Failure
		if !errors.As(err, &f) || f.Code != contract.CodeUnsupported || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, expected unsupported with %q", c.set, err, c.want)
		}
	}
	p := &contract.Parameters{Device: "no-such-device", Local: contract.Endpoint{Address: "127.0.0.1"}, Options: options(t, nil)}
	_, err := listen(t.Context(), p)
	var f *harness.Failure
	if os.Geteuid() == 0 && (!errors.As(err, &f) || f.Code != contract.CodeUnsupported) {
		t.Errorf("a device that is not there: %v", err)
	}
}

// TestSample: TCP_INFO's values are those of the transfer.
func TestSample(t *testing.T) {
	client, server := pair(t, map[string]any{"congestion": "reno"})
	const size = 100_000
	got := make(chan error, 1)
	go func() {
		_, err := io.CopyN(io.Discard, server, size)
		got <- err
	}()
	if _, err := client.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Fatal(err)
	}
	var s contract.Sample
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		s = contract.Sample{SentBytes: size}
		client.Sample(&s, true)
		if s.AckedBytes != nil && *s.AckedBytes == size {
			break
		}
		if time.Since(begin) > 30*time.Second {
			t.Fatalf("acknowledged %v of %d bytes: the SYN or something else is counted", s.AckedBytes, size)
		}
	}
	if s.CwndBytes == nil || *s.CwndBytes <= 0 || s.SRTTUS == nil || *s.SRTTUS <= 0 || s.RTOUS == nil || *s.RTOUS < 1000 ||
		s.Retransmits == nil || s.FlightBytes == nil || *s.FlightBytes != 0 || s.More["mss_bytes"] <= 0 {
		t.Errorf("sample %+v", s)
	}
	if s.SsthreshBytes != nil && *s.Retransmits == 0 {
		t.Errorf("threshold %d without a loss, expected it absent", *s.SsthreshBytes)
	}
	// Loopback loses nothing, though a probe for the tail may send some again.
	if s.TransmittedBytes == nil || s.RetransmittedBytes == nil || *s.TransmittedBytes-*s.RetransmittedBytes != size || *s.Retransmits == 0 && *s.RetransmittedBytes != 0 {
		t.Errorf("sent %v, again %v of %d bytes, expected each once, and no SYN or header", s.TransmittedBytes, s.RetransmittedBytes, size)
	}
	if s.MinRTTUS == nil || *s.MinRTTUS <= 0 || *s.MinRTTUS > 1e6 {
		t.Errorf("least round-trip time %v", s.MinRTTUS)
	}
	s = contract.Sample{SentBytes: size}
	server.Sample(&s, false)
	if s.AckedBytes != nil || s.CwndBytes != nil || s.SRTTUS == nil || s.TransmittedBytes != nil || s.RetransmittedBytes != nil {
		t.Errorf("server's sample %+v", s)
	}
}

// TestConnectOutlivesRetries: the kernel's SYN retries are not the limit.
func TestConnectOutlivesRetries(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a network without anybody needs root for its namespace")
	}
	t.Parallel()
	ns := silentNamespace(t)
	p := &contract.Parameters{Role: contract.RoleClient, Local: contract.Endpoint{Address: "192.0.2.1"},
		Remote: contract.Endpoint{Address: "192.0.2.2", Port: 7001}, Options: options(t, nil)}
	// The retries of this namespace end after two seconds at most.
	const limit = 3500 * time.Millisecond
	begin := time.Now()
	var err error
	if nerr := inside(ns, func() {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		_, err = dial(ctx, p)
	}); nerr != nil {
		t.Fatal(nerr)
	}
	if took := time.Since(begin); err == nil || took < limit {
		t.Errorf("gave up after %s (%v), expected %s", took, err, limit)
	}
}

// inside runs f on a thread in the namespace of a file.
func inside(ns *os.File, f func()) error {
	return process.InNamespace(pathOf(ns), func() error { f(); return nil })
}

// pathOf is the file of a namespace for this process.
func pathOf(ns *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", ns.Fd()) }
