package results

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/internal/radiocontrol"
)

// FuzzNumbered: iterations and parts are numbers from 1, and only of drawings.
func FuzzNumbered(f *testing.F) {
	for _, s := range []string{"csv", "sequence-svg", "sequence-svg:3", "sequence-svg:0", "sequence-svg:x", "sequence-svg:99999999999999999999", "svg:2", "csv:2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, format string) {
		name, n, err := numbered(format)
		switch {
		case err != nil:
			require.Empty(t, name)
		case n == 0:
			require.Equal(t, format, name)
		default:
			require.True(t, strings.HasSuffix(name, "svg"))
			again, m, err := numbered(fmt.Sprintf("%s:%d", name, n))
			require.NoError(t, err)
			require.Equal(t, name, again)
			require.Equal(t, n, m)
			require.Positive(t, n)
		}
	})
}

// FuzzChannels: a report of an emulated radio gives as many series as it has, each no
// longer than what was sent.
func FuzzChannels(f *testing.F) {
	b, err := json.Marshal(map[string]any{"channels": []radiocontrol.ChannelHistory{{From: "client", To: "server", Step: time.Second, AtUS: []int64{0, 1}, Loss: []float64{0, 0.5}}}})
	require.NoError(f, err)
	f.Add(b)
	f.Add([]byte(`{"channels":[null]}`))
	f.Add([]byte(`{"channels":null}`))
	f.Add([]byte("["))
	f.Fuzz(func(t *testing.T, report []byte) {
		series, err := channels(report)
		if err != nil {
			require.Empty(t, series)
			return
		}
		for _, s := range series {
			require.LessOrEqual(t, len(s.At)+len(s.Loss)+len(s.DelayMs), len(report))
		}
	})
}
