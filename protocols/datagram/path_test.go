package datagram

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"linktrial/internal/namespace"
	"linktrial/internal/process"
)

// joined are two network namespaces with a cable between, of the given MTU:
// 192.0.2.1 and 2001:db8::1, and .2 and ::2.
func joined(t *testing.T, mtu int) (paths [2]string, handles [2]*netlink.Handle) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes network namespaces")
	}
	var files [2]*os.File
	for i := range files {
		f, err := namespace.Unnamed()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		files[i], paths[i] = f, fmt.Sprintf("/proc/self/fd/%d", f.Fd())
		if handles[i], err = netlink.NewHandleAt(netns.NsHandle(f.Fd()), unix.NETLINK_ROUTE); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(handles[i].Close)
		// Without ::1, Go takes the machine for one of IPv4 only.
		lo, err := handles[i].LinkByName("lo")
		if err == nil {
			err = handles[i].LinkSetUp(lo)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	veth := &netlink.Veth{LinkAttrs: netlink.NewLinkAttrs(), PeerName: "radio0", PeerNamespace: netlink.NsFd(int(files[1].Fd()))}
	veth.Name, veth.MTU = "radio0", mtu
	if err := handles[0].LinkAdd(veth); err != nil {
		t.Fatal(err)
	}
	for i, h := range handles {
		l, err := h.LinkByName("radio0")
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range []*netlink.Addr{
			{IPNet: &net.IPNet{IP: net.IPv4(192, 0, 2, byte(i+1)).To4(), Mask: net.CIDRMask(24, 32)}},
			{IPNet: &net.IPNet{IP: netip.MustParseAddr(fmt.Sprintf("2001:db8::%d", i+1)).AsSlice(), Mask: net.CIDRMask(64, 128)}, Flags: unix.IFA_F_NODAD},
		} {
			if a.IP.To4() == nil && !hasIPv6() {
				continue
			}
			if err := h.AddrAdd(l, a); err != nil {
				t.Fatal(err)
			}
		}
		if err := h.LinkSetUp(l); err != nil {
			t.Fatal(err)
		}
	}
	return paths, handles
}

func openIn(t *testing.T, path string, c Config) *Socket {
	t.Helper()
	var s *Socket
	err := process.InNamespace(path, func() (err error) { s, err = Open(c); return err })
	if errors.Is(err, unix.EAFNOSUPPORT) && !hasIPv6() {
		t.Skip("the kernel has no IPv6")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// Over a network device: large packets are refused and named, the others arrive;
// the MTU is the device's, and then that of the route.
func TestMTU(t *testing.T) {
	paths, handles := joined(t, 1400)
	for _, a := range []struct{ server, client string }{{"192.0.2.2", "192.0.2.1"}, {"2001:db8::2", "2001:db8::1"}} {
		header := 28
		if a.server != "192.0.2.2" {
			header = 48
		}
		server := openIn(t, paths[1], Config{Local: netip.AddrPortFrom(netip.MustParseAddr(a.server), 0)})
		for name, c := range map[string]Config{"connected": {Remote: server.Local()}, "device": {Device: "radio0"}, "address": {Local: netip.AddrPortFrom(netip.MustParseAddr(a.client), 0)}} {
			t.Run(a.server+" "+name, func(t *testing.T) {
				client := openIn(t, paths[0], c)
				var mtu int
				err := process.InNamespace(paths[0], func() error { mtu = client.MTU(); return nil })
				if err != nil || mtu != 1400 {
					t.Errorf("MTU is %d, expected 1400, %v", mtu, err)
				}
				var batch []Packet
				var want, refused []int
				for i, size := range []int{1401, 1401, 1400, 1400, 1400, 1000, 1500, 1500, 1500, 1399, 1401, 1400} {
					p := Packet{Data: content(i, size-header)}
					if name != "connected" {
						p.Addr = server.Local()
					}
					if batch = append(batch, p); size > 1400 {
						refused = append(refused, i)
					} else {
						want = append(want, i)
					}
				}
				gso := client.writer.gso
				n, err := client.Write(batch)
				var size *SizeError
				if n != len(batch) || !errors.As(err, &size) || !errors.Is(err, unix.EMSGSIZE) || !slices.Equal(size.Refused, refused) {
					t.Fatalf("wrote %d packets: %v; expected that %v are refused", n, err, refused)
				}
				if client.writer.gso != gso {
					t.Error("messages of several packets were given up for packets that are too large")
				}
				for i, p := range receive(t, server, len(want), 64, 1500) {
					if !bytes.Equal(p.Data, batch[want[i]].Data) {
						t.Errorf("packet %d has %d bytes, expected %d", i, len(p.Data), len(batch[want[i]].Data))
					}
				}
			})
		}
	}
	client := openIn(t, paths[0], Config{Remote: netip.MustParseAddrPort("192.0.2.2:9")})
	l, err := handles[0].LinkByName("radio0")
	if err != nil {
		t.Fatal(err)
	}
	route := &netlink.Route{LinkIndex: l.Attrs().Index, Dst: &net.IPNet{IP: net.IPv4(192, 0, 2, 2).To4(), Mask: net.CIDRMask(32, 32)}, MTU: 1280, Scope: unix.RT_SCOPE_LINK}
	if err := handles[0].RouteAdd(route); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Write([]Packet{{Data: make([]byte, 10)}}); err != nil { // looks the route up again
		t.Fatal(err)
	}
	if got := client.MTU(); got != 1280 {
		t.Errorf("MTU is %d after the route's became 1280", got)
	}
}

// A router reports that a packet is too large for the link behind it: the MTU is
// that link's then, and neither reading nor writing is disturbed.
func TestMTUOfThePath(t *testing.T) {
	client, server := routed(t, 1300)
	batch := []Packet{{Data: make([]byte, 1372)}}
	for end := time.Now().Add(20 * time.Second); client.MTU() != 1300; {
		if n, err := client.Write(batch); n != 1 || err != nil {
			t.Fatalf("packet for the path: %d, %v", n, err)
		}
		if time.Now().After(end) {
			t.Fatalf("MTU is %d, expected 1300", client.MTU())
		}
	}
	gso := client.writer.gso
	for _, size := range []int{1272, 20} {
		// The report waits in the socket for who asks next: now Write.
		if n, err := client.Write(slices.Repeat([]Packet{{Data: make([]byte, size)}}, 70)); n != 70 || err != nil {
			t.Fatalf("packets of %d bytes after the report: %d, %v", size, n, err)
		}
		for _, p := range receive(t, server, 70, 64, 1500) {
			if len(p.Data) != size {
				t.Errorf("a packet of %d bytes arrived, expected %d", len(p.Data), size)
			}
		}
	}
	if client.writer.gso != gso {
		t.Error("messages of several packets were given up for a report from the path")
	}
	// Another report, and now Read asks.
	if n, err := client.Write(batch); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if _, err := server.Write([]Packet{{Data: []byte("answer"), Addr: client.Local()}}); err != nil {
		t.Fatal(err)
	}
	if p := receive(t, client, 1, 1, 100); string(p[0].Data) != "answer" {
		t.Errorf("read %q", p[0].Data)
	}
}

// routed are sockets in two network namespaces with a router between; the link
// behind the router has another MTU.
func routed(t *testing.T, mtu int) (client, server *Socket) {
	t.Helper()
	paths, handles := joined(t, 1500) // the client and the router
	behind, err := namespace.Unnamed()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { behind.Close() })
	path := fmt.Sprintf("/proc/self/fd/%d", behind.Fd())
	h, err := netlink.NewHandleAt(netns.NsHandle(behind.Fd()), unix.NETLINK_ROUTE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	veth := &netlink.Veth{LinkAttrs: netlink.NewLinkAttrs(), PeerName: "radio1", PeerNamespace: netlink.NsFd(int(behind.Fd()))}
	veth.Name, veth.MTU = "radio1", mtu
	if err := handles[1].LinkAdd(veth); err != nil {
		t.Fatal(err)
	}
	for i, h := range []*netlink.Handle{handles[1], h} {
		l, err := h.LinkByName("radio1")
		if err == nil {
			err = h.AddrAdd(l, &netlink.Addr{IPNet: &net.IPNet{IP: net.IPv4(198, 51, 100, byte(i+1)).To4(), Mask: net.CIDRMask(24, 32)}})
		}
		if err == nil {
			err = h.LinkSetUp(l)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range []struct {
		h       *netlink.Handle
		gateway net.IP
	}{{handles[0], net.IPv4(192, 0, 2, 2)}, {h, net.IPv4(198, 51, 100, 1)}} {
		if err := r.h.RouteAdd(&netlink.Route{Dst: &net.IPNet{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)}, Gw: r.gateway.To4()}); err != nil {
			t.Fatal(err)
		}
	}
	err = process.InNamespace(paths[1], func() error { return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0) })
	if err != nil {
		t.Fatal(err)
	}
	server = openIn(t, path, Config{Local: netip.MustParseAddrPort("198.51.100.2:0")})
	return openIn(t, paths[0], Config{Remote: server.Local()}), server
}

// Marks and large batches over a network device, which splits messages of
// several packets and joins packets to such.
func TestDevice(t *testing.T) {
	paths, _ := joined(t, 1500)
	for _, address := range []string{"192.0.2.2", "2001:db8::2"} {
		offloads(t, func(t *testing.T, gso, gro bool) {
			server := openIn(t, paths[1], Config{Local: netip.AddrPortFrom(netip.MustParseAddr(address), 0), ReadBuffer: 8 << 20})
			server.without(t, gso, gro)
			client := openIn(t, paths[0], Config{Remote: server.Local(), Device: "radio0"})
			client.without(t, gso, gro)
			// Until the neighbour's address is resolved, the kernel keeps few packets.
			if _, err := client.Write([]Packet{{Data: []byte("first")}}); err != nil {
				t.Fatal(err)
			}
			receive(t, server, 1, 1, 1500)
			for mark := range uint8(4) {
				batch := make([]Packet, 300)
				for i := range batch {
					batch[i] = Packet{Data: content(i, 1300), ECN: mark}
				}
				batch[299].Data = batch[299].Data[:7]
				if n, err := client.Write(batch); n != len(batch) || err != nil {
					t.Fatalf("wrote %d packets: %v", n, err)
				}
				for i, p := range receive(t, server, len(batch), 64, 1500) {
					if !bytes.Equal(p.Data, batch[i].Data) || p.ECN != mark {
						t.Fatalf("packet %d has %d bytes and mark %d, expected %d and %d", i, len(p.Data), p.ECN, len(batch[i].Data), mark)
					}
				}
			}
		})
	}
	if address, err := netip.ParseAddr("192.0.3.9"); err == nil {
		err = process.InNamespace(paths[0], func() error {
			s, err := Open(Config{Remote: netip.AddrPortFrom(address, 9)})
			if err == nil {
				s.Close()
			}
			return err
		})
		if !errors.Is(err, unix.ENETUNREACH) {
			t.Errorf("open to an address without a route: %v", err)
		}
	}
}
