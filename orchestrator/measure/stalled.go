package measure

import (
	"fmt"
	"math"
	"strings"

	"linktrial/orchestrator/report"
)

// stalled is a transfer that a time limit ended, which is a verdict of its protocol.
type stalled struct {
	connected bool
	bytes     int64   // delivered at most; of one that did not connect none
	seconds   float64 // in which
}

// rate is the most that it carried, in bytes/s.
func (s stalled) rate() float64 { return float64(s.bytes) / s.seconds }

func (s stalled) text(label string) string {
	switch {
	case !s.connected:
		return fmt.Sprintf("%s did not connect within %.3g s", label, s.seconds)
	case s.bytes == 0:
		return fmt.Sprintf("%s delivered nothing in %.3g s", label, s.seconds)
	}
	return fmt.Sprintf("%s delivered at most %s in %.3g s", label, sizeText(float64(s.bytes)), s.seconds)
}

// stalledOf are the treatments all of whose trials a time limit ended, each with the fastest.
// One with a trial that has not ended, or tells nothing of its protocol, is not among them.
func stalledOf(runs []report.Run) map[string]stalled {
	out, others := map[string]stalled{}, map[string]bool{}
	for i := range runs {
		for k := range runs[i].Trials {
			t := &runs[i].Trials[k]
			s, ok := stalledTrial(&runs[i], t)
			if known, is := out[t.Treatment]; ok && (!is || s.rate() > known.rate()) {
				out[t.Treatment] = s
			}
			others[t.Treatment] = others[t.Treatment] || !ok
		}
	}
	for name, other := range others {
		if other {
			delete(out, name)
		}
	}
	return out
}

// stalledTrial reads a trial of one flow; false: no limit ended it, or it is not known what
// had been delivered.
func stalledTrial(r *report.Run, t *report.Trial) (stalled, bool) {
	if len(t.Attempts) == 0 || r.Sheet == nil {
		return stalled{}, false
	}
	a := &t.Attempts[len(t.Attempts)-1]
	switch {
	case a.ConnectTimedOut():
		return stalled{seconds: r.Sheet.Limits.Connect.Seconds()}, r.Sheet.Limits.Connect > 0
	case a.TransferTimedOut() && len(a.Flows) == 1:
		// The sender had no more to send after the time that bounds the flow, which is
		// shorter than its limit: what came later counts as if it had come within.
		f := &a.Flows[0]
		return stalled{true, f.LastBytes, f.Bound.Seconds()}, f.Bound > 0 && f.LastAt >= f.Bound
	}
	return stalled{}, false
}

// stalledCheck holds the time of so many bytes, client to server, in seconds against the most
// that it may be, where a time limit ended every transfer: the most that one of them carried
// bounds it from below. False: another transfer was carried out, or none; or one did not connect
// and small packets did not arrive both ways: whether the ends reach each other is not known.
func (v *Values) stalledCheck(bytes, most float64) (c Check, ok bool) {
	rate, notes := 0.0, []string{}
	for i := range v.Transfers {
		r := &v.Transfers[i]
		s, is := v.stalled[r.Treatment]
		if !is || !s.connected && !v.arrived() {
			return Check{}, false
		}
		rate, notes = max(rate, s.rate()), append(notes, s.text(r.Label))
	}
	c = Check{Metric: "time of " + sizeText(bytes), Unit: "s", Way: There.String(), Value: math.NaN(), Low: bytes / rate * (1 - bulkError), High: math.Inf(1),
		Threshold: most, Source: ours, Note: strings.Join(notes, "; ")}
	return c.decide(), len(notes) > 0
}

// arrived reports whether small packets arrived both ways on the idle link.
func (v *Values) arrived() bool {
	for _, p := range v.Idle {
		if p == nil || p.Received == 0 {
			return false
		}
	}
	return true
}
