package live

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/orchestrator/ingest"
	"linktrial/protocols/contract"
)

// The throughput is of the newest two seconds of each flow of the attempt asked for.
func TestThroughput(t *testing.T) {
	runs := New()
	samples := func(trial, flow int, acked bool, bytesAtSecond ...int64) ingest.Samples {
		s := ingest.Samples{Trial: trial, Attempt: 1, Flow: flow}
		for i, n := range bytesAtSecond {
			x := contract.Sample{ElapsedNS: int64(i) * int64(time.Second), SentBytes: n}
			if acked {
				x.SentBytes, x.AckedBytes = 10*n, &n
			}
			s.Samples = append(s.Samples, x)
		}
		return s
	}
	_, known := runs.Throughput("r", 0, 1)
	require.False(t, known, "a run of which nothing is known")
	runs.Stored(ingest.Delta{Run: "r", Fresh: []ingest.Samples{samples(4, 0, false, 0, 9000), samples(5, 0, true, 0)}})
	_, known = runs.Throughput("r", 5, 1)
	require.False(t, known, "of one sample there is none")
	got, known := runs.Throughput("r", 4, 1)
	require.False(t, known, "another attempt has begun")
	require.Zero(t, got)

	runs.Stored(ingest.Delta{Run: "r", Fresh: []ingest.Samples{samples(6, 0, true, 0, 5000, 6000, 8000), samples(6, 1, false, 0, 100)}})
	got, known = runs.Throughput("r", 6, 1)
	require.True(t, known)
	require.InDelta(t, (8000-5000)/2.0+100, got, 1e-9)
	_, known = runs.Throughput("r", 6, 2)
	require.False(t, known)
}
