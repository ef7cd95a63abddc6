package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"linktrial/internal/payload"
	"linktrial/internal/process"
	"linktrial/protocols/contract"
	"linktrial/protocols/harness"
	"linktrial/protocols/tcp/mptcp"
	"linktrial/protocols/tcp/socket"
)

// twoRadios are two namespaces with two wires between, each a network of its own with
// the rate given for what the client sends, in bit/s.
func twoRadios(t *testing.T, rates [2]uint64) (client, server *os.File) {
	t.Helper()
	if err := kernelHasMultipath(); err != nil {
		t.Skip(err)
	}
	client, server = newNamespace(t), newNamespace(t)
	c, s := handle(t, client), handle(t, server)
	if lo, err := s.LinkByName("lo"); err != nil {
		t.Fatal(err)
	} else if err := s.LinkSetUp(lo); err != nil {
		t.Fatal(err)
	}
	for i, rate := range rates {
		name := fmt.Sprintf("radio%d", i)
		veth := &netlink.Veth{LinkAttrs: netlink.NewLinkAttrs(), PeerName: name, PeerNamespace: netlink.NsFd(int(server.Fd()))}
		veth.Name = name
		if err := c.LinkAdd(veth); err != nil {
			t.Fatal(err)
		}
		for _, end := range []struct {
			h    *netlink.Handle
			last byte
		}{{c, 1}, {s, 3}} {
			l, err := end.h.LinkByName(name)
			if err != nil {
				t.Fatal(err)
			}
			a := &netlink.Addr{IPNet: &net.IPNet{IP: net.IPv4(10, 77+byte(i), 0, end.last).To4(), Mask: net.CIDRMask(24, 32)}}
			if err := errors.Join(end.h.AddrAdd(l, a), end.h.LinkSetUp(l)); err != nil {
				t.Fatal(err)
			}
			if end.last == 1 {
				tbf := &netlink.Tbf{QdiscAttrs: netlink.QdiscAttrs{LinkIndex: l.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
					Rate: rate / 8, Buffer: netlink.Xmittime(rate/8, 4096), Limit: 32 << 10}
				if err := end.h.QdiscAdd(tbf); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return client, server
}

// multipathParameters are those of one end; last is its number in both networks.
func multipathParameters(role contract.Role, last int) *contract.Parameters {
	p := &contract.Parameters{Contract: contract.Version, Role: role, Device: "radio0", Options: map[string]any{"multipath": true},
		Local: contract.Endpoint{Address: fmt.Sprintf("10.77.0.%d", last)}, Limits: contract.Limits{ConnectMS: 20_000, TransferMS: 60_000}, SampleIntervalMS: 50}
	for i := range 2 {
		p.Paths = append(p.Paths, contract.Path{Device: fmt.Sprintf("radio%d", i), Address: fmt.Sprintf("10.%d.0.%d", 77+i, last)})
	}
	if role == contract.RoleServer {
		p.Local.Port = 5001
	} else {
		p.Remote = contract.Endpoint{Address: "10.77.0.3", Port: 5001}
		p.Transfer = contract.Transfer{ID: strings.Repeat("0", 32), SizeBytes: 1 << 20, Seed: 7}
	}
	return p
}

// driverProcess is a driver that runs in a namespace.
type driverProcess struct {
	*exec.Cmd
	out bytes.Buffer
}

// start runs this program as the driver.
func start(t *testing.T, ns *os.File, p *contract.Parameters) *driverProcess {
	t.Helper()
	document, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	d := &driverProcess{Cmd: exec.Command(self)}
	d.Env = append(os.Environ(), "LINKTRIAL_TEST_DRIVER=1")
	var source *payload.Source
	if p.Role == contract.RoleClient {
		source = payload.NewSource(payload.NewKey(nil, 1), p.Transfer.SizeBytes)
	}
	d.Stdin, d.Stdout = payload.Input(document, source), &d.out
	if err := process.StartIn(d.Cmd, pathOf(ns)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if d.ProcessState == nil {
			_ = d.Process.Kill()
			_ = d.Wait()
		}
	})
	return d
}

// serving starts a server and waits until it listens.
func serving(t *testing.T, ns *os.File, p *contract.Parameters) *driverProcess {
	t.Helper()
	d := start(t, ns, p)
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		var c net.Conn
		var err error
		if nerr := inside(ns, func() { c, err = net.Dial("tcp", fmt.Sprintf("10.77.0.3:%d", p.Local.Port)) }); nerr != nil {
			t.Fatal(nerr)
		}
		if err == nil {
			c.Close()
			return d
		}
		if time.Now().After(deadline) {
			t.Fatalf("the server does not listen: %v", err)
		}
	}
}

// last is the last event of a driver that has ended.
func (d *driverProcess) last(t *testing.T) *contract.Event {
	t.Helper()
	_ = d.Wait() // a failure is in the event
	var last *contract.Event
	for o := contract.NewOutput(strings.NewReader(d.out.String())); ; {
		e, _, _, err := o.Next()
		if errors.Is(err, io.EOF) && last != nil {
			return last
		}
		if err != nil {
			t.Fatalf("%v in %.1000q", err, d.out.String())
		}
		last = e
	}
}

// settings of MPTCP in a namespace, as a driver finds them.
func pathManager(t *testing.T, ns *os.File) string {
	t.Helper()
	var out []byte
	var err error
	if nerr := inside(ns, func() {
		out, err = exec.Command("sh", "-c", "ip mptcp limits show; ip mptcp endpoint show").CombinedOutput()
	}); nerr != nil || err != nil {
		t.Skipf("no 'ip mptcp' here: %v %v %s", nerr, err, out)
	}
	return string(out)
}

// TestMultipath: both radios carry bytes, and what the
// drivers have set up in their namespaces is gone afterwards.
func TestMultipath(t *testing.T) {
	needRoot(t)
	t.Parallel()
	client, server := twoRadios(t, [2]uint64{4_000_000, 2_000_000})
	before := [2]string{pathManager(t, client), pathManager(t, server)}
	s := serving(t, server, multipathParameters(contract.RoleServer, 3))
	e := start(t, client, multipathParameters(contract.RoleClient, 1)).last(t)
	if e.Event != contract.KindResult || len(e.Result.Paths) != 2 {
		t.Fatalf("%+v", e)
	}
	one, two := e.Result.Paths[0], e.Result.Paths[1]
	if one.Device != "radio0" || two.Address != "10.78.0.1" || two.Share < 0.15 || one.Share < 0.15 || one.Share+two.Share < 1-1e-9 || one.Bytes+two.Bytes < 1<<20*97/100 {
		t.Errorf("%+v", e.Result.Paths)
	}
	// Neither radio alone can have carried it in this time: 1 MiB takes 2.1 s at 4 Mbit/s.
	if d := time.Duration(e.Result.ElapsedNS); d > 2050*time.Millisecond {
		t.Logf("%s, which the first radio alone needs, too", d)
	}
	if e.Result.Final.More["path2_acked_bytes"] != float64(two.Bytes) || *e.Result.Final.AckedBytes != 1<<20 {
		t.Errorf("last sample %+v", e.Result.Final)
	}
	f := e.Result.Final
	if f.TransmittedBytes == nil || f.RetransmittedBytes == nil || *f.TransmittedBytes-*f.RetransmittedBytes < 1<<20 {
		t.Errorf("sent %v, again %v, expected the payload once at least", f.TransmittedBytes, f.RetransmittedBytes)
	}
	if err := s.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if e := s.last(t); e.Event != contract.KindResult || len(e.Result.Paths) != 2 || e.Result.Paths[1].Bytes < two.Bytes {
		t.Errorf("of the server %+v", e)
	}
	if after := [2]string{pathManager(t, client), pathManager(t, server)}; after != before {
		t.Errorf("the namespaces have %q, expected %q as before", after, before)
	}
}

// TestMultipathOneRadioDown: the transfer goes on over the radio that is left.
func TestMultipathOneRadioDown(t *testing.T) {
	needRoot(t)
	t.Parallel()
	client, server := twoRadios(t, [2]uint64{4_000_000, 2_000_000})
	h := handle(t, client)
	l, err := h.LinkByName("radio1")
	if err != nil {
		t.Fatal(err)
	}
	serving(t, server, multipathParameters(contract.RoleServer, 3))
	t.Run("from the beginning", func(t *testing.T) {
		if err := h.LinkSetDown(l); err != nil {
			t.Fatal(err)
		}
		e := start(t, client, multipathParameters(contract.RoleClient, 1)).last(t)
		if e.Event != contract.KindResult || e.Result.Paths[0].Share != 1 || e.Result.Paths[1].Bytes != 0 {
			t.Errorf("%+v", e)
		}
	})
	t.Run("on the way", func(t *testing.T) {
		if err := h.LinkSetUp(l); err != nil {
			t.Fatal(err)
		}
		p := multipathParameters(contract.RoleClient, 1)
		p.Transfer.SizeBytes = 2 << 20
		d := start(t, client, p)
		for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
			far, err := h.LinkByName("radio1")
			if err != nil {
				t.Fatal(err)
			}
			if far.Attrs().Statistics.TxBytes > 150_000 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal("the second radio carries nothing")
			}
		}
		if err := h.LinkSetDown(l); err != nil {
			t.Fatal(err)
		}
		e := d.last(t)
		if e.Event != contract.KindResult || e.Result.Paths[1].Bytes < 10_000 || e.Result.Paths[0].Share < 0.5 {
			t.Errorf("%+v", e)
		}
	})
}

