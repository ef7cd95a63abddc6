package main

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"linktrial/internal/process"
	"linktrial/protocols/contract"
	"linktrial/protocols/harness"
	"linktrial/protocols/tcp/socket"
)

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
}

// accepting listens in a namespace and hands over what it accepts.
func accepting(t *testing.T, ns *os.File, address netip.Addr, set map[string]any) (port int, accepted <-chan *conn) {
	t.Helper()
	p := &contract.Parameters{Role: contract.RoleServer, Local: contract.Endpoint{Address: address.String()}, Device: "radio0", Options: options(t, set)}
	var l harness.Listener
	var err error
	if nerr := inside(ns, func() { l, err = listen(t.Context(), p) }); nerr != nil || err != nil {
		t.Fatal(nerr, err)
	}
	ch := make(chan *conn, 16)
	var all sync.WaitGroup
	all.Go(func() {
		defer close(ch)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			ch <- c.(*conn)
		}
	})
	t.Cleanup(func() {
		l.Close()
		all.Wait()
		for c := range ch {
			c.Abort()
		}
	})
	return l.(*listener).Addr().(*net.TCPAddr).Port, ch
}

// dialed connects in a namespace; local may be the zero value.
func dialed(t *testing.T, ns *os.File, local, remote netip.Addr, port int, set map[string]any) *conn {
	t.Helper()
	p := &contract.Parameters{Role: contract.RoleClient, Remote: contract.Endpoint{Address: remote.String(), Port: port}, Device: "radio0", Options: options(t, set)}
	if local.IsValid() {
		p.Local.Address = local.String()
	}
	var c harness.Conn
	var err error
	if nerr := inside(ns, func() {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		c, err = dial(ctx, p)
	}); nerr != nil || err != nil {
		t.Fatal(nerr, err)
	}
	return c.(*conn)
}

