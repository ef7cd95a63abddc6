package notification

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"strings"
	"time"

	"linktrial/internal/checkkind"
	"linktrial/orchestrator/campaign/nodes"
	"linktrial/orchestrator/fleet"
)

// silentFor is how long a telemetry source has not answered before people are told.
const silentFor = 30 * time.Second

// conditions is since when each condition that takes a while holds; only the goroutine of
// the watch uses it.
type conditions struct {
	since map[string]time.Time // by the key of its event
}

// lasts returns those conditions that hold for long enough; what does not hold any more is
// forgotten.
func (c *conditions) lasts(all []event, now time.Time, d time.Duration) []event {
	before := c.since
	c.since = map[string]time.Time{}
	var out []event
	for _, e := range all {
		at, known := before[e.key]
		if !known {
			at = now
		}
		c.since[e.key] = at
		if now.Sub(at) >= d {
			out = append(out, e)
		}
	}
	return out
}

// conditions derives what nodes of runs that are under way report: each is told once in a run.
func (n *Notifier) conditions(ctx context.Context, _ time.Time) ([]event, error) {
	now := n.cfg.Now()
	var silent, out []event
	for _, x := range n.cfg.Nodes() {
		if x.Virtual || x.Run == "" || !x.Connected {
			continue
		}
		h := n.cfg.Health(x.Name)
		silent = append(silent, silentSources(&x, &h, now)...)
		out = append(out, nodeFaults(&x, &h, now)...)
		if e, low := batteryOf(&x, &h, now); low {
			out = append(out, e)
		}
	}
	return n.ofOpenRuns(ctx, append(out, n.silent.lasts(silent, now, silentFor)...))
}

// ofOpenRuns adds to events the campaigns of their runs, and leaves out those that are stored.
func (n *Notifier) ofOpenRuns(ctx context.Context, all []event) ([]event, error) {
	if len(all) == 0 {
		return nil, nil
	}
	keys := make([]string, len(all))
	for i := range all {
		keys[i] = all[i].key
	}
	stored, err := n.db.KnownEvents(ctx, keys)
	if err != nil {
		return nil, fmt.Errorf("notifications: %w", err)
	}
	known := map[string]bool{}
	for _, k := range stored {
		known[k] = true
	}
	runs, err := n.db.RunCampaigns(ctx)
	if err != nil {
		return nil, fmt.Errorf("open runs: %w", err)
	}
	campaigns := map[string]string{}
	for _, r := range runs {
		campaigns[r.ID] = r.CampaignID
	}
	var out []event
	for _, e := range all {
		if c := campaigns[e.Run]; c != "" && !known[e.key] {
			known[e.key] = true
			e.Campaign, e.Path = c, pageOf(c)
			out = append(out, e)
		}
	}
	return out, nil
}

func condition(kind Kind, x *nodes.Node, of string, now time.Time, title, text string) event {
	sum := sha256.Sum256([]byte(of))
	return event{key: strings.Join([]string{kind.Key, x.Run, x.Name, hex.EncodeToString(sum[:8])}, "/"),
		Notification: Notification{Kind: kind.Key, At: now, Title: title, Text: text, Run: x.Run, Node: x.Name, Urgent: true}}
}

func silentSources(x *nodes.Node, h *fleet.Health, now time.Time) (out []event) {
	for _, s := range h.Telemetry {
		if s.Error != "" {
			out = append(out, condition(radioSilent, x, "source "+s.Source, now, fmt.Sprintf("%s: telemetry source %s does not answer", x.Name, s.Source),
				join(sentence(s.Error), "Trials continue; what the source would tell is not recorded.")))
		}
	}
	return out
}

// nodeFaults are those of the node; one for which a run cannot go on stops that, which is told
// as the run's end.
func nodeFaults(x *nodes.Node, h *fleet.Health, now time.Time) (out []event) {
	for _, f := range h.Faults {
		if f.Run == "" {
			out = append(out, condition(radioSilent, x, "fault "+f.Text, now, fmt.Sprintf("%s: %s", x.Name, strings.TrimSuffix(f.Text, ".")), "The node takes part in run "+x.Run+"."))
		}
	}
	return out
}

func batteryOf(x *nodes.Node, h *fleet.Health, now time.Time) (event, bool) {
	if h.Battery == nil || !h.Discharging || *h.Battery >= checkkind.LowCharge {
		return event{}, false
	}
	return condition(batteryLow, x, "", now, fmt.Sprintf("Battery of %s at %.0f %%, discharging", x.Name, math.Floor(100**h.Battery)),
		"Connect the node to a supply, or change its battery."), true
}
