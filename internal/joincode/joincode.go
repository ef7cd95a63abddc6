// Package joincode is the short code by which a laptop joins an orchestrator:
// four digits and two words, as 4821-tango-river. It is spoken over a radio and typed
// once. Comes in: random numbers, or what somebody typed. Goes out: the code in its one
// spelling. What a code is worth, and what it is exchanged for, is in
// internal/joinexchange.
package joincode

import (
	"crypto/rand"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"unicode"
)

// Code is a code in its one spelling. Only [New] and [Parse] make one.
type Code struct{ text string }

// Count is how many different codes there are, all equally likely: 29.3 bits.
const Count = digitCount * wordCount * wordCount

const (
	digitCount = 10_000
	wordCount  = 256
)

// New returns a random code.
func New() Code {
	n, err := rand.Int(rand.Reader, big.NewInt(Count))
	if err != nil {
		panic(err) // crypto/rand never fails, since Go 1.24
	}
	return at(n.Int64())
}

// at is the code with a number below [Count].
func at(n int64) Code {
	return of(int(n%digitCount), words[n/digitCount%wordCount], words[n/digitCount/wordCount])
}

func of(digits int, first, second string) Code {
	return Code{fmt.Sprintf("%04d-%s-%s", digits, first, second)}
}

// String returns the code as it is shown and typed: 4821-tango-river.
func (c Code) String() string { return c.text }

var digitWords = [...]string{"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "niner"}

// Spoken returns how the code is read out over a voice channel, digit by digit, with
// the radiotelephone word for nine (ICAO Annex 10): "four eight two one, tango, river".
func (c Code) Spoken() string {
	digits, rest, _ := strings.Cut(c.text, "-")
	var out []string
	for _, d := range digits {
		out = append(out, digitWords[d-'0'])
	}
	return strings.Join(out, " ") + ", " + strings.ReplaceAll(rest, "-", ", ")
}

// maxTyped bounds what is looked at, in bytes.
const maxTyped = 100

// Parse reads a code as people type it: with capitals or without, blanks, hyphens,
// dots or commas between its parts and between digits, and with the leading zeros or
// without.
func Parse(s string) (Code, error) {
	if len(s) > maxTyped {
		return Code{}, fmt.Errorf("code of %d bytes, %w", len(s), errForm)
	}
	parts := strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("-–—_.,", r) })
	digits := ""
	for len(parts) > 0 && isNumber(parts[0]) {
		digits += parts[0]
		parts = parts[1:]
	}
	if len(digits) < 1 || len(digits) > 4 || len(parts) != 2 {
		return Code{}, fmt.Errorf("code %q, %w", s, errForm)
	}
	for _, w := range parts {
		if _, known := slices.BinarySearch(words, w); !known {
			return Code{}, fmt.Errorf("code %q: no code has the word %q%s", s, w, meant(w))
		}
	}
	n := 0
	for _, d := range digits {
		n = 10*n + int(d-'0')
	}
	return of(n, parts[0], parts[1]), nil
}

var errForm = errors.New("expected four digits and two words, as 4821-tango-river")

func isNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// meant suggests the word that is one letter away, or else the one that begins alike.
func meant(typed string) string {
	for _, close := range []func(w string) bool{
		func(w string) bool { return oneLetterApart(w, typed) },
		func(w string) bool { return len(typed) >= 3 && strings.HasPrefix(w, typed[:3]) },
	} {
		if i := slices.IndexFunc(words, close); i >= 0 {
			return fmt.Sprintf("; is it %q?", words[i])
		}
	}
	return "; ask for it again"
}

// oneLetterApart reports whether one letter that is changed, added or left out makes one
// word the other.
func oneLetterApart(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(b)-len(a) > 1 {
		return false
	}
	same := 0
	for same < len(a) && a[same] == b[same] {
		same++
	}
	if len(a) == len(b) {
		return same < len(a) && a[same+1:] == b[same+1:]
	}
	return a[same:] == b[same+1:]
}
