package telemetrysource

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/internal/docpart"
)

// Every kind says of itself all that others rely on.
func TestKinds(t *testing.T) {
	names := map[Kind]bool{}
	for _, d := range Kinds() {
		t.Run(string(d.Kind), func(t *testing.T) {
			require.False(t, names[d.Kind], "two of this name")
			names[d.Kind] = true
			require.NotEmpty(t, d.Title)
			require.NotEmpty(t, d.Help)
			require.Contains(t, []Poll{PollAlways, PollBetweenTrials}, d.Poll)
			require.GreaterOrEqual(t, d.Interval, minPoll)
			require.Equal(t, d.has("values"), d.PlaceKey != "", "values need a key that says where they are")
			require.Equal(t, d.PlaceKey == "", d.Tells != "", "a kind tells what it reads, or has values")
			require.Equal(t, d.PlaceKey != "", d.Place != nil && d.PlaceTitle != "")
			require.Equal(t, d.has("target"), d.Port != 0)
			require.NotEmpty(t, (&Source{Kind: d.Kind}).Way())
			for _, k := range d.Keys {
				require.NotContains(t, common, k.Name)
				require.NotEmpty(t, k.Meaning, k.Name)
			}
			require.Same(t, d, Of(d.Kind))
			require.Contains(t, Which(d.About), d.Kind)
		})
	}
}

// radio-profiles/README.md lists the kinds and their keys. Write it with:
// go test ./internal/telemetrysource -run TestDocumentListsKinds -update
func TestDocumentListsKinds(t *testing.T) {
	var kinds, keys [][]string
	for _, d := range Kinds() {
		target := "–"
		switch {
		case d.Host != "":
			target = fmt.Sprintf("%s, port %d", d.Host, d.Port)
		case d.Port != 0:
			target = fmt.Sprintf("must be stated; port %d", d.Port)
		}
		kinds = append(kinds, []string{"`" + string(d.Kind) + "`", d.Help, "`" + string(d.Poll) + "`", pause(d.Interval), target})
		for _, k := range d.Keys {
			keys = append(keys, []string{"`" + string(d.Kind) + "`", "`" + k.Name + "`", k.Meaning})
		}
	}
	docpart.Hold(t, "radio-profiles/README.md", "telemetry kinds", docpart.Table([]string{"`kind`", "what is read", "`poll` unless stated", "`interval` unless stated", "`target` unless stated"}, kinds)+
		"\n"+docpart.Table([]string{"of", "key", "meaning"}, keys))
}
