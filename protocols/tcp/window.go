package main

import (
	"math"
	"strings"

	"linktrial/protocols/contract"
	"linktrial/protocols/harness"
)

// fixedWindow is the prefix of the congestion controls whose window is the
// bandwidth-delay product from the first packet to the last: TCP-radio and
// TCP-radio-newRTO (decola-2006, tables 3 and 4). They take it, in bytes of
// packets, from the socket's mark.
const fixedWindow = "radio"

// window is the option's or the bandwidth-delay product, in bytes; 0 for other
// congestion controls and for servers, which send a byte or two.
func window(p *contract.Parameters) (int, error) {
	name, _ := p.Options["congestion"].(string)
	given, ok := p.Options["window"].(int64)
	if fixed := strings.HasPrefix(name, fixedWindow); ok && !fixed {
		return 0, harness.Unsupported("option window: congestion control %q sets its window itself", name)
	} else if p.Role != contract.RoleClient || !fixed {
		return 0, nil
	}
	if ok {
		return int(given), nil
	}
	if p.Link == nil {
		return 0, harness.Failf(contract.CodeBadParameters, "congestion control %q needs a window: set its option, or complete_knowledge for its treatment", name)
	}
	bytes := p.Link.RateBitsPerSecond / 8 * p.Link.RoundTripMS / 1e3
	return int(math.Ceil(min(max(bytes, 1), math.MaxInt32))), nil
}
