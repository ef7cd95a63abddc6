package main

import (
	"net"
	"os"
	"runtime"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// silentNamespace is a network in which everything is routed and nobody
// answers: a TUN device that no program reads. It vanishes with its file.
func silentNamespace(t *testing.T) *os.File {
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
			m.f, m.err = os.Open("/proc/thread-self/ns/net")
		}
		ch <- m
	}()
	m := <-ch
	if m.err != nil {
		t.Fatal(m.err)
	}
	t.Cleanup(func() { m.f.Close() })
	h, err := netlink.NewHandleAt(netns.NsHandle(m.f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	link := &netlink.Tuntap{LinkAttrs: netlink.LinkAttrs{Name: "silent"}, Mode: netlink.TUNTAP_MODE_TUN}
	if err := inside(m.f, func() { err = netlink.LinkAdd(link) }); err != nil {
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
	return m.f
}
