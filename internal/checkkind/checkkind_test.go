package checkkind

import (
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/internal/docpart"
)

func TestKinds(t *testing.T) {
	for i, k := range Kinds() {
		require.Equal(t, i, Place(k.Name), "%s is there twice", k.Name)
		require.Same(t, k, Of(k.Name))
		require.NotEmpty(t, k.Good, k.Name)
		require.NotEmpty(t, k.Bad, k.Name)
	}
	require.Nil(t, Of("route"))
	require.Equal(t, len(Kinds()), Place("route"))
}

// docs/radios.md lists the checks. Write it with:
// go test ./internal/checkkind -run TestDocumentListsChecks -update
func TestDocumentListsChecks(t *testing.T) {
	var rows [][]string
	for _, k := range Kinds() {
		rows = append(rows, []string{k.Name, k.Good, k.Bad})
	}
	docpart.Hold(t, "docs/radios.md", "checks", docpart.Table([]string{"check", "green when", "red or yellow means"}, rows))
}
