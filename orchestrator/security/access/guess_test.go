package access

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEntropy: what is known costs little more than to name it, and the rest is counted
// by character, in bits.
func TestEntropy(t *testing.T) {
	for password, want := range map[string]float64{
		"":               0,
		"anna":           0, // known
		"password":       0, // the first of its list
		"PASSWORD":       1,
		"p455word":       1,
		"Pa$$word":       2,
		"kkkkkkkk":       math.Log2(26) + 3,
		"lkjhgfds":       8 + 3,
		"2031":           7,
		"#_#":            3 * math.Log2(33),
		"anna2031":       7,
		"13.11.2031":     math.Log2(36600) + 2,
		"\u00e4":         2 * math.Log2(33),
		"\xff":           math.Log2(33),
		"password#~#2X>": 2*math.Log2(95) + 4*math.Log2(95),
	} {
		require.InDelta(t, want, entropy(password, "Anna"), 1e-9, password)
	}
	for _, common := range []string{"iloveyou12", "trustno1!!", "Jennifer1984", "1qaz2wsx3e", "asdfghjkl1", "24/12/2031", "31122031", "zyxwvutsrq", "michael.smith"} {
		require.Less(t, entropy(common), leastEntropy, common)
	}
	require.Greater(t, entropy(strings.Repeat("\u00fc\u20ac7", 6)), leastEntropy)
}
