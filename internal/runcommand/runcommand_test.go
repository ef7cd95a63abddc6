package runcommand

import (
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/internal/docpart"
)

func TestCommands(t *testing.T) {
	names := map[string]bool{}
	for _, c := range All() {
		require.False(t, names[c.Name], c.Name)
		names[c.Name] = true
		require.Same(t, c, Of(c.Name))
		require.NotEmpty(t, c.Short, c.Name)
		require.NotEmpty(t, c.Does, c.Name)
		require.NotEmpty(t, c.Page, c.Name)
		require.True(t, c.Trial || !c.Attempt, c.Name)
	}
	require.Nil(t, Of("release"))
	require.Equal(t, []string{Pause, Resume, Skip, Repeat}, Led())
	require.Equal(t, "exclude RUN --trial N --attempt M --reason …", Of(Exclude).Usage())
}

// docs/guide.md lists the commands. Write it with:
// go test ./internal/runcommand -run TestDocumentListsCommands -update
func TestDocumentListsCommands(t *testing.T) {
	var rows [][]string
	for _, c := range All() {
		rows = append(rows, []string{c.Page, "`linktrial run " + c.Usage() + "`", c.Does})
	}
	docpart.Hold(t, "docs/guide.md", "run commands", docpart.Table([]string{"on the page", "on the command line", "what happens"}, rows))
}
