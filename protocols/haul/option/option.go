// Package option reads the options that a plan gives to haul. Comes in: options
// by their names in a plan, and what the plan lets the protocol know of the
// radio; goes out: [haul.Options]. It is what the drivers of haul and of split
// connections have in common.
package option

import (
	"encoding/hex"
	"time"

	"linktrial/protocols/contract"
	"linktrial/protocols/harness"
	"linktrial/protocols/haul"
)

// Implementation is the version of the protocol, which both ends have to have.
const Implementation = "haul 1"

// Read takes encryption, key, coding, ecn, packet, send_queue and
// receive_buffer, each where it is there, with the type that a manifest gives it;
// prefix stands before their names. The device is none of them: the address is the radio's (driver contract, P10).
func Read(values map[string]any, prefix string, link *contract.Link) (haul.Options, error) {
	var o haul.Options
	if s, _ := values[prefix+"encryption"].(string); s == "plain" {
		o.Plain = true
	}
	if s, _ := values[prefix+"key"].(string); s != "" {
		k, err := hex.DecodeString(s)
		if err != nil || len(k) != 32 {
			return o, harness.Failf(contract.CodeBadParameters, "options.%skey has %d characters, expected 64 hexadecimal digits", prefix, len(s))
		}
		if o.Plain {
			return o, harness.Failf(contract.CodeBadParameters, "options.%[1]skey is set, expected none with %[1]sencryption: plain", prefix)
		}
		o.Key = k
	}
	if on, ok := values[prefix+"coding"].(bool); ok {
		o.NoCoding = !on
	}
	if on, ok := values[prefix+"ecn"].(bool); ok {
		o.NoECN = !on
	}
	o.Packet = size(values, prefix+"packet")
	o.Queue = size(values, prefix+"send_queue")
	o.Buffer = size(values, prefix+"receive_buffer")
	if l := link; l != nil {
		o.Link = haul.Link{
			Rate: float64(l.RateBitsPerSecond) / 8,
			RTT:  time.Duration(l.RoundTripMS * float64(time.Millisecond)),
			MTU:  l.MTUBytes,
			Loss: min(max(l.LossShare, 0), 0.95),
		}
	}
	return o, nil
}

// size is an option's number of bytes, 0 where the plan says nothing.
func size(values map[string]any, name string) int {
	n, _ := values[name].(int64)
	return int(n)
}