// TestMultipathKilled: a client that is killed stops sending, and what it has left is
// gone after the next one.
func TestMultipathKilled(t *testing.T) {
	needRoot(t)
	t.Parallel()
	client, server := twoRadios(t, [2]uint64{1_000_000, 1_000_000})
	before := pathManager(t, client)
	serving(t, server, multipathParameters(contract.RoleServer, 3))
	d := start(t, client, multipathParameters(contract.RoleClient, 1))
	h := handle(t, client)
	sent := func() uint64 {
		l, err := h.LinkByName("radio0")
		if err != nil {
			t.Fatal(err)
		}
		return l.Attrs().Statistics.TxBytes
	}
	for deadline := time.Now().Add(20 * time.Second); sent() < 60_000; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the client sends nothing")
		}
	}
	if err := d.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = d.Wait()
	if pathManager(t, client) == before {
		t.Error("the killed client has left nothing: this test tests nothing")
	}
	// What the interface's queue holds still goes out, 32 KiB at most; the socket held more.
	time.Sleep(400 * time.Millisecond)
	quiet := sent()
	time.Sleep(300 * time.Millisecond)
	if n := sent() - quiet; n > 3000 {
		t.Errorf("%d bytes went out long after the client was killed", n)
	}
	p := multipathParameters(contract.RoleClient, 1)
	p.Transfer.SizeBytes = 1000
	if e := start(t, client, p).last(t); e.Event != contract.KindResult {
		t.Errorf("%+v", e)
	}
	if after := pathManager(t, client); after != before {
		t.Errorf("the namespace has %q, expected %q", after, before)
	}
}

