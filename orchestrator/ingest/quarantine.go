package ingest

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"linktrial/executor/journal"
)

// TypeRefused is the type under which the journal's table keeps a record that cannot
// be stored as what it is. No node writes it.
const TypeRefused journal.Type = "refused"

// Refused is what is kept of a record that cannot be stored: its place in the journal
// is taken, so that what follows it is delivered, and people are told. The node has
// the whole record in its own journal.
type Refused struct {
	Reason string `json:"reason"`
	Type   string `json:"type,omitempty"`   // that it claims to be
	Bytes  int    `json:"bytes"`            // its length
	Record []byte `json:"record,omitempty"` // up to maxKept bytes of it
}

// maxKept is how much of a refused record is kept, in bytes.
const maxKept = 64 << 10

// quarantined is the record that takes the place of one that is refused.
func quarantined(r *parsed, reason string, now time.Time) *parsed {
	return inPlaceOf(r, TypeRefused, reason, maxKept, now)
}

// inPlaceOf is a record of the store's own type in the place of a delivered one, of
// which it keeps some bytes.
func inPlaceOf(r *parsed, t journal.Type, reason string, most int, now time.Time) *parsed {
	body := &Refused{Reason: text(reason), Bytes: len(r.raw), Record: r.raw[:min(len(r.raw), most)]}
	p := &parsed{digest: r.digest, raw: r.raw, body: body}
	var claimed struct{ Type string }
	if json.Unmarshal(r.raw, &claimed) == nil && len(claimed.Type) <= maxName {
		body.Type = text(claimed.Type)
	}
	p.Run, p.Node, p.Seq, p.Type, p.At = r.Run, r.Node, r.Seq, t, now
	p.stored, _ = json.Marshal(body) // strings and numbers only
	return p
}

// Bounds of what a record may hold, far above what an agent writes. Names are in
// indexes, whose entries PostgreSQL bounds; times beyond the bounds cannot be shown
// by every program that reads an export.
const (
	maxName     = 500 // of a treatment, a source, a metric, in bytes
	maxDuration = 366 * 24 * time.Hour
)

// checkBounds refuses what can be stored, and would be in the way of whoever reads it.
func (p *parsed) checkBounds() error {
	if p.At.Before(journal.Earliest) || !p.At.Before(journal.Latest) {
		return fmt.Errorf("its time is %s, expected one from 1970 to 2199", p.At.Format(time.RFC3339))
	}
	switch b := p.body.(type) {
	case *journal.Samples:
		for i := range b.Samples {
			s := &b.Samples[i]
			if err := duration("elapsed_ns", time.Duration(s.ElapsedNS)); err != nil {
				return err
			}
			for name := range s.More {
				if err := named("a metric", name); err != nil {
					return err
				}
			}
		}
		return nil // most records are samples, which have no other text
	case *journal.Listener:
		if err := named("a treatment", b.Treatment); err != nil {
			return err
		}
	case *journal.Received:
		if err := named("a treatment", b.Treatment); err != nil {
			return err
		}
	case *journal.Connected:
		if err := duration("connect_ns", time.Duration(b.ConnectNS)); err != nil {
			return err
		}
	case *journal.AttemptEnded:
		if b.Duration > maxDuration || b.Dead > maxDuration {
			return fmt.Errorf("duration %s, dead time %s, expected at most %s", b.Duration, b.Dead, maxDuration)
		}
		for _, f := range slices.Concat(b.Flows, b.Probes) {
			if r := f.Result; r != nil {
				if r.SizeBytes < 0 {
					return fmt.Errorf("size_bytes %d", r.SizeBytes)
				}
				if err := duration("elapsed_ns", time.Duration(r.ElapsedNS)); err != nil {
					return err
				}
			}
		}
	case *journal.Telemetry:
		if err := named("a source", b.Source); err != nil {
			return err
		}
		for _, v := range b.Values {
			if err := named("a metric", v.Name); err != nil {
				return err
			}
		}
	}
	return checkStrings(p.Body)
}

func named(what, name string) error {
	if len(name) > maxName {
		return fmt.Errorf("the name of %s has %d bytes, expected at most %d", what, len(name), maxName)
	}
	return nil
}

func duration(what string, d time.Duration) error {
	if d < 0 || d > maxDuration {
		return fmt.Errorf("%s %d, expected 0 to %d", what, d.Nanoseconds(), maxDuration.Nanoseconds())
	}
	return nil
}

// checkStrings bounds every text of a body but logs, which are bounded by the record.
func checkStrings(body json.RawMessage) error {
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return err
	}
	return boundStrings(v)
}

func boundStrings(v any) error {
	switch x := v.(type) {
	case string:
		if len(x) > journal.MaxText {
			return fmt.Errorf("a text of it has %d bytes, expected at most %d", len(x), journal.MaxText)
		}
	case []any:
		for _, e := range x {
			if err := boundStrings(e); err != nil {
				return err
			}
		}
	case map[string]any:
		for k, e := range x {
			if err := named("a field", k); err != nil {
				return err
			}
			if _, isText := e.(string); isText && k == "log" {
				continue
			}
			if err := boundStrings(e); err != nil {
				return err
			}
		}
	}
	return nil
}
