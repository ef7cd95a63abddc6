package host

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
)

func TestParse(t *testing.T) {
	ms := func(n int64) *time.Duration {
		d := time.Duration(n) * time.Millisecond
		return &d
	}
	require.Equal(t, ms(1720210), parsePressure([]byte("some avg10=98.38 avg60=98.54 avg300=98.52 total=1720210000\nfull avg10=0.00 total=5\n")))
	require.Nil(t, parsePressure(nil), "a kernel without it")
	require.Nil(t, parsePressure([]byte("some total=x\n")))
	require.Equal(t, ms(66960), parseSteal([]byte("cpu  281151 45405 72302 37031 1863 0 1359 6696 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n")))
	require.Nil(t, parseSteal([]byte("cpu 1 2 3\n")))
	require.Equal(t, "/system.slice/linktrial-agent.service", parseGroup([]byte("1:cpu:/x\n0::/system.slice/linktrial-agent.service\n")))
	require.Empty(t, parseGroup([]byte("0::/\n")), "the root")
	require.Empty(t, parseGroup([]byte("0::/../x\n")), "outside of the namespace")
	require.Equal(t, ms(12), parseThrottled([]byte("usage_usec 5\nnr_throttled 3\nthrottled_usec 12000\n")))
	require.Nil(t, parseThrottled([]byte("usage_usec 5\n")))
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("some avg10=98.38 total=1720210000\n0::/a\ncpu 1 2 3 4 5 6 7 8\nthrottled_usec 1\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, d := range []*time.Duration{parsePressure(b), parseSteal(b), parseThrottled(b)} {
			if d != nil && *d < 0 {
				t.Errorf("%s", *d)
			}
		}
		parseGroup(b)
	})
}

func TestSince(t *testing.T) {
	at := func(n time.Duration) *time.Duration { return &n }
	load := counters{pressure: at(5 * time.Second), steal: at(1)}.since(counters{pressure: at(2 * time.Second), throttled: at(3)})
	require.Equal(t, at(3*time.Second), load.Pressure)
	require.Nil(t, load.Steal, "it was not known before")
	require.Nil(t, load.Throttled)
}

// What is tolerated is nothing that was missed.
func TestAdd(t *testing.T) {
	m := measurement{tolerate: 5 * time.Millisecond}
	for _, late := range []time.Duration{0, 4 * time.Millisecond, 25 * time.Millisecond, 6 * time.Millisecond} {
		m.add(late)
	}
	require.Equal(t, 21*time.Millisecond, m.missed)
	require.Equal(t, 25*time.Millisecond, m.longest)
}

// What is missed lies in the time in which the thread was not woken, beyond what is tolerated.
func TestAddAt(t *testing.T) {
	const ms = time.Millisecond
	m := measurement{tolerate: 5 * ms, began: time.Hour}
	m.addAt(time.Hour+10*ms, 4*ms)
	m.addAt(time.Hour+20*ms, 25*ms)
	m.addAt(time.Hour+60*ms, 7*ms)
	m.addAt(time.Hour+180*ms, 145*ms)
	require.Equal(t, []journal.LateAt{{After: 0, Missed: 22 * ms}, {After: 100 * ms, Missed: 15 * ms}, {After: 200 * ms, Missed: 100 * ms}, {After: 300 * ms, Missed: 25 * ms}}, m.late)
	require.Equal(t, 162*ms, m.missed)
	h := journal.HostWatched{Late: m.late}
	require.Equal(t, 115*ms, h.During(100*ms, 290*ms))
	require.Zero(t, h.During(400*ms, time.Second))
}

// One measurement after the other, without a pause between them.
func TestWatch(t *testing.T) {
	w := Start()
	defer w.Stop()
	for range 2 {
		end := w.Begin(time.Hour)
		require.Eventually(t, func() bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.attempt.longest > 0 // no wake-up is on time to the nanosecond
		}, time.Minute, time.Millisecond)
		load := end()
		require.Positive(t, load.Longest)
		require.Zero(t, load.Missed, "an hour is tolerated")
	}
}

// A thread that has not been woken when the attempt ends has missed that time.
func TestOverdue(t *testing.T) {
	w := &Watch{counters: func() counters { return counters{} }, begun: make(chan struct{}, 1)}
	end := w.Begin(2 * time.Millisecond)
	w.due = monotonic() - 50*time.Millisecond
	load := end()
	require.GreaterOrEqual(t, load.Longest, 50*time.Millisecond)
	require.GreaterOrEqual(t, load.Missed, 48*time.Millisecond)
	w.woken(monotonic()) // after the end
	require.Nil(t, w.attempt)
}
