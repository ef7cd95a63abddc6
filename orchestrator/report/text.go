package report

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"linktrial/internal/unit"
)

// clean makes a text of others fit for one line of any report: control and
// formatting characters could move a terminal's cursor or reverse a line.
func clean(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r), unicode.IsControl(r):
			return ' '
		case unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

// clip shortens to n runes, the last of them an ellipsis.
func clip(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	r := []rune(s)
	return string(r[:n-1]) + "…"
}

// clipMiddle shortens to n runes and keeps both ends.
func clipMiddle(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	tail := (n - 1) / 2
	return string(r[:n-1-tail]) + "…" + string(r[len(r)-tail:])
}

func padRight(s string, n int) string {
	return s + strings.Repeat(" ", max(0, n-utf8.RuneCountInString(s)))
}

func padLeft(s string, n int) string {
	return strings.Repeat(" ", max(0, n-utf8.RuneCountInString(s))) + s
}

const none = "–" // a figure that has no value

// kbps writes a throughput (or a ratio) for people: two decimals, one from 1000
// and none from 10 000.
func kbps(x *float64) string {
	if x == nil {
		return none
	}
	decimals := 2
	switch a := max(*x, -*x); {
	case a >= 9_999.95:
		decimals = 0
	case a >= 999.995:
		decimals = 1
	}
	return minus(strconv.FormatFloat(*x, 'f', decimals, 64))
}

// decimals writes a figure with n decimals.
func decimals(x *float64, n int) string {
	if x == nil {
		return none
	}
	return minus(strconv.FormatFloat(*x, 'f', n, 64))
}

// minus drops the sign of a rounded zero.
func minus(s string) string {
	if strings.HasPrefix(s, "-") && strings.Trim(s, "-0.") == "" {
		return s[1:]
	}
	return s
}

// pValue writes a P value; below a thousandth only that.
func pValue(x *float64) string {
	if x != nil && *x < 0.001 {
		return "<0.001"
	}
	return decimals(x, 3)
}

func percent(x *float64, n int) string {
	if x == nil {
		return none
	}
	v := 100 * *x
	return decimals(&v, n) + " %"
}

// deviation writes a signed percentage.
func deviation(x *float64) string {
	if x == nil {
		return none
	}
	s := decimals(x, 1) + " %"
	if *x > 0 && strings.Trim(s, "0. %") != "" {
		s = "+" + s
	}
	return s
}

func span(r *Range, number func(*float64) string) string {
	if r == nil {
		return none
	}
	return number(&r.Low) + " to " + number(&r.High)
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// heading names a run in one line.
func (t *RunTable) heading() string {
	var parts []string
	for _, s := range []string{t.Group, t.Settings} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	parts = append(parts, cmp.Or(t.RadioTitle, "unknown radio")+" at "+cmp.Or(t.TopologyTitle, "unknown topology"))
	parts = append(parts, unit.FormatBytes(t.SizeBytes), plural(t.Iterations, "iteration", "iterations"))
	if t.Order != "" {
		parts = append(parts, t.Order+" order")
	}
	if t.Place != "" {
		parts = append(parts, t.Place)
	}
	return clean(strings.Join(parts, " · "))
}

// partial says why a table is not the whole of a run, or nothing.
func (t *RunTable) partial() string {
	if !t.Partial {
		return ""
	}
	open := 0
	for i := range t.Rows {
		open += t.Rows[i].NotEnded
	}
	s := "partial: " + cmp.Or(t.State, "unknown state")
	if open > 0 {
		s += ", " + plural(open, "trial has", "trials have") + " not ended"
	}
	if t.Message != "" {
		s += ": " + t.Message
	}
	return clean(s)
}

// referenceLabel is the label of the treatment others are held against.
func (t *RunTable) referenceLabel() string {
	for i := range t.Rows {
		if t.Rows[i].Treatment == t.Reference {
			return clean(t.Rows[i].Label)
		}
	}
	return ""
}

func (t *RunTable) has(what func(*Row) bool) bool {
	for i := range t.Rows {
		if what(&t.Rows[i]) {
			return true
		}
	}
	return false
}

func compared(r *Row) bool    { return r.Comparison != nil }
func isPublished(r *Row) bool { return r.Published != nil }
func hasIdeal(r *Row) bool    { return r.ShareOfIdeal != nil }

// valid is "9/10".
func (r *Row) valid() string { return fmt.Sprintf("%d/%d", r.Valid, r.Trials) }

// name is what the failure is called: "timed-out (transfer-timeout)".
func (f Failure) name() string {
	if f.Reason == "" {
		return clean(string(f.Verdict))
	}
	return clean(string(f.Verdict) + " (" + f.Reason + ")")
}

// troubles says in one sentence what a row's figures leave out, or nothing.
func (r *Row) troubles() string {
	var parts []string
	if r.Failed > 0 {
		parts = append(parts, fmt.Sprintf("%d of %s failed", r.Failed, plural(r.Trials, "trial", "trials")))
	}
	if r.NotEnded > 0 {
		parts = append(parts, plural(r.NotEnded, "trial", "trials")+" not ended")
	}
	if r.ExtraAttempts > 0 {
		parts = append(parts, plural(r.ExtraAttempts, "attempt", "attempts")+" beyond the first")
	}
	if len(r.Failures) > 0 {
		n, names := 0, make([]string, len(r.Failures))
		for i, f := range r.Failures {
			n += f.Attempts
			names[i] = fmt.Sprintf("%d× %s", f.Attempts, f.name())
		}
		parts = append(parts, plural(n, "attempt gave", "attempts gave")+" no figure: "+strings.Join(names, ", "))
	}
	return strings.Join(parts, "; ")
}

// short writes a figure of any size with four significant digits.
func short(x *float64) string {
	if x == nil {
		return none
	}
	s := strconv.FormatFloat(*x, 'g', 4, 64)
	if a := max(*x, -*x); a >= 1000 && a < 1e9 {
		s = strconv.FormatFloat(*x, 'f', 0, 64)
	}
	return minus(s)
}
