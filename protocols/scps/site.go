package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"linktrial/internal/namespace"
	"linktrial/internal/process"
	"linktrial/internal/scratch"
	"linktrial/protocols/contract"
	"linktrial/protocols/harness"
)

// site is a gateway in a namespace of its own, and the namespace before it in which
// the TCP connections are. Nothing of it is in the node's own namespace, and all of
// it vanishes with this process.
type site struct {
	lan, gateway *os.File // namespaces
	inner        netip.Addr
	wan          *os.File        // TUN device
	folder       *scratch.Folder // the gateway's working folder
	cmd          *exec.Cmd
	said         tail
	ended        chan struct{} // closed when the gateway has ended
}

// Interfaces and addresses, which only the namespaces have. The gateway lets through
// what is sent to its own addresses, so that connections have none of these.
const (
	lanDevice, lanPeer = "lan0", "lan1"
	wanDevice          = "wan0"
	lanGateway         = "10.97.0.1"
	wanAddress         = "10.96.0.1"
	commonTable        = 202 // routing table that the gateway fills last
)

// encapsulation is what UDP and IP add to each packet, in bytes.
const (
	encapsulation  = 28
	encapsulation6 = 48
	leastMTU       = 576
)

// gatewayPatience is how long the gateway may take until it takes connections.
const gatewayPatience = 10 * time.Second

// canMakeSite reports what this node lacks for the namespaces and the gateway.
func canMakeSite() error {
	for _, program := range []string{"iptables", "ip"} {
		if standInAllowed {
			break // it runs neither
		}
		if _, err := exec.LookPath(program); err != nil {
			return harness.Unsupported("the gateway of the SCPS reference implementation runs %s, which this node does not have: %w", program, err)
		}
	}
	ns, err := namespace.Unnamed()
	if err != nil {
		return harness.Unsupported("make a network namespace for the gateway (needs CAP_SYS_ADMIN): %w", err)
	}
	defer ns.Close()
	h, err := netlink.NewHandleAt(netns.NsHandle(ns.Fd()), unix.NETLINK_ROUTE)
	if err != nil {
		return harness.Unsupported("enter a network namespace of the gateway: %w", err)
	}
	defer h.Close()
	if err := h.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: lanDevice}, PeerName: lanPeer}); err != nil {
		return harness.Unsupported("make a pair of interfaces for the gateway (needs veth in the kernel): %w", err)
	}
	f, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0)
	if err != nil {
		return harness.Unsupported("make a TUN device for the gateway: %w", err)
	}
	f.Close()
	return nil
}

// newSite makes the namespaces and starts the gateway.
func newSite(ctx context.Context, p *contract.Parameters, b *build, inner netip.Addr) (s *site, err error) {
	s = &site{inner: inner, ended: make(chan struct{})}
	begun := s // what is returned with an error is nil
	defer func() {
		if err != nil {
			begun.close()
		}
	}()
	for _, ns := range []**os.File{&s.lan, &s.gateway} {
		if *ns, err = namespace.Unnamed(); err != nil {
			return nil, harness.Unsupported("make a network namespace for the gateway (needs CAP_SYS_ADMIN): %w", err)
		}
	}
	mtu, err := innerMTU(p)
	if err != nil {
		return nil, err
	}
	if err := s.connect(mtu); err != nil {
		return nil, fmt.Errorf("namespaces of the gateway: %w", err)
	}
	return s, s.start(ctx, p, b)
}

// innerMTU leaves room for the encapsulation within the radio's MTU.
func innerMTU(p *contract.Parameters) (int, error) {
	outer := 1500
	if p.Device != "" {
		i, err := net.InterfaceByName(p.Device)
		if err != nil {
			return 0, harness.Failf(contract.CodeUnreachable, "the radio's interface %s: %w", p.Device, err)
		}
		outer = min(outer, i.MTU)
	}
	inner := outer - encapsulation
	if a, err := netip.ParseAddr(p.Local.Address); err == nil && a.Unmap().Is6() {
		inner = outer - encapsulation6
	}
	if inner < leastMTU {
		return 0, harness.Unsupported("the MTU of %s is %d: with the encapsulation %d are left, and %d are needed", p.Device, outer, inner, leastMTU)
	}
	return inner, nil
}

func (s *site) connect(mtu int) error {
	for _, ns := range []*os.File{s.lan, s.gateway} {
		if err := process.InNamespace(path(ns), settings); err != nil {
			return err
		}
	}
	lan, err := netlink.NewHandleAt(netns.NsHandle(s.lan.Fd()), unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer lan.Close()
	gw, err := netlink.NewHandleAt(netns.NsHandle(s.gateway.Fd()), unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer gw.Close()
	veth := &netlink.Veth{LinkAttrs: netlink.NewLinkAttrs(), PeerName: lanPeer, PeerNamespace: netlink.NsFd(int(s.gateway.Fd()))}
	veth.Name, veth.MTU = lanDevice, mtu
	if err := lan.LinkAdd(veth); err != nil {
		return fmt.Errorf("veth: %w", err)
	}
	if err := process.InNamespace(path(s.gateway), func() (err error) {
		s.wan, err = openTUN(wanDevice)
		return err
	}); err != nil {
		return err
	}
	inner := s.inner.String()
	return errors.Join(
		device(lan, lanDevice, inner, 0, route{to: lanGateway}, route{via: lanGateway}),
		device(gw, lanPeer, lanGateway, mtu, route{to: inner}),
		device(gw, wanDevice, wanAddress, mtu, route{}))
}

// path is the file of a namespace that has no name.
func path(ns *os.File) string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), ns.Fd()) }

