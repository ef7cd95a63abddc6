// Package livenesstest gives a test two network namespaces with a cable between
// them that can be pulled. Comes in: a test. Goes out: two networks.
package livenesstest

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"linktrial/internal/namespace"
	"linktrial/internal/process"
)

// Address of this side (RFC 5737's for documentation).
const Address = "192.0.2.1"

// Cable joins this side and the other.
type Cable struct {
	t    testing.TB
	side [2]string
}

var number atomic.Int32

// New connects two new namespaces, which are removed with the test. The test is skipped without root.
func New(t testing.TB) *Cable {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes network namespaces")
	}
	c := &Cable{t: t}
	n := number.Add(1)
	for i := range c.side {
		c.side[i] = fmt.Sprintf("ltcable-%d-%d-%d", os.Getpid(), n, i)
		t.Cleanup(func() { c.must(namespace.Remove(c.side[i])) })
		c.must(namespace.Make(c.side[i]))
	}
	other, err := netns.GetFromPath(namespace.Path(c.side[1]))
	c.must(err)
	defer other.Close()
	c.must(c.in(0, func() error {
		return netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "cable"}, PeerName: "cable", PeerNamespace: netlink.NsFd(other)})
	}))
	for i, address := range []string{Address + "/24", "192.0.2.2/24"} {
		c.must(c.in(i, func() error {
			l, err := netlink.LinkByName("cable")
			if err != nil {
				return err
			}
			a, err := netlink.ParseAddr(address)
			if err != nil {
				return err
			}
			return errors.Join(netlink.AddrAdd(l, a), netlink.LinkSetUp(l))
		}))
	}
	return c
}

func (c *Cable) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *Cable) in(side int, f func() error) error {
	return process.InNamespace(namespace.Path(c.side[side]), f)
}

// Here runs f on this side; what it opens stays there, goroutines do not.
func (c *Cable) Here(f func() error) error { return c.in(0, f) }

// There runs f on the other side.
func (c *Cable) There(f func() error) error { return c.in(1, f) }

// Pull unplugs the cable, or plugs it in again.
func (c *Cable) Pull(out bool) {
	c.t.Helper()
	c.must(c.There(func() error {
		l, err := netlink.LinkByName("cable")
		if err != nil {
			return err
		}
		if out {
			return netlink.LinkSetDown(l)
		}
		return netlink.LinkSetUp(l)
	}))
}
