package preflight

import (
	"context"
	"fmt"
	"time"

	"github.com/vishvananda/netlink"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/internal/backoff"
	"linktrial/internal/checkkind"
)

var trafficCheck = nodeCheck{checkkind.Traffic, func(ctx context.Context, c Config, w *linktrialv1.PreflightRequest) []*linktrialv1.Check {
	return c.checkTraffic(ctx)
}, true}

// checkTraffic counts whether anything else uses the radios, all of them at once.
func (c Config) checkTraffic(ctx context.Context) (out []*linktrialv1.Check) {
	each := c.each()
	before := make([]traffic, len(each))
	some := false
	began := time.Now()
	for i := range each {
		before[i] = countTraffic(each[i].Device)
		some = some || before[i].known
	}
	if some {
		backoff.Sleep(ctx, checkkind.ListenFor)
	}
	for i := range each {
		now, b := countTraffic(each[i].Device), before[i]
		if !now.known || !b.known {
			out = append(out, judgeTraffic(each[i].Device, 0, 0, 0))
			continue
		}
		out = append(out, judgeTraffic(each[i].Device, now.packets-b.packets, now.bytes-b.bytes, time.Since(began)))
	}
	return out
}

// traffic is what an interface has counted since it exists.
type traffic struct {
	packets, bytes uint64
	known          bool
}

func countTraffic(device string) traffic {
	l, err := netlink.LinkByName(device)
	if err != nil || l.Attrs().Statistics == nil {
		return traffic{}
	}
	s := l.Attrs().Statistics
	return traffic{s.RxPackets + s.TxPackets, s.RxBytes + s.TxBytes, true}
}

// judgeTraffic judges what an interface counted in a time; 0: nothing could be counted.
func judgeTraffic(device string, packets, bytes uint64, in time.Duration) *linktrialv1.Check {
	check := &linktrialv1.Check{State: ok, Expected: "nothing on " + device + " while no trial runs",
		Meaning: "other traffic takes airtime from the trials, and more from one than from another",
		Remedy:  fmt.Sprintf("find what it is ('tcpdump -n -i %s' on the node) and stop it: name and time services, updates, a control link that shares the radio (then say so in the plan: control: in-band)", device)}
	if in <= 0 {
		check.State, check.Found, check.Remedy = unknown, "the interface's counters cannot be read", "see the check of the radio's interface"
		return check
	}
	check.Found = fmt.Sprintf("%d packets, %d bytes in %.1f s", packets, bytes, in.Seconds())
	perSecond := func(n uint64) float64 { return float64(n) / in.Seconds() }
	switch {
	case packets == 0:
		check.Found = fmt.Sprintf("nothing in %.1f s", in.Seconds())
	case perSecond(packets) > checkkind.MaxIdlePackets || perSecond(bytes) > checkkind.MaxIdleBytes:
		check.State = failed
	default:
		check.State = warning
	}
	return check
}
