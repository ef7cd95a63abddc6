package executor

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestClip(t *testing.T) {
	require.Equal(t, "gave up", clip("gave up"))
	for cut := range 3 { // before, within and after the character at the bound
		s := clip(strings.Repeat("x", maxText-cut) + "ж, and more")
		require.True(t, utf8.ValidString(s), "%q", s[maxText-4:])
		require.True(t, strings.HasSuffix(s, "…"))
		require.LessOrEqual(t, len(s), maxText+len("…"))
	}
}
