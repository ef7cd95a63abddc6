package settings

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
)

// featuresName names the features of a device, as ethtool(8) lists them with -k.
const featuresName = "features (ethtool -k)"

// followed is a feature that the kernel switches off when a node begins to forward
// packets, as container engines have it do.
const followed = "rx-lro"

// wordFeatures names those that are on.
func wordFeatures(all map[string]bool) string {
	var on []string
	for name, is := range all {
		if is && name != followed {
			on = append(on, name)
		}
	}
	slices.Sort(on)
	return strings.Join(on, " ")
}

// toChange are the features to set so that those that are become those that were.
func toChange(was, is map[string]bool) map[string]bool {
	out := map[string]bool{}
	for name, on := range was {
		if now, known := is[name]; known && now != on && name != followed {
			out[name] = on
		}
	}
	return out
}

// differing words only the features that differ, before and now.
func differing(before, now map[string]bool) (was, is string) {
	words := func(all map[string]bool, names []string) string {
		out := make([]string, len(names))
		for i, name := range names {
			state := "off"
			if all[name] {
				state = "on"
			}
			out[i] = name + " " + state
		}
		return strings.Join(out, ", ")
	}
	names := slices.Sorted(maps.Keys(toChange(before, now)))
	return words(before, names), words(now, names)
}

// attachments are where eBPF programs see the packets of an interface (tcx, Linux 6.6).
var attachments = []struct {
	name string
	at   ebpf.AttachType
}{{"ingress", ebpf.AttachTCXIngress}, {"egress", ebpf.AttachTCXEgress}}

// programs names the eBPF programs at an interface by their numbers in the kernel, beside
// those of traffic control's filters; not where this kernel or the agent's rights do not
// tell of any.
func programs(a *netlink.LinkAttrs) (words string, known bool) {
	var out []string
	if a.Xdp != nil && a.Xdp.Attached {
		out = append(out, fmt.Sprintf("XDP: program %d", a.Xdp.ProgId))
	}
	for _, where := range attachments {
		found, err := link.QueryPrograms(link.QueryOptions{Target: a.Index, Attach: where.at})
		if err != nil {
			return "", false
		}
		for _, p := range found.Programs {
			out = append(out, fmt.Sprintf("%s: program %d", where.name, p.ID))
		}
	}
	if len(out) == 0 {
		return "none", true
	}
	return strings.Join(out, ", "), true
}
