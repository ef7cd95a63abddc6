package netif

import (
	"fmt"
	"hash/fnv"
	"net/netip"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// settings are those of the node on which the figures over a radio depend and which
// whoever has CAP_NET_ADMIN can change, a driver for those that follow it: by name, as
// people and ip(8) and tc(8) word them.
type settings map[string]string

// readSettings reads those of a radio whose interface is this one.
func readSettings(h *netlink.Handle, r *Radio, a *netlink.LinkAttrs) settings {
	s := settings{
		"transmit queue (txqueuelen)": fmt.Sprintf("%d packets", a.TxQLen),
		"segmentation offload":        fmt.Sprintf("gso_max_size %d, gso_max_segs %d, gro_max_size %d", a.GSOMaxSize, a.GSOMaxSegs, a.GROMaxSize),
	}
	if q, err := disciplines(a.Index); err == nil {
		s["queueing discipline (tc qdisc)"] = q
	}
	for _, to := range slices.Concat(r.Peers, r.Near) {
		if attributes, ok := routeAttributes(h, r, a.Index, to); ok {
			s["route to "+to.String()] = attributes
		}
	}
	return s
}

// changed says what differs from the settings before, of those that are known of both;
// empty: nothing.
func (s settings) changed(before settings) (out []string) {
	for name, was := range before {
		if is, known := s[name]; known && is != was {
			out = append(out, fmt.Sprintf("its %s was changed to %q and was %q: put it back", name, is, was))
		}
	}
	slices.Sort(out)
	return out
}

// routeAttributes are those of the route that packets from the radio's address to another
// node take; not where there is none over the radio.
func routeAttributes(h *netlink.Handle, r *Radio, index int, to netip.Addr) (string, bool) {
	if to = to.Unmap(); !routed(r, to) {
		return "", false
	}
	from := r.Address.Unmap().WithZone("")
	found, err := h.RouteGetWithOptions(to.AsSlice(), &netlink.RouteGetOptions{SrcAddr: from.AsSlice(), FIBMatch: true})
	if err != nil || len(found) == 0 || found[0].LinkIndex != index {
		return "", false
	}
	f := &found[0]
	var out []string
	for _, v := range []struct {
		name  string
		value int
	}{
		{"mtu", f.MTU}, {"window", f.Window}, {"rtt", f.Rtt}, {"rttvar", f.RttVar}, {"ssthresh", f.Ssthresh}, {"cwnd", f.Cwnd}, {"advmss", f.AdvMSS},
		{"reordering", f.Reordering}, {"hoplimit", f.Hoplimit}, {"initcwnd", f.InitCwnd}, {"features", f.Features}, {"rto_min", f.RtoMin},
		{"initrwnd", f.InitRwnd}, {"quickack", f.QuickACK}, {"fastopen_no_cookie", f.FastOpenNoCookie},
	} {
		if v.value != 0 {
			out = append(out, fmt.Sprintf("%s %d", v.name, v.value))
		}
	}
	if f.MTULock || f.RtoMinLock {
		out = append(out, "lock")
	}
	if f.Congctl != "" {
		out = append(out, "congctl "+f.Congctl)
	}
	if len(out) == 0 {
		return "no attributes", true
	}
	return strings.Join(out, " "), true
}

// disciplines are the queueing disciplines of an interface. Their options are told apart,
// not worded.
func disciplines(index int) (string, error) {
	request := nl.NewNetlinkRequest(unix.RTM_GETQDISC, unix.NLM_F_DUMP)
	request.AddData(&nl.TcMsg{Family: nl.FAMILY_ALL, Ifindex: int32(index)})
	messages, err := request.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWQDISC)
	if err != nil {
		return "", err
	}
	var out []string
	for _, m := range messages {
		head := nl.DeserializeTcMsg(m)
		if head.Ifindex != int32(index) {
			continue
		}
		attributes, err := nl.ParseRouteAttr(m[head.Len():])
		if err != nil {
			return "", err
		}
		kind, options := "", fnv.New32a()
		for _, a := range attributes {
			switch a.Attr.Type {
			case nl.TCA_KIND:
				kind = unix.ByteSliceToString(a.Value)
			case nl.TCA_OPTIONS:
				_, _ = options.Write(a.Value) // never fails
			}
		}
		out = append(out, fmt.Sprintf("%s %x: parent %x, options %08x", kind, head.Handle>>16, head.Parent, options.Sum32()))
	}
	slices.Sort(out)
	return strings.Join(out, "; "), nil
}
