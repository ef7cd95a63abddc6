package main

import (
	"fmt"
	"net"
	"os"
	"slices"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"linktrial/internal/namespace"
	"linktrial/internal/process"
	"linktrial/protocols/contract"
)

// road is a client, a node on the way, and a server, joined by two veth pairs.
type road struct{ client, middle, server *os.File }

// The addresses of the four interfaces (RFC 5737).
const (
	clientEnd  = "192.0.2.1"
	middleNear = "192.0.2.254"
	middleFar  = "198.51.100.254"
	serverEnd  = "198.51.100.1"
)

// newRoad makes the namespaces; the node on the way forwards packets, so that the
// same way serves connections that are split and those that are not. Where
// bitsPerSecond is not 0, it sends no faster to the server.
func newRoad(tb testing.TB, bitsPerSecond uint64) *road {
	tb.Helper()
	must := func(err error) {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
	}
	r := &road{}
	handles := map[*os.File]*netlink.Handle{}
	for _, f := range []**os.File{&r.client, &r.middle, &r.server} {
		ns, err := namespace.Unnamed()
		must(err)
		tb.Cleanup(func() { _ = ns.Close() })
		h, err := netlink.NewHandleAt(netns.NsHandle(ns.Fd()))
		must(err)
		tb.Cleanup(h.Close)
		*f, handles[ns] = ns, h
	}
	address := func(h *netlink.Handle, name, ip string) netlink.Link {
		l, err := h.LinkByName(name)
		must(err)
		must(h.AddrAdd(l, &netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP(ip).To4(), Mask: net.CIDRMask(24, 32)}}))
		must(h.LinkSetUp(l))
		return l
	}
	middle := handles[r.middle]
	for _, end := range []struct {
		ns            *os.File
		name, ip, via string
	}{{r.client, "near", clientEnd, middleNear}, {r.server, "far", serverEnd, middleFar}} {
		veth := &netlink.Veth{LinkAttrs: netlink.NewLinkAttrs(), PeerName: "radio0", PeerNamespace: netlink.NsFd(int(end.ns.Fd()))}
		veth.Name = end.name
		must(middle.LinkAdd(veth))
		address(handles[end.ns], "radio0", end.ip)
		l := address(middle, end.name, end.via)
		must(handles[end.ns].RouteAdd(&netlink.Route{Gw: net.ParseIP(end.via)}))
		if end.ns == r.server && bitsPerSecond > 0 {
			must(middle.QdiscAdd(&netlink.Tbf{
				QdiscAttrs: netlink.QdiscAttrs{LinkIndex: l.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
				Rate:       bitsPerSecond / 8, Limit: 256 << 10, Buffer: 128 << 10,
			}))
		}
	}
	must(process.InNamespace(fmt.Sprintf("/proc/self/fd/%d", r.middle.Fd()), func() error {
		return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0)
	}))
	return r
}

// throughputs carries payloads past the node on the way and through a relay there,
// in turns, and returns the medians in bytes a second.
func (r *road) throughputs(tb testing.TB, split, tcp string, size int64, times int) (routed, relayed float64) {
	tb.Helper()
	server := contract.Endpoint{Address: serverEnd, Port: 7001}
	middle := contract.Endpoint{Address: middleNear, Port: 7002}
	start(tb, r.server, tcp, &contract.Parameters{Role: contract.RoleServer, Local: server})
	start(tb, r.middle, split, &contract.Parameters{Role: contract.RoleRelay, Local: middle, Remote: server})
	var a, b []float64
	for i := range times {
		a = append(a, float64(size)/seconds(transfer(tb, r.client, tcp, server, size, 2*i)).Seconds())
		b = append(b, float64(size)/seconds(transfer(tb, r.client, tcp, middle, size, 2*i+1)).Seconds())
	}
	slices.Sort(a)
	slices.Sort(b)
	return a[times/2], b[times/2]
}

// BenchmarkSplit compares a transfer through a relay with one that the relay's
// node forwards, in the same run: over a clean link of 100 Mbit/s and of 1 Gbit/s,
// and as fast as the processors allow.
func BenchmarkSplit(b *testing.B) {
	split, tcp := programs(b)
	for _, link := range []struct {
		name          string
		bitsPerSecond uint64
		size          int64
	}{{"100Mbit", 100_000_000, 16 << 20}, {"1Gbit", 1_000_000_000, 128 << 20}, {"unlimited", 0, 512 << 20}} {
		b.Run(link.name, func(b *testing.B) {
			for b.Loop() {
				routed, relayed := newRoad(b, link.bitsPerSecond).throughputs(b, split, tcp, link.size, 7)
				b.ReportMetric(routed*8/1e6, "routed-Mbit/s")
				b.ReportMetric(relayed*8/1e6, "split-Mbit/s")
				b.ReportMetric(100*(1-relayed/routed), "%cost")
			}
		})
	}
}
