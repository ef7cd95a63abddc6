package access

import (
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/ccojocar/zxcvbn-go/data"
)

// entropy estimates, in bits, how far a guesser has to go for a password, as zxcvbn does
// (Wheeler, USENIX Security 2016): the least sum over all ways to put it together of
// frequent passwords, words and names, keys that lie side by side, repetitions, dates and
// single characters. known are the words that a guesser tries first.
//
// The lists of words are zxcvbn's; docs/decisions/password-estimate.md says why the rest of
// its library is not used.
func entropy(password string, known ...string) float64 {
	first := map[string]bool{}
	for _, w := range known {
		first[asciiLower(w)] = true
	}
	rank := func(w string) int {
		if first[w] {
			return 1
		}
		return ranks()[w]
	}
	each := math.Log2(alphabet(password))
	least := slices.Repeat([]float64{math.Inf(1)}, len(password)+1) // of what precedes an index
	least[0] = 0
	for i := range len(password) {
		parts(password[i:], each, rank, func(length int, bits float64) {
			least[i+length] = min(least[i+length], least[i]+bits)
		})
	}
	return least[len(password)]
}

// parts yields what a text may begin with: how many bytes, and the bits that it takes.
func parts(text string, each float64, rank func(string) int, yield func(length int, bits float64)) {
	yield(1, each)
	for n := 1; n <= len(text); n++ {
		if bits, ok := word(text[:n], rank); ok {
			yield(n, bits)
		}
	}
	if n := len(text) - len(strings.TrimLeft(text, text[:1])); n > 2 {
		yield(n, each+math.Log2(float64(n)))
	}
	for _, row := range rows {
		if n := alongside(text, row); n > 2 {
			yield(n, rowBits+math.Log2(float64(n)))
		}
	}
	for pattern, bits := range dates {
		if n := len(pattern.FindString(text)); n > 0 {
			yield(n, bits)
		}
	}
}

// rows are characters that are typed one after the other, forwards or backwards.
var rows = func() (all []string) {
	for _, row := range []string{
		"abcdefghijklmnopqrstuvwxyz", "12345678901", "!@#$%^&*()",
		"qwertyuiop", "asdfghjkl", "zxcvbnm", "qwertzuiop", "yxcvbnm", "azertyuiop", "qsdfghjklm", "wxcvbn",
		"1qaz2wsx3edc4rfv5tgb6yhn7ujm",
	} {
		back := []byte(row)
		slices.Reverse(back)
		all = append(all, row, string(back))
	}
	return all
}()

// rowBits are those of where a row is begun.
const rowBits = 8

// dates are a year, and a day of a hundred years with and without something between.
var dates = map[*regexp.Regexp]float64{
	regexp.MustCompile(`^(19|20)\d\d`):                                                                 7,
	regexp.MustCompile(`^((19|20)?\d\d)[-/\\_. ]?[01]?\d[-/\\_. ]?[0-3]?\d`):                           math.Log2(36600) + 2,
	regexp.MustCompile(`^([0-3]?\d[-/\\_. ]?[01]?\d|[01]?\d[-/\\_. ]?[0-3]?\d)[-/\\_. ]?(19|20)?\d\d`): math.Log2(36600) + 2,
}

// alongside is how much of a text's beginning is part of a row.
func alongside(text, row string) int {
	text = asciiLower(text)
	n := 0
	for n < len(text) && strings.Contains(row, text[:n+1]) {
		n++
	}
	return n
}

// word returns the bits of a text that is in the lists, perhaps with capitals, or with
// digits and signs for letters; each adds one. rank is 0 for what is no word.
func word(text string, rank func(string) int) (bits float64, ok bool) {
	small := asciiLower(text)
	bits = math.Inf(1)
	for _, spelt := range []string{small, unleet.Replace(small), unleetL.Replace(small)} {
		if r := rank(spelt); r > 0 {
			own := math.Log2(float64(r))
			if spelt != small {
				own++
			}
			bits, ok = min(bits, own), true
		}
	}
	if small != text {
		bits++
	}
	return bits, ok
}

var (
	leet    = []string{"4", "a", "@", "a", "8", "b", "(", "c", "3", "e", "6", "g", "9", "g", "!", "i", "|", "l", "0", "o", "5", "s", "$", "s", "7", "t", "+", "t", "2", "z", "1", "i"}
	unleet  = strings.NewReplacer(leet...)
	unleetL = strings.NewReplacer(append([]string{"1", "l"}, leet...)...)
)

// asciiLower keeps the length in bytes, which strings.ToLower may not.
func asciiLower(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, s)
}

// alphabet is how many characters there are of the kinds that a password has.
func alphabet(password string) float64 {
	n, others := 0.0, password
	for kind, size := range map[string]float64{"abcdefghijklmnopqrstuvwxyz": 26, "ABCDEFGHIJKLMNOPQRSTUVWXYZ": 26, "0123456789": 10} {
		rest := strings.Map(func(r rune) rune {
			if strings.ContainsRune(kind, r) {
				return -1
			}
			return r
		}, others)
		if len(rest) < len(others) {
			n += size
		}
		others = rest
	}
	if others != "" {
		n += 33
	}
	return n
}

// ranks are the words of zxcvbn's lists with their least ranks.
var ranks = sync.OnceValue(func() map[string]int {
	ranks := map[string]int{}
	for _, name := range []string{"Passwords", "English", "MaleNames", "FemaleNames", "Surnames"} {
		var of struct{ List []string }
		if err := json.Unmarshal(data.MustAsset("data/"+name+".json"), &of); err != nil {
			panic(err) // it is part of the program
		}
		for i, w := range of.List {
			if old, there := ranks[asciiLower(w)]; !there || old > i+1 {
				ranks[asciiLower(w)] = i + 1
			}
		}
	}
	return ranks
})
