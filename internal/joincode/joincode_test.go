package joincode

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWordsAreDistinct(t *testing.T) {
	require.Len(t, words, wordCount)
	require.True(t, slices.IsSorted(words), "they are searched")
	for i, w := range words {
		require.Regexp(t, "^[a-z]{4,8}$", w)
		for _, other := range words[:i] {
			require.NotEqual(t, other[:3], w[:3], "%s and %s begin alike", other, w)
			require.False(t, oneLetterApart(other, w), "%s and %s", other, w)
		}
	}
}

func TestOneLetterApart(t *testing.T) {
	for _, c := range []struct {
		a, b string
		is   bool
	}{
		{"tango", "tanga", true}, {"tango", "tngo", true}, {"tango", "tangoo", true}, {"tango", "xtango", true}, {"tango", "mango", true},
		{"tango", "tango", false}, {"tango", "tnago", false}, {"tango", "tan", false}, {"", "a", true},
	} {
		require.Equal(t, c.is, oneLetterApart(c.a, c.b), "%s %s", c.a, c.b)
		require.Equal(t, c.is, oneLetterApart(c.b, c.a), "%s %s", c.b, c.a)
	}
}

func TestParse(t *testing.T) {
	want, err := Parse("4821-tango-river")
	require.NoError(t, err)
	require.Equal(t, "4821-tango-river", want.String())
	for _, s := range []string{"4821 Tango River", " 4 8 2 1  TANGO, river.", "48-21-tango-river\n", "4821—tango–river"} {
		got, err := Parse(s)
		require.NoError(t, err, s)
		require.Equal(t, want, got, s)
	}
	zero, err := Parse("42 tango tango")
	require.NoError(t, err)
	require.Equal(t, "0042-tango-tango", zero.String())
	require.Equal(t, "zero zero four two, tango, tango", zero.Spoken())

	for s, says := range map[string]string{
		"":                              `code "", expected four digits and two words, as 4821-tango-river`,
		"tango-river":                   "expected four digits",
		"48211-tango-river":             "expected four digits",
		"4821-tango":                    "expected four digits",
		"4821-tango-river-on":           "expected four digits",
		"48a1-tango-river":              "expected four digits",
		"4821-tanga-river":              `no code has the word "tanga"; is it "tango"?`,
		"4821-tango-rivulet":            `no code has the word "rivulet"; is it "river"?`,
		"4821-tango-xyz":                `no code has the word "xyz"; ask for it again`,
		strings.Repeat("1", maxTyped+1): "code of 101 bytes",
	} {
		_, err := Parse(s)
		require.ErrorContains(t, err, says, s)
	}
}

// Each number is another code, so that all are equally likely.
func TestNumbersAreCodes(t *testing.T) {
	require.Equal(t, "0000-"+words[0]+"-"+words[0], at(0).String())
	require.Equal(t, "9999-"+words[255]+"-"+words[255], at(Count-1).String())
	require.Equal(t, "0001-"+words[2]+"-"+words[3], at(1+digitCount*(2+wordCount*3)).String())
	seen := map[string]bool{}
	for range 100 {
		c := New()
		again, err := Parse(c.String())
		require.NoError(t, err)
		require.Equal(t, c, again)
		seen[c.String()] = true
	}
	require.Greater(t, len(seen), 98, "two equal ones among 100: one time in 130 000")
}

func FuzzParse(f *testing.F) {
	f.Add("4821-tango-river")
	f.Add(" 42 TANGO, river")
	f.Add("4821-tanga-rivér")
	f.Fuzz(func(t *testing.T, s string) {
		c, err := Parse(s)
		if err != nil {
			return
		}
		if again, err := Parse(c.String()); err != nil || again != c {
			t.Fatalf("%q is %q, which is %q: %v", s, c, again, err)
		}
	})
}
