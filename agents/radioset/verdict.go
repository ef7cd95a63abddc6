package radioset

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
)

// Kinds of interfaces.
const (
	kindWired    = "wired"
	kindUSB      = "usb"
	kindWireless = "wireless"
	kindVirtual  = "virtual"
	kindLoopback = "loopback"
)

// likely is the weight from which an interface looks like the radio's.
const likely = 3

// point is what speaks for an interface being the radio's, against it where the weight is
// negative. refuses: no radio is set up on the interface.
type point struct {
	weight  int
	refuses bool
	text    string
}

// Judge sets verdict and points of an interface from what else is known of it. radio: one
// was set up on it. The weight orders interfaces with the same verdict.
func Judge(i *linktrialv1.NodeInterface, radio bool) (weight int) {
	all := slices.Concat(againstUse(i, radio), aboutLink(i))
	if radio {
		all = append(all, point{10, false, "it was set up as a radio"})
	}
	// Those against first, the heaviest of each side before others.
	slices.SortStableFunc(all, func(a, b point) int {
		if (a.weight < 0) != (b.weight < 0) {
			return cmp.Compare(a.weight, b.weight)
		}
		return cmp.Compare(max(b.weight, -b.weight), max(a.weight, -a.weight))
	})
	i.Points, i.Verdict = nil, linktrialv1.InterfaceVerdict_INTERFACE_VERDICT_POSSIBLE
	for _, p := range all {
		weight += p.weight
		i.Points = append(i.Points, &linktrialv1.InterfacePoint{Against: p.weight < 0, Text: p.text})
	}
	switch {
	case slices.ContainsFunc(all, func(p point) bool { return p.refuses }):
		i.Verdict = linktrialv1.InterfaceVerdict_INTERFACE_VERDICT_REFUSED
	case weight >= likely:
		i.Verdict = linktrialv1.InterfaceVerdict_INTERFACE_VERDICT_LIKELY
	}
	return weight
}

// againstUse are the points about what else the interface is used for.
func againstUse(i *linktrialv1.NodeInterface, radio bool) (out []point) {
	if i.Kind == kindLoopback {
		return []point{{-100, true, "it is the loopback, which leads to this machine alone"}}
	}
	if i.Control {
		out = append(out, point{-50, true, "the way to the orchestrator goes over it: it is the control network"})
	}
	if i.ConfiguredBy != "" {
		out = append(out, point{-30, true, i.ConfiguredBy + " configures it"})
	}
	if i.DefaultRoute && !i.Control {
		out = append(out, point{-10, false, "this machine's default route goes over it"})
	}
	switch {
	case radio:
	case len(routable(i.Addresses)) > 0 && !i.Control:
		out = append(out, point{-2, false, "it has the address " + strings.Join(routable(i.Addresses), " and ")})
	case len(i.Addresses) == 0 || len(routable(i.Addresses)) == 0:
		out = append(out, point{2, false, "nothing else uses it: it has no address"})
	}
	return out
}

// aboutLink are the points about the interface itself.
func aboutLink(i *linktrialv1.NodeInterface) (out []point) {
	switch i.Kind {
	case kindUSB:
		out = append(out, point{2, false, "it is an adapter on USB, as radios often have"})
	case kindWired:
		out = append(out, point{1, false, "it is wired, as radios are"})
	case kindWireless:
		out = append(out, point{-3, false, "it is wireless, and radios are attached by cable"})
	case kindVirtual:
		out = append(out, point{-3, false, "it is virtual: no cable ends there"})
	case kindLoopback:
		return nil
	}
	switch {
	case !i.Up:
		out = append(out, point{-1, false, "it is down, so nobody knows whether something is connected"})
	case !i.Carrier:
		out = append(out, point{-3, false, "it has no carrier: nothing is connected, or that is off"})
	default:
		out = append(out, point{1, false, "it has a carrier: something is connected"})
	}
	if i.Carrier && i.SpeedMbit > 0 && i.SpeedMbit <= 100 {
		out = append(out, point{1, false, fmt.Sprintf("its speed is %d Mbit/s, as radios often have", i.SpeedMbit)})
	}
	if len(i.Neighbours) == 1 && !i.Control {
		out = append(out, point{1, false, "one neighbour answered there: " + i.Neighbours[0]})
	} else if len(i.Neighbours) > 3 {
		out = append(out, point{-1, false, fmt.Sprintf("%d neighbours answered there, as in an office network", len(i.Neighbours))})
	}
	return out
}

// routable are the addresses without link-local ones, which say nothing about use.
func routable(addresses []string) (out []string) {
	for _, a := range addresses {
		if !strings.HasPrefix(a, "fe80:") && !strings.HasPrefix(a, "169.254.") {
			out = append(out, a)
		}
	}
	return out
}

// order sorts interfaces, those first that look most like a radio's.
func order(all []*linktrialv1.NodeInterface, weight map[string]int) {
	slices.SortFunc(all, func(a, b *linktrialv1.NodeInterface) int {
		return cmp.Or(cmp.Compare(a.Verdict, b.Verdict), cmp.Compare(weight[b.Name], weight[a.Name]), cmp.Compare(a.Name, b.Name))
	})
}
