package executor

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/protocols/contract"
)

// A cumulative metric that goes back is told once; others may, and so may what is absent.
func TestValuesThatGoBack(t *testing.T) { synctest.Test(t, testValuesThatGoBack) }

func testValuesThatGoBack(t *testing.T) {
	n := func(v int64) *int64 { return &v }
	at := func(s, sent int64) contract.Sample {
		return contract.Sample{ElapsedNS: s * int64(time.Second), SentBytes: sent}
	}
	b := &sampleBatch{clock: systemClock{}}
	require.Empty(t, b.add(at(1, 100), 1))
	acknowledged := at(2, 100)
	acknowledged.AckedBytes, acknowledged.Retransmits, acknowledged.SRTTUS = n(90), n(7), n(5000)
	require.Empty(t, b.add(acknowledged, 1))
	require.Empty(t, b.add(at(2, 200), 1)) // absent
	paths := at(3, 200)
	paths.AckedBytes, paths.Retransmits, paths.SRTTUS = n(100), n(3), n(4000) // a path and its counts are gone
	require.Empty(t, b.add(paths, 1))
	fewer := at(4, 200)
	fewer.AckedBytes = n(99)
	require.Equal(t, "acked_bytes went back from 100 to 99 in a sample", b.add(fewer, 1))
	require.Empty(t, b.add(at(3, 100), 1))

	b = &sampleBatch{clock: systemClock{}}
	require.Empty(t, b.add(at(2, 100), 1))
	require.Equal(t, "elapsed_ns went back from 2000000000 to 1000000000 in a sample", b.add(at(1, 100), 1))
}

// The mean of round-trip times is over time, however far samples are apart; what is not known
// has no weight.
func TestRoundTrips(t *testing.T) {
	n := func(v int64) *int64 { return &v }
	var r roundTrips
	require.Nil(t, r.result())
	r.add(&contract.Sample{ElapsedNS: 1e8})
	require.Nil(t, r.result())
	r.add(&contract.Sample{ElapsedNS: 2e8, SRTTUS: n(40_000), MinRTTUS: n(39_000)})
	r.add(&contract.Sample{ElapsedNS: 5e8, SRTTUS: n(80_000), MinRTTUS: n(38_000)})
	r.add(&contract.Sample{ElapsedNS: 5e8, SRTTUS: n(900_000), MinRTTUS: n(41_000)}) // of the same moment
	// (40 ms × 0.1 s + 80 ms × 0.3 s) / 0.4 s
	got := r.result()
	require.InDelta(t, 70_000, got.MeanUS, 1e-9)
	require.EqualValues(t, 38_000, *got.LeastUS)
}
