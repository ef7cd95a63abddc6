package settings

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// attributesTo are those of the route that packets from the radio's address to another
// node take; not where there is none over the radio.
func attributesTo(h *netlink.Handle, from netip.Addr, index int, to netip.Addr) (string, bool) {
	from = from.Unmap().WithZone("")
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

// route is a route as the kernel tells of it and takes it (rtnetlink(7)).
type route []byte

// tableLocal is the table of routes that follow from addresses.
const tableLocal = 255

// cacheInfo are the statistics of a route, which are none of its attributes.
const cacheInfo = 12 // RTA_CACHEINFO

// parseRoute returns a route and the interface that it leads to, 0 where it has several or
// none.
func parseRoute(message []byte) (r route, index int, err error) {
	if len(message) < unix.SizeofRtMsg {
		return nil, 0, fmt.Errorf("a route of %d bytes", len(message))
	}
	attributes, err := without(message[unix.SizeofRtMsg:], cacheInfo)
	if err != nil {
		return nil, 0, fmt.Errorf("a route: %w", err)
	}
	parsed, err := nl.ParseRouteAttr(attributes)
	if err != nil {
		return nil, 0, fmt.Errorf("a route: %w", err)
	}
	for _, a := range parsed {
		if a.Attr.Type == unix.RTA_OIF && len(a.Value) == 4 {
			index = int(binary.NativeEndian.Uint32(a.Value))
		}
	}
	head := nl.DeserializeRtMsg(message)
	head.Flags &= unix.RTNH_F_ONLINK // the others tell of the link at this moment
	return append(head.Serialize(), attributes...), index, nil
}

// routesOver are the unicast routes over an interface.
func routesOver(index int) (out []route, err error) {
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		request := nl.NewNetlinkRequest(unix.RTM_GETROUTE, unix.NLM_F_DUMP)
		request.AddData(&nl.RtMsg{RtMsg: unix.RtMsg{Family: family}})
		messages, err := request.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWROUTE)
		if err != nil {
			return nil, fmt.Errorf("routes: %w", err)
		}
		for _, m := range messages {
			r, at, err := parseRoute(m)
			if err != nil {
				return nil, err
			}
			if head := nl.DeserializeRtMsg(r); at == index && head.Type == unix.RTN_UNICAST && head.Table != tableLocal {
				out = append(out, r)
			}
		}
	}
	return out, nil
}

// taken is the route that packets from an address to another take, where it leads over an
// interface; nil: none does.
func taken(from, to netip.Addr, index int) (route, error) {
	from, to = from.Unmap().WithZone(""), to.Unmap()
	head := nl.RtMsg{RtMsg: unix.RtMsg{Family: unix.AF_INET, Dst_len: uint8(to.BitLen()), Src_len: uint8(from.BitLen()), Flags: unix.RTM_F_LOOKUP_TABLE | unix.RTM_F_FIB_MATCH}}
	if to.Is6() {
		head.Family = unix.AF_INET6
	}
	request := nl.NewNetlinkRequest(unix.RTM_GETROUTE, 0)
	request.AddData(&head)
	request.AddData(nl.NewRtAttr(unix.RTA_DST, to.AsSlice()))
	request.AddData(nl.NewRtAttr(unix.RTA_SRC, from.AsSlice()))
	messages, err := request.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWROUTE)
	if err != nil || len(messages) == 0 {
		return nil, err
	}
	r, at, err := parseRoute(messages[0])
	if err != nil || at != index {
		return nil, err
	}
	return r, nil
}

// strangers is how many routes to one node, each narrower than the next, are removed at
// the most.
const strangers = 8

// putBackRoutes makes the routes that packets to other nodes took over an interface again
// those that they took before. Others are left.
func putBackRoutes(of *Of, index int, before []route) error {
	if len(before) == 0 {
		return nil
	}
	is, err := routesOver(index)
	if err != nil {
		return err
	}
	was := func(r route) bool {
		return slices.ContainsFunc(before, func(b route) bool { return bytes.Equal(b, r) })
	}
	var failed []error
	for _, b := range before {
		if !slices.ContainsFunc(is, func(r route) bool { return bytes.Equal(b, r) }) {
			failed = append(failed, b.request(unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_REPLACE))
		}
	}
	for _, to := range of.To {
		for range strangers {
			r, err := taken(of.From, to, index)
			if err != nil || r == nil || was(r) {
				break // there is none over the radio: the watch says so
			}
			if err := r.request(unix.RTM_DELROUTE, 0); err != nil {
				failed = append(failed, err)
				break
			}
		}
	}
	return errors.Join(failed...)
}

func (r route) request(message, flags int) error {
	request := nl.NewNetlinkRequest(message, flags|unix.NLM_F_ACK)
	request.AddRawData(r)
	if _, err := request.Execute(unix.NETLINK_ROUTE, 0); err != nil {
		return fmt.Errorf("a route: %w", err)
	}
	return nil
}
