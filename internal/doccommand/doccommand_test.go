package doccommand

import (
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

func TestCalls(t *testing.T) {
	const program, path = "linktrial", "./tools/bench"
	for line, want := range map[string][][]string{
		"sudo bin/linktrial lab up|down --name a > file  # of a day": {{"lab", "up", "--name", "a"}, {"lab", "down", "--name", "a"}},
		"linktrial nodes | grep linktrial && linktrial results":      {{"nodes"}, {"results"}},
		"cat linktrial": nil,
		"bench large":   nil,
	} {
		require.Equal(t, want, Calls(line, program), line)
	}
	for line, want := range map[string][][]string{
		"go run ./tools/bench large --samples 500": {{"large", "--samples", "500"}},
		"sudo -E go run ./tools/bench":             {{}},
		"go test ./tools/bench":                    nil,
		"go run ./tools/fuzz":                      nil,
	} {
		require.Equal(t, want, Calls(line, path), line)
	}
}

func TestMarkdownCode(t *testing.T) {
	require.Equal(t, []string{"a b", "c", "d  e", "f"}, markdownCode("text `a b` and `c`\n```\nd \\\ne\n```\n\n    f\n"))
}

func TestParse(t *testing.T) {
	root := func() *cobra.Command {
		c := &cobra.Command{Use: "x", Args: cobra.OnlyValidArgs, ValidArgs: []string{"one"}, Run: func(*cobra.Command, []string) {}}
		c.Flags().Int("n", 0, "")
		return c
	}
	require.NoError(t, Parse(root(), []string{"one", "--n", "N"}, false))
	require.NoError(t, Parse(root(), []string{"one", "--n", "3"}, true))
	require.ErrorContains(t, Parse(root(), []string{"two"}, true), "two")
	require.ErrorContains(t, Parse(root(), []string{"one", "--m", "3"}, false), "--m")
}
