package report

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
)

func TestMeasureWindow(t *testing.T) {
	const s = time.Second
	zero := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	// even is a flow that began so late and had 100 B more every second.
	even := func(late time.Duration, seconds int) Arrival {
		a := Arrival{Begin: zero.Add(late)}
		for i := 1; i <= seconds; i++ {
			a.Counts = append(a.Counts, Count{time.Duration(i) * s, int64(100 * i)})
		}
		return a
	}
	of := func(begin time.Duration, counts ...Count) Arrival { return Arrival{zero.Add(begin), counts} }
	for name, c := range map[string]struct {
		length time.Duration
		flows  []Arrival
		want   []int64
		known  bool
	}{
		"together":                     {100 * s, []Arrival{even(0, 100), even(0, 100)}, []int64{10000, 10000}, true},
		"one is late":                  {100 * s, []Arrival{even(0, 100), even(30*s, 100)}, []int64{10000, 7000}, true},
		"the order does not matter":    {100 * s, []Arrival{even(30*s, 100), even(0, 100)}, []int64{7000, 10000}, true},
		"one is later than the window": {100 * s, []Arrival{even(0, 100), even(130*s, 100)}, []int64{10000, 0}, true},
		"one ends early":               {100 * s, []Arrival{even(0, 100), even(0, 20)}, []int64{10000, 2000}, true},
		"between two samples":          {100 * s, []Arrival{even(0, 100), even(500*time.Millisecond, 100)}, []int64{10000, 9950}, true},
		"waits long for its answer":    {100 * s, []Arrival{even(0, 100), of(0, Count{90 * s, 9000}, Count{100 * s, 9000}, Count{400 * s, 9100})}, []int64{10000, 9000}, true},
		"no samples, ended before":     {100 * s, []Arrival{even(0, 100), of(0, Count{99 * s, 9900})}, []int64{10000, 9900}, true},
		"no samples, ended after":      {100 * s, []Arrival{even(0, 100), of(0, Count{101 * s, 9900})}, nil, false},
		"a gap at the end":             {100 * s, []Arrival{even(0, 100), of(0, Count{50 * s, 5000}, Count{110 * s, 11000})}, nil, false},
		"a gap before the end":         {100 * s, []Arrival{even(0, 100), of(0, Count{10 * s, 1000}, Count{99 * s, 9900}, Count{101 * s, 10100})}, []int64{10000, 10000}, true},
		"a gap without bytes":          {100 * s, []Arrival{even(0, 100), of(0, Count{50 * s, 5000}, Count{110 * s, 5000})}, []int64{10000, 5000}, true},
		"nothing before the gap":       {100 * s, []Arrival{of(0, Count{90 * s, 0}, Count{150 * s, 10}), of(0, Count{100 * s, 0})}, nil, false},
		"a burst that samples show":    {100 * s, []Arrival{of(0, Count{99 * s, 1000}, Count{101 * s, 2000}), of(0, Count{90 * s, 0})}, []int64{1500, 0}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := MeasureWindow(c.length, 100*time.Millisecond, c.flows, 0)
			require.Equal(t, c.known, w.Unknown == "", w.Unknown)
			require.Equal(t, c.want, w.Bytes)
		})
	}
}

// TestMeasureWindowOfRareSamples: samples as rare as the plan has them are no gap.
func TestMeasureWindowOfRareSamples(t *testing.T) {
	const s = time.Second
	flows := []Arrival{{Counts: []Count{{8 * s, 800}, {12 * s, 1200}}}, {Counts: []Count{{5 * s, 100}}}}
	require.Equal(t, []int64{1000, 100}, MeasureWindow(10*s, 2*s, flows, 0).Bytes)
	require.NotEmpty(t, MeasureWindow(10*s, s, flows, 0).Unknown)
}

// TestThroughputInWindow: the stored bytes are the value, whatever the flows' own
// times say.
func TestThroughputInWindow(t *testing.T) {
	const s = time.Second
	a := &Attempt{Verdict: journal.Succeeded, Verified: true, Elapsed: 140 * s, SizeBytes: 30000,
		Flows:  []Flow{{SizeBytes: 10000, Elapsed: 100 * s, Bound: 100 * s}, {SizeBytes: 10000, Connect: 30 * s, Elapsed: 110 * s, Bound: 100 * s}, {SizeBytes: 10000, Elapsed: 400 * s, Bound: 100 * s}},
		Window: &CommonWindow{Length: 100 * s, Bytes: []int64{10000, 7000, 9900}}}
	require.InDelta(t, 269, a.ThroughputBytesPerSecond(), 1e-9)
	o := observe(&Trial{Iteration: 1}, a, 0)
	var sum float64
	for _, f := range o.flows {
		sum += f.kbps
	}
	require.InDelta(t, o.kbps, sum, 1e-9)

	a.Window = &CommonWindow{Length: 100 * s, Unknown: "no samples"}
	require.Zero(t, a.ThroughputBytesPerSecond())
	require.False(t, a.Valid())
}

// TestWindowThatRunsAhead: what the server's samples say for certain is no more than the
// radio delivered; between two samples nothing is certain.
func TestWindowThatRunsAhead(t *testing.T) {
	const s = time.Second
	flows := []Arrival{{Counts: []Count{{9 * s, 800}, {11 * s, 1200}}}, {Counts: []Count{{5 * s, 100}}}}
	require.Equal(t, []int64{1000, 100}, MeasureWindow(10*s, 2*s, flows, 900).Bytes)
	w := MeasureWindow(10*s, 2*s, flows, 899)
	require.Nil(t, w.Bytes)
	require.Equal(t, "the server's samples have 900 bytes of payload within 10s, the emulated radio delivered at most 899 with all headers to it in any such time", w.Unknown)
}