// ours counts the rules of this driver.
func ours(t *testing.T, h *netlink.Handle) int {
	t.Helper()
	n := 0
	for _, f := range []int{unix.AF_INET, unix.AF_INET6} {
		rules, err := h.RuleList(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rules {
			if r.Protocol == ruleProtocol {
				n++
			}
		}
	}
	return n
}

// routes counts the routes in this driver's tables.
func routes(t *testing.T, h *netlink.Handle) int {
	t.Helper()
	n := 0
	for _, f := range []int{unix.AF_INET, unix.AF_INET6} {
		all, err := h.RouteListFiltered(f, &netlink.Route{}, netlink.RT_FILTER_TABLE)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range all {
			if r.Table >= firstTable && r.Table < firstTable+tables {
				n++
			}
		}
	}
	return n
}

// flow is a connection and the first flight that it is to have, in segments.
type flow struct {
	c    *conn
	want int
}

func (f flow) info(t *testing.T) unix.TCPInfo {
	t.Helper()
	i, _, err := socket.Info(f.c.raw)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// TestInitialWindow: several connections at once to one port, each with its
// own first flight, and one that asked for nothing with the kernel's.
func TestInitialWindow(t *testing.T) {
	needRoot(t)
	t.Parallel()
	client, server := joined(t)
	h := handle(t, client)
	if err := inside(client, func() {
		// No tail loss probe (RFC 8985, section 7), which is one segment more.
		if err := os.WriteFile("/proc/sys/net/ipv4/tcp_early_retrans", []byte("0"), 0); err != nil {
			t.Error(err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	var flows []flow
	open := func(local, remote netip.Addr, port, window int) {
		set := map[string]any{}
		if window > 0 {
			set["initial_window"] = float64(window)
		} else {
			window = 10 // RFC 6928, and the kernel's default
		}
		flows = append(flows, flow{dialed(t, client, local, remote, port, set), window})
	}
	port, _ := accepting(t, server, serverAddress, nil)
	port6, _ := accepting(t, server, server6, nil)
	open(clientAddress, serverAddress, port, 1)
	open(clientAddress, serverAddress, port, 0)
	open(netip.Addr{}, serverAddress, port, 3)
	open(clientAddress, serverAddress, port, 27)
	open(client6, server6, port6, 5)
	open(client6, server6, port6, 0)
	if n := ours(t, h); n != 4 {
		t.Errorf("%d rules for 4 connections with routes of their own", n)
	}
	if n := routes(t, h); n != 4 {
		t.Errorf("%d routes for 4 connections with routes of their own", n)
	}
	// No acknowledgement comes back any more, because it goes to nobody's Ethernet
	// address: what is under way is the first flight.
	s := handle(t, server)
	l, err := s.LinkByName("radio0")
	if err != nil {
		t.Fatal(err)
	}
	for _, to := range []netip.Addr{serverGateway, client6} {
		if err := s.NeighSet(&netlink.Neigh{LinkIndex: l.Attrs().Index, IP: to.AsSlice(), State: netlink.NUD_PERMANENT,
			HardwareAddr: net.HardwareAddr{2, 0, 0, 0, 0, 1}}); err != nil {
			t.Fatal(err)
		}
	}
	var writers sync.WaitGroup
	for _, f := range flows {
		writers.Go(func() { _, _ = f.c.Write(make([]byte, 4<<20)) })
	}
	for i, f := range flows {
		info, begin := f.info(t), time.Now()
		for ; int(info.Unacked) < f.want && time.Since(begin) < 30*time.Second; info = f.info(t) {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(20 * time.Millisecond) // for a segment too many
		info = f.info(t)
		if int(info.Unacked) != f.want || info.Notsent_bytes == 0 {
			t.Errorf("connection %d: first flight of %d segments, expected %d", i, info.Unacked, f.want)
		}
		// The original's other metrics are copied: an MTU of 1400 to the IPv4 end.
		if f.c.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap() == serverAddress && info.Snd_mss != 1400-40-12 {
			t.Errorf("connection %d: segments of %d bytes", i, info.Snd_mss)
		}
	}
	for _, f := range flows {
		f.c.Abort()
	}
	writers.Wait()
	if r, n := ours(t, h), routes(t, h); r != 0 || n != 0 {
		t.Errorf("%d rules and %d routes are left", r, n)
	}
}

// TestECN: the bits of the SYN, as they are on the wire, and what both ends
// make of them.
func TestECN(t *testing.T) {
	needRoot(t)
	t.Parallel()
	client, server := joined(t)
	port, accepted := accepting(t, server, serverAddress, nil)
	for _, c := range []struct {
		set  map[string]any
		bits byte
		want string
	}{
		{map[string]any{"ecn": true}, 0xC0, "on"}, // ECE and CWR: RFC 3168, section 6.1.1
		{map[string]any{"ecn": false}, 0, "off"},
		{map[string]any{}, 0, "off"},
		{map[string]any{"ecn": true, "initial_window": 4.0}, 0xC0, "on"},
	} {
		syn := capturedSYN(t, client)
		k := dialed(t, client, clientAddress, serverAddress, port, c.set)
		far := <-accepted
		if got := <-syn; got&0xC0 != c.bits {
			t.Errorf("%v: flags %#02x in the SYN, expected %#02x of ECN", c.set, got, c.bits)
		}
		if k.Info().Detail["ecn"] != c.want || far.Info().Detail["ecn"] != c.want {
			t.Errorf("%v: ECN is %s at the client and %s at the server", c.set, k.Info().Detail["ecn"], far.Info().Detail["ecn"])
		}
		if w := k.Info().Detail["initial_window_segments"]; c.set["initial_window"] != nil && w != "4" {
			t.Errorf("%v: initial window %s", c.set, w)
		}
		k.Abort()
		far.Abort()
	}
}

// capturedSYN gives the TCP flags of the next SYN that radio0 sends or receives.
func capturedSYN(t *testing.T, ns *os.File) <-chan byte {
	t.Helper()
	var fd int
	var err error
	if nerr := inside(ns, func() {
		fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, int(htons(unix.ETH_P_ALL)))
	}); nerr != nil || err != nil {
		t.Fatal(nerr, err)
	}
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 30}); err != nil {
		t.Fatal(err)
	}
	ch := make(chan byte, 1)
	go func() {
		defer unix.Close(fd)
		defer close(ch)
		b := make([]byte, 65536)
		for {
			n, _, err := unix.Recvfrom(fd, b, 0)
			if err != nil {
				t.Errorf("no SYN captured: %v", err)
				return
			}
			// IPv4 without options, TCP, SYN and not ACK.
			if n >= 40 && b[0] == 0x45 && b[9] == unix.IPPROTO_TCP && b[33]&0x12 == 0x02 {
				ch <- b[33]
				return
			}
		}
	}()
	return ch
}

func htons(n uint16) uint16 { return n<<8 | n>>8 }

// TestECNSysctl: what the node would do otherwise than asked is unsupported.
func TestECNSysctl(t *testing.T) {
	needRoot(t)
	t.Parallel()
	client, server := joined(t)
	for _, c := range []struct {
		sysctl string
		role   contract.Role
		ecn    bool
		want   string // of the error; empty: none
	}{
		{"0", contract.RoleServer, true, "decline"},
		{"0", contract.RoleServer, false, ""},
		{"0", contract.RoleClient, true, ""},
		{"1", contract.RoleClient, false, "asking for ECN"},
		{"1", contract.RoleClient, true, ""},
		{"2", contract.RoleServer, true, ""},
	} {
		var err error
		if nerr := inside(client, func() {
			if err = os.WriteFile("/proc/sys/net/ipv4/tcp_ecn", []byte(c.sysctl), 0); err == nil {
				_, err = query(t.Context(), &contract.Parameters{Role: c.role, Options: options(t, map[string]any{"ecn": c.ecn})})
			}
		}); nerr != nil {
			t.Fatal(nerr)
		}
		var f *harness.Failure
		if ok := errors.As(err, &f) && f.Code == contract.CodeUnsupported; ok != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("tcp_ecn %s, %s, ecn %t: %v", c.sysctl, c.role, c.ecn, err)
		}
	}
	// A node that asks anyway needs no route for it.
	if err := inside(client, func() {
		if err := os.WriteFile("/proc/sys/net/ipv4/tcp_ecn", []byte("1"), 0); err != nil {
			t.Error(err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	port, _ := accepting(t, server, serverAddress, nil)
	k := dialed(t, client, clientAddress, serverAddress, port, map[string]any{"ecn": true})
	defer k.Abort()
	if k.route != nil || k.Info().Detail["ecn"] != "on" {
		t.Errorf("ECN %s, with a route: %t", k.Info().Detail["ecn"], k.route != nil)
	}
}

// TestRouteOfFailedAttempts: whatever ends an attempt takes its route away.
func TestRouteOfFailedAttempts(t *testing.T) {
	needRoot(t)
	t.Parallel()
	client, _ := joined(t)
	h := handle(t, client)
	for _, c := range []struct {
		remote, device string
		code           contract.Code
		err            error
	}{
		{serverAddress.String(), "radio0", "", unix.ECONNREFUSED},
		// Of a bound interface the kernel believes that it reaches everybody.
		{"203.0.113.1", "", contract.CodeUnreachable, unix.ENETUNREACH},
		{clientAddress.String(), "", contract.CodeUnsupported, nil}, // its own address
	} {
		p := &contract.Parameters{Role: contract.RoleClient, Local: contract.Endpoint{Address: clientAddress.String()},
			Remote: contract.Endpoint{Address: c.remote, Port: 7001}, Device: c.device, Options: options(t, map[string]any{"initial_window": 2.0})}
		var err error
		if nerr := inside(client, func() {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			_, err = dial(ctx, p)
		}); nerr != nil {
			t.Fatal(nerr)
		}
		var f *harness.Failure
		if err == nil || c.err != nil && !errors.Is(err, c.err) || c.code != "" && (!errors.As(err, &f) || f.Code != c.code) {
			t.Errorf("to %s: %v", c.remote, err)
		}
		if r, n := ours(t, h), routes(t, h); r != 0 || n != 0 {
			t.Errorf("to %s: %d rules and %d routes are left", c.remote, r, n)
		}
	}
}

// TestMain lets tests run this program as the driver itself.
func TestMain(m *testing.M) {
	if os.Getenv("LINKTRIAL_TEST_DRIVER") != "" {
		main()
	}
	os.Exit(m.Run())
}

// TestKilledDriver: what a killed driver leaves is gone once the next one
// starts; a living one's stays.
func TestKilledDriver(t *testing.T) {
	needRoot(t)
	t.Parallel()
	client, server := joined(t)
	h := handle(t, client)
	port, accepted := accepting(t, server, serverAddress, nil)
	living := dialed(t, client, clientAddress, serverAddress, port, map[string]any{"initial_window": 2.0})
	defer living.Abort()
	(<-accepted).Abort()

	p := &contract.Parameters{Contract: contract.Version, Role: contract.RoleClient, Local: contract.Endpoint{Address: clientAddress.String()},
		Remote: contract.Endpoint{Address: serverAddress.String(), Port: port}, Device: "radio0", Options: map[string]any{"initial_window": 3},
		Transfer: contract.Transfer{ID: strings.Repeat("0", 32), SizeBytes: 1}, SampleIntervalMS: 100}
	document, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "LINKTRIAL_TEST_DRIVER=1")
	cmd.Stdin = strings.NewReader(string(document))
	if err := process.StartIn(cmd, pathOf(client)); err != nil {
		t.Fatal(err)
	}
	far := <-accepted // it is connected, and waits for the first byte
	defer far.Abort()
	if n := ours(t, h); n != 2 {
		t.Errorf("%d rules of two clients", n)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) {
		t.Fatalf("the killed driver ended with %v", err)
	}
	// Killed as it was, it has left both.
	if r, n := ours(t, h), routes(t, h); r != 2 || n != 2 {
		t.Errorf("%d rules and %d routes after the kill, expected 2", r, n)
	}
	next := dialed(t, client, clientAddress, serverAddress, port, nil)
	defer next.Abort()
	if r, n := ours(t, h), routes(t, h); r != 1 || n != 1 {
		t.Errorf("%d rules and %d routes after the next start, expected the living client's", r, n)
	}
}

// TestWithoutPermission: a process without CAP_NET_ADMIN says what it lacks.
func TestWithoutPermission(t *testing.T) {
	needRoot(t)
	t.Parallel()
	done := make(chan error)
	go func() {
		// Capabilities are the thread's; it ends with the goroutine.
		runtime.LockOSThread()
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var none [2]unix.CapUserData
		if err := unix.Capset(&header, &none[0]); err != nil {
			done <- err
			return
		}
		_, err := query(context.Background(), &contract.Parameters{Role: contract.RoleClient, Options: map[string]any{"initial_window": int64(3)}})
		done <- err
	}()
	err := <-done
	var f *harness.Failure
	if !errors.As(err, &f) || f.Code != contract.CodeUnsupported || !strings.Contains(err.Error(), "CAP_NET_ADMIN") {
		t.Errorf("%v, expected unsupported with CAP_NET_ADMIN", err)
	}
}

// TestRetriesAndUserTimeout: both reach the sockets of both ends.
func TestRetriesAndUserTimeout(t *testing.T) {
	client, server := pair(t, map[string]any{"syn_retries": 127.0, "user_timeout": 3_600_000.0})
	for who, c := range map[string]*conn{"client": client, "server": server} {
		if n := option(t, c, unix.IPPROTO_TCP, unix.TCP_SYNCNT); n != 127 {
			t.Errorf("%s: TCP_SYNCNT is %d", who, n)
		}
		if n := option(t, c, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT); n != 3_600_000 {
			t.Errorf("%s: TCP_USER_TIMEOUT is %d", who, n)
		}
	}
}
