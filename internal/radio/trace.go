package radio

import (
	"bytes"
	"encoding/csv"
	"errors"
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
	// MaxTraceText is the size of the largest trace that is read, in bytes: five
	// times what maxTraceSteps rows take.
	MaxTraceText     = 4 << 20
	maxTraceProblems = 20 // listed of one trace
)

// ParseTrace reads a trace as CSV (RFC 4180). The first row names the columns,
// in any order:
//
//	time_s      seconds since the trial's start; from 0, in even steps (within 1 %)
//	rate_bit_s  rate of the link, bit/s; optional
//	delay_ms    one-way delay of the link, ms; optional
//	loss        probability that a packet is lost, 0…1
//
// A row holds until the next. Rows that begin with # are comments. A gap in
// time, a time that does not rise, an empty field and a negative number are
// refused. The error, if any, is [yamldoc.Problems].
func ParseTrace(file string, text []byte) (*Trace, error) {
	p := traceParser{file: file, csv: csv.NewReader(bytes.NewReader(bytes.TrimPrefix(text, []byte(byteOrderMark)))), column: map[string]int{}}
	p.csv.Comment, p.csv.TrimLeadingSpace, p.csv.ReuseRecord = '#', true, true
	if len(text) > MaxTraceText {
		p.problem(1, 1, "%d bytes long, a trace has at most %d", len(text), MaxTraceText)
		return nil, p.problems
	}
	if p.header(); p.problems != nil {
		return nil, p.problems
	}
	p.trace.Step = time.Second
	for p.row() {
	}
	if len(p.trace.Loss) == 0 {
		p.problem(1, 1, "the trace has no rows")
	}
	if p.problems != nil {
		return nil, p.problems
	}
	// Steps may differ by a hundredth: the mean step is the last time over their number.
	if n := time.Duration(len(p.trace.Loss) - 1); n > 1 {
		p.trace.Step = p.last / n
	}
	return &p.trace, nil
}

// byteOrderMark is what some programs write before UTF-8.
const byteOrderMark = "\ufeff"

// traceParser reads a trace row by row and collects the problems.
type traceParser struct {
	file     string
	csv      *csv.Reader
	column   map[string]int // by the name of the column
	trace    Trace
	last     time.Duration // time of the row before
	problems yamldoc.Problems
}

func (p *traceParser) problem(line, column int, format string, args ...any) {
	if len(p.problems) < maxTraceProblems {
		p.problems = append(p.problems, yamldoc.At(p.file, line, column, format, args...))
	}
}

// header reads the names of the columns.
func (p *traceParser) header() {
	names, err := p.csv.Read()
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("the trace is empty")
		}
		p.problem(1, 1, "%v", err)
		return
	}
	for i, name := range names {
		name = strings.TrimSpace(name)
		line, col := p.csv.FieldPos(i)
		_, twice := p.column[name]
		switch {
		case !slices.Contains(traceColumns, name):
			p.problem(line, col, "unknown column %q%s; there are %s", name, yamldoc.Suggest(name, traceColumns), strings.Join(traceColumns, ", "))
		case twice:
			p.problem(line, col, "column %s is given twice", name)
		}
		p.column[name] = i
	}
	for _, name := range []string{"time_s", "loss"} {
		if _, ok := p.column[name]; !ok {
			p.problem(1, 1, "column %s is missing", name)
		}
	}
}

// row reads one row into the trace. It reports whether another may follow.
func (p *traceParser) row() bool {
	fields, err := p.csv.Read()
	if errors.Is(err, io.EOF) {
		return false
	}
	if err != nil {
		var pe *csv.ParseError
		if errors.As(err, &pe) {
			p.problem(pe.Line, pe.Column, "%v", pe.Err)
		} else {
			p.problem(1, 1, "%v", err)
		}
		return false
	}
	t := &p.trace
	if len(t.Loss) == maxTraceSteps {
		line, _ := p.csv.FieldPos(0)
		p.problem(line, 1, "more than %d rows", maxTraceSteps)
		return false
	}
	p.time(time.Duration(math.Round(p.number(fields, "time_s", 1e7) * 1e9)))
	t.Loss = append(t.Loss, p.number(fields, "loss", 1))
	if _, ok := p.column["rate_bit_s"]; ok {
		t.RateBitsPerSecond = append(t.RateBitsPerSecond, p.number(fields, "rate_bit_s", maxRate))
	}
	if _, ok := p.column["delay_ms"]; ok {
		t.Delay = append(t.Delay, time.Duration(math.Round(p.number(fields, "delay_ms", maxDelay.Seconds()*1e3)*1e6)))
	}
	return true
}

// time holds a row's time against the one before: the second row sets the step,
// and all others keep to it.
func (p *traceParser) time(at time.Duration) {
	line, col := p.csv.FieldPos(p.column["time_s"])
	rows := len(p.trace.Loss)
	switch step := at - p.last; {
	case rows == 0:
		if at != 0 {
			p.problem(line, col, "the first time is %s, expected 0", at)
		}
	case step <= 0:
		p.problem(line, col, "time goes from %s to %s, expected it to rise", p.last, at)
	case rows == 1:
		if p.trace.Step = step; step < minSlot {
			p.problem(line, col, "steps of %s, expected at least %s", step, minSlot)
		}
	case step > p.trace.Step+p.trace.Step/100:
		p.problem(line, col, "a gap of %s, from %s to %s, in a trace of %s steps", step, p.last, at, p.trace.Step)
	case step < p.trace.Step-p.trace.Step/100:
		p.problem(line, col, "a step of %s, from %s to %s, in a trace of %s steps", step, p.last, at, p.trace.Step)
	}
	p.last = at
}

// number reads a field as a number from 0 to hi; one that is none is a problem and counts as 0.
func (p *traceParser) number(fields []string, name string, hi float64) float64 {
	i := p.column[name]
	line, col := p.csv.FieldPos(i)
	s := strings.TrimSpace(fields[i])
	v, err := strconv.ParseFloat(s, 64)
	switch {
	case s == "":
		p.problem(line, col, "a gap: %s is empty", name)
	case err != nil || math.IsNaN(v):
		p.problem(line, col, "%s: expected a number, found %q", name, s)
	case v < 0:
		p.problem(line, col, "%s: %s is negative", name, s)
	case v > hi:
		p.problem(line, col, "%s: expected at most %g, found %s", name, hi, s)
	default:
		return v + 0 // no negative zero
	}
	return 0
}
