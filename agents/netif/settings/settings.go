// Package settings knows what of a radio's interface the values measured over it depend on and
// whoever may configure the network (CAP_NET_ADMIN) can change, a driver for those that
// follow it: transmit queue, segmentation offload and other features of the device, traffic
// control, eBPF programs, and the routes to other nodes. Comes in: an interface in the
// network namespace of the thread that calls. Goes out: what differs from an earlier
// moment, in the words of ip(8), tc(8) and ethtool(8), and the interface as it was.
package settings

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
)

// Of says whose settings are read.
type Of struct {
	Device string     // the radio's network interface
	From   netip.Addr // the radio's address
	To     []netip.Addr
}

// Settings are those of one interface at one moment.
type Settings struct {
	values   map[string]string // by their names, for people
	link     netlink.LinkAttrs
	objects  []object // of traffic control
	features map[string]bool
	routes   []route // over the interface; nil: they are not kept
}

// Change is a setting that is another one than it was.
type Change struct{ Name, Was, Is string }

func (c Change) String() string {
	return fmt.Sprintf("its %s was changed to %q and was %q", c.Name, c.Is, c.Was)
}

// Reader reads settings. It may be used by one goroutine at a time.
type Reader struct {
	netlink *netlink.Handle
	device  *ethtool.Ethtool // nil: features cannot be read
}

// NewReader returns a reader that uses a handle, which stays the caller's. Close it.
func NewReader(h *netlink.Handle) *Reader {
	r := &Reader{netlink: h}
	if device, err := ethtool.NewEthtool(); err == nil {
		r.device = device
	}
	return r
}

// Close ends the reader, not its handle.
func (r *Reader) Close() {
	if r.device != nil {
		r.device.Close()
	}
}

// Read reads the settings of an interface with these attributes. Those that cannot be read
// are left out.
func (r *Reader) Read(of *Of, a *netlink.LinkAttrs) *Settings {
	s := &Settings{link: *a, values: map[string]string{
		"transmit queue (txqueuelen)": fmt.Sprintf("%d packets", a.TxQLen),
		"segmentation offload":        fmt.Sprintf("gso_max_size %d, gso_max_segs %d, gro_max_size %d", a.GSOMaxSize, a.GSOMaxSegs, a.GROMaxSize),
	}}
	if objects, err := control(a.Index); err == nil {
		s.objects = objects
		for _, k := range []*kind{discipline, class, filter} {
			s.values[k.name] = wordAll(objects, k)
		}
	}
	if r.device != nil {
		if features, err := r.device.Features(of.Device); err == nil {
			s.features = features
			s.values[featuresName] = wordFeatures(features)
		}
	}
	if programs, known := programs(a); known {
		s.values["eBPF programs"] = programs
	}
	for _, to := range of.To {
		if attributes, ok := attributesTo(r.netlink, of.From, a.Index, to); ok {
			s.values["route to "+to.String()] = attributes
		}
	}
	return s
}

// Changed says what differs from the settings before, of those that are known of both.
func (s *Settings) Changed(before *Settings) (out []Change) {
	if s == nil || before == nil {
		return nil
	}
	for name, was := range before.values {
		if is, known := s.values[name]; known && is != was {
			c := Change{Name: name, Was: was, Is: is}
			if name == featuresName {
				c.Was, c.Is = differing(before.features, s.features)
			}
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b Change) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Keep keeps what [Reader.PutBack] needs beside the settings themselves: the routes over
// the interface as they are now. Of no settings nothing is kept.
func (s *Settings) Keep() {
	if s != nil && s.routes == nil {
		s.routes, _ = routesOver(s.link.Index) // without any, none is put back
	}
}

// PutBack makes an interface whose settings are these, of, again what it was before, as far
// as the kernel and the rights of the agent allow: who calls reads again. eBPF programs
// are left.
func (r *Reader) PutBack(of *Of, is, before *Settings) error {
	var failed []error
	link := &netlink.Device{LinkAttrs: is.link}
	for _, v := range []struct {
		is, was int
		set     func(netlink.Link, int) error
	}{
		{is.link.TxQLen, before.link.TxQLen, r.netlink.LinkSetTxQLen},
		{int(is.link.GSOMaxSize), int(before.link.GSOMaxSize), r.netlink.LinkSetGSOMaxSize},
		{int(is.link.GSOMaxSegs), int(before.link.GSOMaxSegs), r.netlink.LinkSetGSOMaxSegs},
		{int(is.link.GROMaxSize), int(before.link.GROMaxSize), r.netlink.LinkSetGROMaxSize},
	} {
		if v.is != v.was {
			failed = append(failed, v.set(link, v.was))
		}
	}
	if back := toChange(before.features, is.features); len(back) > 0 {
		failed = append(failed, r.device.Change(of.Device, back))
	}
	failed = append(failed, putBackControl(is.objects, before.objects), putBackRoutes(of, is.link.Index, before.routes))
	if err := errors.Join(failed...); err != nil {
		return fmt.Errorf("settings of %s: %w", of.Device, err)
	}
	return nil
}
