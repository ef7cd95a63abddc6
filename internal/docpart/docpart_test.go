package docpart

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReplaced(t *testing.T) {
	const text = "a\n<!-- x -->\nold\n<!-- /x -->\nb\n"
	got, found := replaced(text, "x", "new\n")
	require.True(t, found)
	require.Equal(t, "a\n<!-- x -->\nnew\n<!-- /x -->\nb\n", got)
	_, found = replaced(text, "y", "")
	require.False(t, found)
	_, found = replaced("<!-- x -->\nno end", "x", "")
	require.False(t, found)
}

func TestTable(t *testing.T) {
	require.Equal(t, "| a | b |\n|---|---|\n| 1 | 2 |\n", Table([]string{"a", "b"}, [][]string{{"1", "2"}}))
}
