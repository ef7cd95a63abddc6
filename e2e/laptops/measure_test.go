package laptops

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// measure measures the link of two radios without a name: its rate is not known, so one run
// searches the capacity and a second one measures the rest.
func (p *pair) measure(t *testing.T) {
	require.Contains(t, p.a.On("linktrial measure --dry-run 2>&1"), "its rate is not known")
	out := p.a.On("linktrial measure --quiet")
	t.Log(out)
	require.Contains(t, out, "real, unnamed radio")
	require.NotContains(t, out, "Partial")
	// A cable carries more than the highest rate that is tried.
	require.Regexp(t, `capacity +client → server +\S+ Mbit/s +at least: no rate was too much`, out)
	for _, use := range []string{"voice", "chat and positions", "pictures", "files"} {
		require.Regexp(t, `(?m)^  `+use+` +YES$`, out)
	}
	for _, plan := range []string{"measure-search", "measure-rest"} {
		require.Contains(t, p.a.On("linktrial run list"), plan)
	}
}
