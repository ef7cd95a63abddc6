package radio

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"linktrial/internal/yamldoc"
)

// Columns of a trace. time_s and loss must be there.
var traceColumns = []string{"time_s", "rate_bit_s", "delay_ms", "loss"}

const (
	maxTraceText  = 4 << 20
	maxTraceNotes = 20 // problems listed of one trace
)

// ParseTrace reads a trace as CSV (RFC 4180). The first row names the columns,
// in any order:
//
//	time_s      seconds since the trial's start; from 0, in even steps (within 1 %)
//	rate_bit_s  rate of the link, bit/s; optional
//	delay_ms    one-way delay of the link, ms; optional
//	loss        probability that a packet is lost, 0…1
//
// A row holds until the next. Rows that begin with # are remarks. A gap in
// time, time that stands still or goes backward, an empty field and a negative
// figure are refused. The error, if any, is [yamldoc.Problems].
func ParseTrace(file string, text []byte) (*Trace, error) {
	var ps yamldoc.Problems
	note := func(line, column int, format string, args ...any) {
		if len(ps) < maxTraceNotes {
			ps = append(ps, yamldoc.Problem{File: file, Line: line, Column: column, Message: fmt.Sprintf(format, args...)})
		}
	}
	if len(text) > maxTraceText {
		note(1, 1, "%d bytes long, a trace has at most %d", len(text), maxTraceText)
		return nil, ps
	}
	r := csv.NewReader(bytes.NewReader(text))
	r.Comment, r.TrimLeadingSpace, r.ReuseRecord = '#', true, true
	head, err := r.Read()
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("the trace is empty")
		}
		note(1, 1, "%v", err)
		return nil, ps
	}
	column := map[string]int{}
	for i, name := range head {
		name = strings.TrimSpace(name)
		line, col := r.FieldPos(i)
		_, twice := column[name]
		switch {
		case !slices.Contains(traceColumns, name):
			note(line, col, "unknown column %q%s; there are %s", name, yamldoc.Suggest(name, traceColumns), strings.Join(traceColumns, ", "))
		case twice:
			note(line, col, "column %s is given twice", name)
		}
		column[name] = i
	}
	for _, name := range []string{"time_s", "loss"} {
		if _, ok := column[name]; !ok {
			note(1, 1, "column %s is missing", name)
		}
	}
	if ps != nil {
		return nil, ps
	}
	t := &Trace{Step: time.Second}
	var first, last time.Duration
	for n := 0; ; n++ {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			var pe *csv.ParseError
			if errors.As(err, &pe) {
				note(pe.Line, pe.Column, "%v", pe.Err)
			} else {
				note(1, 1, "%v", err)
			}
			break
		}
		if n == maxTraceSteps {
			line, _ := r.FieldPos(0)
			note(line, 1, "more than %d rows", maxTraceSteps)
			break
		}
		value := func(name string, hi float64) float64 {
			i := column[name]
			line, col := r.FieldPos(i)
			s := strings.TrimSpace(row[i])
			v, err := strconv.ParseFloat(s, 64)
			switch {
			case s == "":
				note(line, col, "a gap: %s is empty", name)
			case err != nil || math.IsNaN(v):
				note(line, col, "%s: expected a number, found %q", name, s)
			case v < 0:
				note(line, col, "%s: %s is negative", name, s)
			case v > hi:
				note(line, col, "%s: expected at most %g, found %s", name, hi, s)
			default:
				return v + 0
			}
			return 0
		}
		at := time.Duration(math.Round(value("time_s", 1e7) * 1e9))
		line, col := r.FieldPos(column["time_s"])
		switch step := at - last; {
		case n == 0:
			if first = at; at != 0 {
				note(line, col, "the first time is %s, expected 0", at)
			}
		case step <= 0:
			note(line, col, "time goes from %s to %s, expected it to rise", last, at)
		case n == 1:
			if t.Step = at - first; t.Step < minSlot {
				note(line, col, "steps of %s, expected at least %s", t.Step, minSlot)
			}
		case step > t.Step+t.Step/100:
			note(line, col, "a gap of %s, from %s to %s, in a trace of %s steps", step, last, at, t.Step)
		case step < t.Step-t.Step/100:
			note(line, col, "a step of %s, from %s to %s, in a trace of %s steps", step, last, at, t.Step)
		}
		last = at
		t.Loss = append(t.Loss, value("loss", 1))
		if _, ok := column["rate_bit_s"]; ok {
			t.RateBitsPerSecond = append(t.RateBitsPerSecond, value("rate_bit_s", maxRate))
		}
		if _, ok := column["delay_ms"]; ok {
			t.Delay = append(t.Delay, time.Duration(math.Round(value("delay_ms", maxDelay.Seconds()*1e3)*1e6)))
		}
	}
	if len(t.Loss) == 0 {
		note(1, 1, "the trace has no rows")
	}
	// Steps that differ by less than a hundredth add up; the last row says by how much.
	if n := time.Duration(len(t.Loss) - 1); ps == nil && n > 1 {
		t.Step = last / n
	}
	if ps != nil {
		return nil, ps
	}
	return t, nil
}
