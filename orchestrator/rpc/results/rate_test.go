package results

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/protocols/contract"
)

// The last sample of a transfer, 2 ms after the one before, has no rate of its own.
func TestRateOfSamples(t *testing.T) {
	c := sampleColumns{begins: true}
	var got []float64
	for _, s := range []struct {
		at    float64
		acked int64
	}{{0.1, 1000}, {0.2, 2000}, {0.2, 2500}, {0.3, 3000}, {0.302, 3500}} {
		got = append(got, c.rate(s.at, &contract.Sample{SentBytes: 9000, AckedBytes: new(s.acked)}))
	}
	require.True(t, math.IsNaN(got[2]), "no time has passed")
	require.InDeltaSlice(t, []float64{10_000, 10_000, 5000, 1000 / 0.102}, append(got[:2:2], got[3:]...), 1e-6)

	part := sampleColumns{} // of a transfer that began before
	require.True(t, math.IsNaN(part.rate(7, &contract.Sample{SentBytes: 9000})))
	require.InDelta(t, 10_000, part.rate(7.1, &contract.Sample{SentBytes: 10_000}), 1e-6)
}
