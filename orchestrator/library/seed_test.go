package library

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSeedOfARepetition(t *testing.T) {
	for _, c := range []struct {
		text string
		n    int
		want string
	}{
		{"name: a\nseed: 1\n", 1, "name: a\nseed: 1\n"},
		{"name: a\nseed: 1 # drawn\nsize: 1", 3, "name: a\nseed: 3 # drawn\nsize: 1"},
		{"name: a\r\nseed: 9\r\nsize: 1\r\n", 2, "name: a\r\nseed: 10\r\nsize: 1\r\n"},
		{"{name: Ünïcode, seed: 0x10, size: 1}", 2, "{name: Ünïcode, seed: 17, size: 1}"},
		{"seed:\n  1_000\n", 2, "seed:\n  1001\n"},
		{"seed: 18446744073709551615", 2, "seed: 0"},
		{"x: {seed: 4}\nseed: 5", 2, "x: {seed: 4}\nseed: 6"},
	} {
		got, err := withSeedOf(c.n, []byte(c.text))
		require.NoError(t, err, c.text)
		require.Equal(t, c.want, string(got))
	}
	for _, text := range []string{"", "name: a", "seed: ", "seed: -1", "seed: [1]", "seed: one", `seed: "1"`, "a: &s 1\nseed: *s", "seed: !!int 1", "- 1"} {
		_, err := withSeedOf(2, []byte(text))
		require.ErrorIs(t, err, errSeed, text)
	}
}

// A text that is returned has the seed raised, and is otherwise the one that came in.
func FuzzSeed(f *testing.F) {
	for _, text := range []string{good, "seed: 0x10 # é", "{a: é, seed: 1}", "seed:\n\n 7\n", "a: &x 1\nseed: *x", "\ufeffseed: 1", "seed: 1\u2028b: 2"} {
		f.Add(text, uint16(3))
	}
	f.Fuzz(func(t *testing.T, text string, n uint16) {
		before, _, err := seedOf([]byte(text))
		if err != nil {
			return
		}
		out, err := withSeedOf(int(n)+1, []byte(text))
		if err != nil {
			return
		}
		after, _, err := seedOf(out)
		require.NoError(t, err)
		require.Equal(t, before+uint64(n), after)
		require.Equal(t, strings.Count(text, "\n"), strings.Count(string(out), "\n"))
	})
}
