// Package wording writes numbers and names for people, alike in every report:
// numbers with as many decimals as they deserve, names of others without what
// could spoil a line. Comes in: numbers and text. Goes out: text.
package wording

import (
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean makes a text of others fit for one line of any report: control and
// formatting characters could move a terminal's cursor or reverse a line.
func Clean(s string) string {
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

// Clip shortens to n runes, the last of them an ellipsis.
func Clip(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	r := []rune(s)
	return string(r[:n-1]) + "…"
}

// ClipMiddle shortens to n runes and keeps both ends.
func ClipMiddle(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	tail := (n - 1) / 2
	return string(r[:n-1-tail]) + "…" + string(r[len(r)-tail:])
}

func PadRight(s string, n int) string {
	return s + strings.Repeat(" ", max(0, n-utf8.RuneCountInString(s)))
}

func PadLeft(s string, n int) string {
	return strings.Repeat(" ", max(0, n-utf8.RuneCountInString(s))) + s
}

// Decimals writes a number with n decimals.
func Decimals(x *float64, n int) string {
	if x == nil {
		return None
	}
	return Minus(strconv.FormatFloat(*x, 'f', n, 64))
}

// Minus drops the sign of a rounded zero.
func Minus(s string) string {
	if strings.HasPrefix(s, "-") && strings.Trim(s, "-0.") == "" {
		return s[1:]
	}
	return s
}

// PValue writes a P value; below a thousandth only that.
func PValue(x *float64) string {
	if x != nil && *x < 0.001 {
		return "<0.001"
	}
	return Decimals(x, 3)
}

// Deviation writes a signed percentage.
func Deviation(x *float64) string {
	if x == nil {
		return None
	}
	s := Decimals(x, 1) + " %"
	if *x > 0 && strings.Trim(s, "0. %") != "" {
		s = "+" + s
	}
	return s
}

// Change writes a ratio as a signed change in percent, with the sign that prose has: one
// decimal below ten percent, "+21 %", "−0.4 %".
func Change(ratio float64) string {
	x := 100 * (ratio - 1)
	decimals := 0
	if math.Abs(x) < 9.95 {
		decimals = 1
	}
	s := Minus(strconv.FormatFloat(x, 'f', decimals, 64)) + " %"
	switch {
	case strings.HasPrefix(s, "-"):
		return "−" + s[1:]
	case strings.Trim(s, "0. %") != "":
		return "+" + s
	}
	return s
}

// Sentence gives a text a capital first letter, unless its first word is a name with
// letters of both cases or digits ("newRTO").
func Sentence(s string) string {
	first, _, _ := strings.Cut(s, " ")
	if strings.ToLower(first) != first || strings.ContainsAny(first, "0123456789") {
		return s
	}
	if s == "" {
		return s
	}
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[n:]
}

func Plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// Short writes a number of any size with four significant digits.
func Short(x *float64) string {
	if x == nil {
		return None
	}
	s := strconv.FormatFloat(*x, 'g', 4, 64)
	if a := max(*x, -*x); a >= 1000 && a < 1e9 {
		s = strconv.FormatFloat(*x, 'f', 0, 64)
	}
	return Minus(s)
}
