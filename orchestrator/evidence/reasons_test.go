package evidence

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestJournalsByReason(t *testing.T) {
	var u JournalsByReason
	u.Add("abcd-1", "alpha", "it was refused")
	for run := range 40 {
		for _, node := range []string{"client", "server"} {
			u.Add(fmt.Sprintf("abcd-%d", run+1), node, "no certificate")
		}
	}
	for i := range 8 {
		u.Add("abcd-9", fmt.Sprintf("n%d", i), "too old")
	}
	var got []string
	u.Each(func(journals string, several bool, why string) {
		got = append(got, fmt.Sprint(journals, " ", several, ": ", why))
	})
	require.Equal(t, []string{
		"the journal of node alpha of run abcd-1 false: it was refused",
		"80 journals of 40 runs (nodes client, server) true: no certificate",
		"8 journals of run abcd-9 (nodes n0, n1, n2, n3, n4, n5 and 2 more) true: too old",
	}, got)
}