// TestMultipathFallback: a transfer that would be plain TCP's fails.
func TestMultipathFallback(t *testing.T) {
	needRoot(t)
	t.Parallel()
	client, server := twoRadios(t, [2]uint64{4_000_000, 4_000_000})
	plain := multipathParameters(contract.RoleServer, 3)
	plain.Options = nil
	serving(t, server, plain)
	e := start(t, client, multipathParameters(contract.RoleClient, 1)).last(t)
	if e.Event != contract.KindError || e.Code != contract.CodeProtocolViolation || !strings.Contains(e.Message, mptcp.ErrFallback.Error()) {
		t.Errorf("%+v", e)
	}
	// And the other way round: the server takes no plain connection.
	both := multipathParameters(contract.RoleServer, 3)
	both.Local.Port = 5002
	serving(t, server, both)
	p := multipathParameters(contract.RoleClient, 1)
	p.Options, p.Remote.Port = nil, 5002
	if e := start(t, client, p).last(t); e.Event != contract.KindError || e.Code != contract.CodeReset {
		t.Errorf("a plain client: %+v", e)
	}
}

// TestMultipathCongestion: all paths get the congestion control that was asked for, also
// one that is brought along. For a socket of Multipath TCP the kernel itself takes any
// name, and uses its default.
func TestMultipathCongestion(t *testing.T) {
	needRoot(t)
	t.Parallel()
	client, server := twoRadios(t, [2]uint64{4_000_000, 4_000_000})
	for i, name := range []string{"reno", "veno"} {
		s := multipathParameters(contract.RoleServer, 3)
		s.Local.Port = 5001 + i
		s.Options["congestion"] = name
		c := multipathParameters(contract.RoleClient, 1)
		c.Remote.Port = s.Local.Port
		c.Transfer.SizeBytes = 100_000
		c.Options["congestion"] = name
		if err := (socket.Settings{Options: map[string]any{"congestion": name}}).Try(); err != nil {
			t.Logf("%s cannot be had here: %v", name, err)
			continue
		}
		serving(t, server, s)
		if e := start(t, client, c).last(t); e.Event != contract.KindResult || e.Result.Info.Detail["congestion"] != name {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

// TestMultipathRefused: what holds for one path alone is refused with the reason, and
// a kernel without it is named.
func TestMultipathRefused(t *testing.T) {
	needRoot(t)
	t.Parallel()
	ns := newNamespace(t)
	for name, c := range map[string]struct {
		options map[string]any
		off     bool
		want    string
	}{
		"a route's metric": {map[string]any{"multipath": true, "initial_window": int64(3)}, false, "initial_window"},
		"a fixed window":   {map[string]any{"multipath": true, "congestion": "radio", "window": int64(3000)}, false, "window of one radio"},
		"no such control":  {map[string]any{"multipath": true, "congestion": "nosuch"}, false, `no congestion control "nosuch"`},
		"turned off":       {map[string]any{"multipath": true}, true, "net.mptcp.enabled=1"},
	} {
		p := &contract.Parameters{Role: contract.RoleClient, Options: c.options, Paths: multipathParameters(contract.RoleClient, 1).Paths}
		var err error
		if nerr := inside(ns, func() {
			value := "1"
			if c.off {
				value = "0"
			}
			if err = os.WriteFile("/proc/sys/net/mptcp/enabled", []byte(value), 0); err == nil {
				_, err = query(t.Context(), p)
			}
		}); nerr != nil {
			t.Fatal(nerr)
		}
		var f *harness.Failure
		if !errors.As(err, &f) || f.Code != contract.CodeUnsupported || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
