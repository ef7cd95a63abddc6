package main

import (
	"net"
	"net/netip"
	"os"
	"runtime"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// silentNamespace is a network in which everything is routed and no host
// answers: a TUN device that no program reads. It vanishes with its file.
func silentNamespace(t *testing.T) *os.File {
	t.Helper()
	ns := newNamespace(t)
	h, err := netlink.NewHandleAt(netns.NsHandle(ns.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	link := &netlink.Tuntap{LinkAttrs: netlink.LinkAttrs{Name: "silent"}, Mode: netlink.TUNTAP_MODE_TUN}
	if err := inside(ns, func() { err = netlink.LinkAdd(link) }); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	l, err := h.LinkByName("silent")
	if err != nil {
		t.Fatal(err)
	}
	if err := h.AddrAdd(l, &netlink.Addr{IPNet: &net.IPNet{IP: net.IPv4(192, 0, 2, 1).To4(), Mask: net.CIDRMask(24, 32)}}); err != nil {
		t.Fatal(err)
	}
	if err := h.LinkSetUp(l); err != nil {
		t.Fatal(err)
	}
	return ns
}

// newNamespace is a network namespace with nothing in it but two SYN retries.
func newNamespace(t *testing.T) *os.File {
	t.Helper()
	type made struct {
		f   *os.File
		err error
	}
	ch := make(chan made)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		var m made
		if m.err = unix.Unshare(unix.CLONE_NEWNET); m.err == nil {
			m.err = os.WriteFile("/proc/sys/net/ipv4/tcp_syn_retries", []byte("1"), 0)
		}
		if m.err == nil {
			// Addresses are there at once.
			m.err = os.WriteFile("/proc/sys/net/ipv6/conf/default/accept_dad", []byte("0"), 0)
		}
		if m.err == nil {
			m.f, m.err = os.Open("/proc/thread-self/ns/net")
		}
		ch <- m
	}()
	m := <-ch
	if m.err != nil {
		t.Fatal(m.err)
	}
	t.Cleanup(func() { m.f.Close() })
	return m.f
}

// The ends of a joined pair (RFC 5737 and RFC 3849: documentation).
var (
	clientAddress = netip.MustParseAddr("192.0.2.1")
	clientGateway = netip.MustParseAddr("192.0.2.254")
	serverAddress = netip.MustParseAddr("198.51.100.2")
	serverGateway = netip.MustParseAddr("198.51.100.254")
	client6       = netip.MustParseAddr("2001:db8::1")
	server6       = netip.MustParseAddr("2001:db8::2")
)

// joined are two namespaces with a wire between, radio0 at both ends. Of IPv4
// they are in different networks, each the other's gateway.
func joined(t *testing.T) (client, server *os.File) {
	t.Helper()
	client, server = newNamespace(t), newNamespace(t)
	c, s := handle(t, client), handle(t, server)
	veth := &netlink.Veth{LinkAttrs: netlink.NewLinkAttrs(), PeerName: "radio0", PeerNamespace: netlink.NsFd(int(server.Fd()))}
	veth.Name = "radio0"
	if err := c.LinkAdd(veth); err != nil {
		t.Fatal(err)
	}
	for _, end := range []struct {
		h                                   *netlink.Handle
		own, own6, far, gateway, gatewayFor netip.Addr
	}{
		{c, clientAddress, client6, serverAddress, clientGateway, serverGateway},
		{s, serverAddress, server6, clientAddress, serverGateway, clientGateway},
	} {
		l, err := end.h.LinkByName("radio0")
		if err != nil {
			t.Fatal(err)
		}
		wide := &net.IPNet{IP: end.own6.AsSlice(), Mask: net.CIDRMask(64, 128)}
		for _, a := range []*netlink.Addr{
			{IPNet: &net.IPNet{IP: end.own.AsSlice(), Mask: net.CIDRMask(24, 32)}},
			{IPNet: wide, Flags: unix.IFA_F_NODAD},
			{IPNet: host(end.gatewayFor)},
		} {
			if err := end.h.AddrAdd(l, a); err != nil {
				t.Fatal(err)
			}
		}
		if err := end.h.LinkSetUp(l); err != nil {
			t.Fatal(err)
		}
		if err := end.h.RouteAdd(&netlink.Route{Dst: host(end.far), Gw: end.gateway.AsSlice(), MTU: 1400}); err != nil {
			t.Fatal(err)
		}
	}
	return client, server
}

func handle(t *testing.T, ns *os.File) *netlink.Handle {
	t.Helper()
	h, err := netlink.NewHandleAt(netns.NsHandle(ns.Fd()), unix.NETLINK_ROUTE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}
