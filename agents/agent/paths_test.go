package agent

import (
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/agents/preflight"
	"linktrial/executor"
	"linktrial/internal/radio"
)

func TestSparePorts(t *testing.T) {
	for text, want := range map[string]executor.PortRange{DefaultSparePorts: {First: 5900, Last: 5998}, "none": {}, "5801-5801": {First: 5801, Last: 5801}} {
		got, err := ParseSparePorts(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got)
	}
	for _, text := range []string{"", "5900", "5998-5900", "80-90", "5900-5999", "5900-5998x", "a-b"} {
		_, err := ParseSparePorts(text)
		require.Error(t, err, text)
	}
}

func TestMoreRadiosAreRead(t *testing.T) {
	got, err := ParseMoreRadios([]string{"eth2=10.78.0.2", "eth3=fd78::2"})
	require.NoError(t, err)
	require.Equal(t, []preflight.Radio{{Device: "eth2", Address: "10.78.0.2"}, {Device: "eth3", Address: "fd78::2"}}, got)
	for _, text := range []string{"", "eth2", "=10.78.0.2", "eth2=", "eth2=10.78.0.2/24", "a name=10.78.0.2", "wwp0s20f0u7i12345=10.78.0.2"} {
		_, err := ParseMoreRadios([]string{text})
		require.Error(t, err, text)
	}
	for _, more := range [][]preflight.Radio{{{Device: "radio0"}}, {{Device: "eth2"}, {Device: "eth2"}}} {
		c := Config{Name: "relay", Device: "radio0", More: more}
		require.ErrorContains(t, c.check(), "is given twice")
	}
}

func TestSlowestLink(t *testing.T) {
	require.Zero(t, slowest(nil))
	require.InDelta(t, 75, slowest(&radio.Network{Links: []radio.Link{{RateBitsPerSecond: 300}, {RateBitsPerSecond: 75}}}), 0)
}
