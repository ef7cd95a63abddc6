package fleet

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/internal/checkkind"
	"linktrial/internal/radio"
	"linktrial/orchestrator/campaign/nodes"
)

// EncodeProfile encodes a radio's profile for an agent, nil for none.
func EncodeProfile(p *radio.Profile) ([]byte, error) {
	if p == nil {
		return nil, nil
	}
	b, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("profile of radio %s: %w", p.Name, err)
	}
	return b, nil
}

// mtuOf returns the MTU of a radio in bytes, 0 where its profile has none.
func mtuOf(p *radio.Profile) int32 {
	switch {
	case p.Attach != nil && p.Attach.MTUBytes > 0:
		return int32(p.Attach.MTUBytes)
	case p.Emulation != nil:
		return int32(p.Emulation.MTUBytes)
	}
	return 0
}

// channels checks whether other radios may transmit on the frequencies of those
// of the nodes. Emulated radios are not on the air.
func (f *Fleet) channels(own, all []nodes.Node) []*linktrialv1.Check {
	var out []*linktrialv1.Check
	for i := range own {
		n := &own[i]
		if n.Emulated || n.Virtual {
			continue
		}
		c := &linktrialv1.Check{Node: n.Name, Kind: checkkind.Channel.Name, State: linktrialv1.CheckState_CHECK_STATE_OK, Expected: "no other radio on the frequencies of radio " + cmp.Or(n.Radio, "of this node, which has no name"),
			Meaning: "transmissions collide and both are lost, also those of the trials"}
		profile := f.cfg.Catalog.Profile(n.Radio)
		var now, could []string
		for _, o := range all {
			if o.Emulated || o.Virtual || !o.Connected || o.Radio == n.Radio {
				continue // its own network
			}
			if collide, why := radio.MayCollide(profile, f.cfg.Catalog.Profile(o.Radio)); collide {
				if o.Run != "" {
					now = append(now, fmt.Sprintf("%s in run %s (%s)", o.Name, o.Run, why))
				} else {
					could = append(could, fmt.Sprintf("%s (%s)", o.Name, why))
				}
			}
		}
		band := "frequency not known"
		if b, known := profile.Band(); known {
			band = b.String()
		}
		switch {
		case len(now) > 0:
			c.State, c.Found = linktrialv1.CheckState_CHECK_STATE_FAILED, "a run under way may transmit there: "+strings.Join(now, "; ")
			c.Remedy = "wait for that run's end, or give one of the radios another frequency and enter it in its profile"
		case len(could) > 0:
			c.State, c.Found = linktrialv1.CheckState_CHECK_STATE_WARNING, "another radio may transmit there: "+strings.Join(could, "; ")
			c.Remedy = "Linktrial never has both in a run at the same time; switch the other radio off, or give it another frequency"
		default:
			c.Found = "no other attached radio is on its frequencies (" + band + ")"
		}
		out = append(out, c)
	}
	return out
}