// settings makes a namespace forward, and send nothing by itself.
func settings() error {
	for name, value := range map[string]string{
		"ipv6/conf/all/disable_ipv6": "1", "ipv6/conf/default/disable_ipv6": "1",
		"ipv4/ip_forward": "1", "ipv4/conf/all/rp_filter": "0", "ipv4/conf/default/rp_filter": "0",
	} {
		err := os.WriteFile("/proc/sys/net/"+name, []byte(value), 0)
		if errors.Is(err, os.ErrNotExist) && strings.HasPrefix(name, "ipv6/") {
			continue // a kernel without IPv6
		}
		if err != nil {
			return harness.Unsupported("set net/%s in a namespace of the gateway: %w", name, err)
		}
	}
	return nil
}

// route leads to one address, or everywhere by another; its zero value everywhere.
type route struct{ to, via string }

// device brings an interface up with an address and routes.
func device(h *netlink.Handle, name, address string, mtu int, routes ...route) error {
	l, err := h.LinkByName(name)
	if err != nil {
		return fmt.Errorf("interface %s: %w", name, err)
	}
	if mtu > 0 {
		if err := h.LinkSetMTU(l, mtu); err != nil {
			return fmt.Errorf("MTU of %s: %w", name, err)
		}
	}
	if err := errors.Join(h.AddrAdd(l, &netlink.Addr{IPNet: host(address)}), h.LinkSetUp(l)); err != nil {
		return fmt.Errorf("interface %s: %w", name, err)
	}
	for _, r := range routes {
		n := &netlink.Route{LinkIndex: l.Attrs().Index, Dst: &net.IPNet{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)}}
		switch {
		case r.to != "":
			n.Dst, n.Scope = host(r.to), netlink.SCOPE_LINK
		case r.via != "":
			n.Gw = net.ParseIP(r.via)
		default:
			n.Scope = netlink.SCOPE_LINK
		}
		if err := h.RouteAdd(n); err != nil {
			return fmt.Errorf("route at %s: %w", name, err)
		}
	}
	return nil
}

func host(address string) *net.IPNet {
	return &net.IPNet{IP: net.ParseIP(address).To4(), Mask: net.CIDRMask(32, 32)}
}

func openTUN(name string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, harness.Unsupported("open /dev/net/tun: %w", err)
	}
	ifr, err := unix.NewIfreq(name)
	if err == nil {
		ifr.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make the TUN device %s: %w", name, err), unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), name), nil
}

// resources is the gateway's file of parameters. The side of the lan speaks plain
// TCP (AIF_TCPONLY), the one of the radio SCPS-TP.
func resources(p *contract.Parameters) []byte {
	var b bytes.Buffer
	line := func(name string, value any) { fmt.Fprintf(&b, "%s %v\n", name, value) }
	line("AIF_NAME", lanPeer)
	line("AIF_TUN_NAME", "lta")
	line("AIF_TCPONLY", 1)
	line("BIF_NAME", wanDevice)
	line("BIF_TUN_NAME", "ltb")
	line("C_TUN_NAME", "ltc")
	name, _ := p.Options["congestion"].(string)
	line("BIF_CC", map[string]int{"none": 0, "vj": 1, "vegas": 2}[name])
	if v, ok := p.Options["rate"].(int64); ok {
		line("BIF_RATE", v)
	}
	if v, ok := p.Options["buffer"].(int64); ok {
		line("BIF_BUF", v)
		line("BIF_RBUF", v)
	}
	return b.Bytes()
}

// start starts the gateway in its namespace and waits until it takes connections.
func (s *site) start(ctx context.Context, p *contract.Parameters, b *build) (err error) {
	if s.folder, err = scratch.New("linktrial-scps-"); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(s.folder.Path, "rfile"), resources(p), 0o600); err != nil {
		return err
	}
	s.cmd = exec.Command(b.path)
	s.cmd.Dir, s.cmd.Stdout, s.cmd.Stderr = s.folder.Path, &s.said, &s.said
	s.cmd.WaitDelay = time.Second
	if err := process.StartIn(s.cmd, path(s.gateway)); err != nil {
		return fmt.Errorf("start the gateway: %w", err)
	}
	go func() {
		_ = s.cmd.Wait() // how it ended does not matter, that it did is an error
		close(s.ended)
	}()
	h, err := netlink.NewHandleAt(netns.NsHandle(s.gateway.Fd()), unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer h.Close()
	limit := time.NewTimer(gatewayPatience)
	defer limit.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		routes, err := h.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Table: commonTable}, netlink.RT_FILTER_TABLE)
		if err != nil {
			return fmt.Errorf("routes of the gateway: %w", err)
		}
		if len(routes) > 0 {
			return nil
		}
		select {
		case <-s.ended:
			return harness.Failf(contract.CodeInternal, "the gateway ended as it began; it said: %s", s.said.String())
		case <-limit.C:
			return harness.Failf(contract.CodeInternal, "the gateway has made no route in table %s within %s, expected one when it takes connections; it said: %s", strconv.Itoa(commonTable), gatewayPatience, s.said.String())
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// close ends the gateway and removes everything.
func (s *site) close() {
	if s.cmd != nil && s.cmd.Process != nil {
		// In its namespace there is nothing to be put in order: it vanishes.
		_ = s.cmd.Process.Kill()
		<-s.ended
	}
	for _, f := range []*os.File{s.wan, s.lan, s.gateway} {
		if f != nil {
			f.Close()
		}
	}
	_ = s.folder.Remove() // what stays, the next process removes
}

// tail keeps the end of what the gateway prints.
type tail struct {
	mu sync.Mutex
	b  []byte
}

const tailBytes = 2000

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, b...)
	t.b = t.b[max(0, len(t.b)-tailBytes):]
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(string(t.b)), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], " | ")
}
