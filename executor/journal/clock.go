package journal

import (
	"encoding/json"
	"fmt"
	"time"

	"linktrial/internal/wallclock"
)

// TypeClockStepped is [ClockStepped].
const TypeClockStepped Type = "clock-stepped"

// ClockStepped is a step of the node's clock. It stands before the first record with a
// time of the clock as it is since, so that the order of the records, and the sum of the
// steps before a record, tell by which clock its times are. [File] writes it.
type ClockStepped struct {
	// By is by how much, forwards where it is positive.
	By time.Duration `json:"by_ns"`
	// Within is how long before the record's time the clock was last as it was before;
	// 0: not known, the agent was started since.
	Within time.Duration `json:"within_ns,omitempty"`
	// Reboot is set where the node's kernel was started again and its clock was another
	// one then, which a comparison with the orchestrator's tells. The record of that start,
	// before this one, has a time of the new clock already.
	Reboot bool `json:"reboot,omitempty"`
}

var clockSteppedKind = kindOf([]Type{TypeClockStepped},
	"all (in virtual time only with injected faults)",
	"`by_ns`, by how much the node's clock stepped since the record before, forwards or with a minus sign back; `within_ns`, how long before `at` it was last seen as it was before, absent where the agent was started since; `reboot`, `true` where the node was started again meanwhile ([how it is used](#clocks-that-step))",
	func(_ *Record, b *ClockStepped) error {
		if b.By.Abs() > Latest.Sub(Earliest) || b.Within < 0 {
			return fmt.Errorf("a step by %s within %s", b.By, b.Within)
		}
		return nil
	},
	func(_ Type, b *ClockStepped) string {
		return fmt.Sprintf("the node's clock stepped by %+.3f s", b.By.Seconds())
	})

// Clock reads the node's clock, and at the same moment one that never steps, since the
// node was started; [wallclock.Clock] is one.
type Clock interface {
	Read() (wall time.Time, steady time.Duration)
}

// steps finds the steps of a node's clock: between steps, its clock less the steady one
// is always the same, for both are slewed alike.
type steps struct {
	clock Clock  // nil: they are not found
	boot  string // within which the steady clock's times are comparable; empty: not known

	known  bool          // the next is of this start of the node
	epoch  time.Duration // the time of day less the steady clock, as of the last record; 0: not known
	looked time.Duration // by the steady clock, when the clock was last read; 0: by an earlier process
}

// recovered takes note of a record that an earlier process wrote.
func (s *steps) recovered(r *Record) {
	switch r.Type {
	case TypeRunStarted, TypeRunResumed:
		var b RunStarted
		s.known, s.epoch = false, 0
		if json.Unmarshal(r.Body, &b) == nil && b.Boot != "" {
			s.known, s.epoch = b.Boot == s.boot, time.Duration(r.At.UnixNano())-b.SinceBoot
		}
	case TypeClockStepped:
		var b ClockStepped
		if json.Unmarshal(r.Body, &b) == nil && s.epoch != 0 && !b.Reboot {
			s.epoch += b.By
		}
	}
}

// look reads the clocks, and returns the step since the last look; nil: there was none.
func (s *steps) look() (wall time.Time, steady time.Duration, found *ClockStepped) {
	wall, steady = s.clock.Read()
	epoch := time.Duration(wall.UnixNano()) - steady
	if by := epoch - s.epoch; s.known && by.Abs() >= wallclock.LeastStep {
		found = &ClockStepped{By: by}
		if s.looked > 0 {
			found.Within = steady - s.looked
		}
		s.epoch = epoch
	}
	if !s.known {
		s.epoch, s.known = epoch, true
	}
	s.looked = steady
	return wall, steady, found
}

// body returns a record's body with its times by the clock that the record's time is by.
func (s *steps) body(body any, at time.Time, steady time.Duration) any {
	now := time.Now()
	// What the process noted with its monotonic clock is known to be so long ago.
	same := func(t time.Time) time.Time {
		if t == t.Round(0) { //nolint:staticcheck // Equal does not see whether there is a monotonic reading
			return t
		}
		return at.Add(-now.Sub(t)).UTC()
	}
	switch b := body.(type) {
	case RunStarted:
		b.Boot, b.SinceBoot = s.boot, steady
		b.Alive = same(b.Alive)
		return b
	case ClockOffset:
		if b.Epoch != 0 {
			b.Offset -= s.epoch - b.Epoch
		}
		return b
	case AgentStopped:
		b.From, b.To = same(b.From), same(b.To)
		return b
	case ControlCounted:
		b.Since, b.Until = same(b.Since), same(b.Until)
		return b
	}
	return body
}

// Time is a moment of the steady clock by the clock that the last record's time is by,
// of an earlier start of the node too; zero where the journal does not have it.
func (j *File) Time(steady time.Duration) time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.steps.epoch == 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(j.steps.epoch+steady))
}

// timed reports whether [steps.body] changes a body, which must then be encoded with
// its record.
func timed(body any) bool {
	switch body.(type) {
	case RunStarted, ClockOffset, AgentStopped, ControlCounted:
		return true
	}
	return false
}

// encode is a record's body as JSON.
func encode(t Type, body any) ([]byte, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("journal %s: %w", t, err)
	}
	return withoutNUL(b), nil
}

// stamped is the next record with the node's time, encoded. Where the node's clock has
// stepped, a record that says so is taken before it. encoded is the body; nil where that
// depends on the time. The caller holds mu.
func (j *File) stamped(t Type, body any, encoded []byte) (line []byte, err error) {
	var at time.Time
	if j.steps.clock == nil {
		at = j.opts.Now()
	} else {
		var steady time.Duration
		var step *ClockStepped
		if at, steady, step = j.steps.look(); step != nil {
			b, err := encode(TypeClockStepped, *step)
			if err == nil {
				line, err = j.line(TypeClockStepped, b, at)
			}
			if err != nil {
				return nil, err
			}
			j.appendPending(line)
		}
		body = j.steps.body(body, at, steady)
	}
	if encoded == nil {
		if encoded, err = encode(t, body); err != nil {
			return nil, err
		}
	}
	return j.line(t, encoded, at)
}

// line is the next record, encoded.
func (j *File) line(t Type, body []byte, at time.Time) ([]byte, error) {
	line, err := json.Marshal(Record{Seq: int64(len(j.ends)) + 1, Run: j.id.Run, Node: j.id.Node, Role: j.id.Role, At: at.UTC(), Type: t, Body: body})
	if err != nil {
		return nil, fmt.Errorf("journal %s: %w", t, err)
	}
	if len(line) > MaxRecord {
		return nil, fmt.Errorf("journal %s: %w", t, ErrTooLarge)
	}
	return line, nil
}

// appendPending adds an encoded record to what is pending.
func (j *File) appendPending(line []byte) {
	j.pending = appendLine(j.pending, line)
	j.ends = append(j.ends, j.written+int64(len(j.pending)))
}
