package ingest_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/orchestrator/ingest"
	"linktrial/orchestrator/store/storetest"
	"linktrial/protocols/contract"
)

// threeFlows is a sheet of trials with three flows, the second one of which has both
// ends at the client, so that its journal has samples of either.
func threeFlows() *runsheet.Sheet {
	sheet := storetest.Sheet(2)
	for i := range sheet.Trials {
		one := sheet.Trials[i].Flows[0]
		both := one
		both.To = one.From
		sheet.Trials[i].Flows = []runsheet.Flow{one, both, one}
	}
	return sheet
}

// variedSamples is a transfer's journal whose samples have any metrics, or none.
func variedSamples(run string, sheet *runsheet.Sheet, records int) *storetest.Journal {
	j := storetest.NewJournal(run, radio.RoleClient)
	j.Begin(sheet)
	j.Start(sheet, 0, 1)
	rng := rand.New(rand.NewPCG(1, 2))
	value := func() *int64 {
		if rng.IntN(2) == 0 {
			return nil
		}
		return new(rng.Int64N(1 << 40))
	}
	rate := func() *float64 {
		if rng.IntN(3) > 0 {
			return nil
		}
		return new(rng.Float64() * 1e9)
	}
	for i := range records {
		b := journal.Samples{Trial: i % 2, Attempt: 1, Flow: i % 3, Side: []string{"client", "server", "client"}[i%3]}
		for k := range i % 5 { // some have none
			s := contract.Sample{ElapsedNS: int64(i*1_000_000_000 + k*123_456_789), SentBytes: int64(k)}
			if i%7 > 0 { // some have nothing else
				s.AckedBytes, s.CwndBytes, s.SsthreshBytes, s.FlightBytes = value(), value(), value(), value()
				s.SRTTUS, s.RTTVarUS, s.RTOUS, s.Retransmits, s.Timeouts, s.LossEvents = value(), value(), value(), value(), value(), value()
				s.PacingBPS, s.BandwidthBPS = rate(), rate()
			}
			if k == 1 {
				s.More = map[string]float64{"window_bytes": 1.5, "a\"b, {c}\\ NULL \x00": 2}
			}
			b.Samples = append(b.Samples, s)
		}
		j.Add(journal.TypeSamples, b)
	}
	return j
}

// Samples leave the same tables whether they come alone, as while a trial runs,
// or among other records, and however often and by how many at once.
func TestSamplesOneByOne(t *testing.T) {
	sheet := threeFlows()
	reference, referenceURL := open(t)
	run := storetest.AddRun(t, reference, "same", sheet)
	j := variedSamples(run, sheet, 60)
	_, err := ingest.New(ingest.Config{Store: reference}).Deliver(t.Context(), run, "client", batch(j, 1, len(j.Records)))
	require.NoError(t, err)
	want := tables(t, referenceURL)
	require.Contains(t, want["samples"], `"a\"b, {c}\\ NULL `)

	s, url := open(t)
	require.Equal(t, run, storetest.AddRun(t, s, "same", sheet))
	var mu sync.Mutex
	records, samples, structure, fresh := 0, 0, 0, 0
	in := ingest.New(ingest.Config{Store: s, Stored: func(d ingest.Delta) {
		mu.Lock()
		defer mu.Unlock()
		records, samples, fresh = records+d.Records, samples+d.Samples, fresh+len(d.Fresh)
		if d.Structure {
			structure++
		}
	}})
	head := len(j.Records) - 60
	_, err = in.Deliver(t.Context(), run, "client", batch(j, 1, head))
	require.NoError(t, err)
	var g errgroup.Group
	for worker := range 3 {
		g.Go(func() error {
			rng := rand.New(rand.NewPCG(7, uint64(worker)))
			for next := head + 1; next <= len(j.Records); {
				committed, err := in.Deliver(t.Context(), run, "client", batch(j, next, min(len(j.Records), next+rng.IntN(3))))
				if err != nil {
					return err
				}
				next = int(committed) + 1 - rng.IntN(2)*rng.IntN(2)
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
	if diff := cmp.Diff(want, tables(t, url)); diff != "" {
		t.Error(diff)
	}
	require.Equal(t, len(j.Records), records, "records reported as new")
	require.Equal(t, strings.Count(want["samples"], "\n")+1, samples)
	require.Equal(t, 1, structure)
	require.Equal(t, 32, fresh, "records of the client's side with samples")
}

// Samples that cannot be stored are refused in the same words whether they come
// alone or not, and nothing of them is stored.
func TestSamplesThatAreRefused(t *testing.T) {
	s, url := open(t)
	sheet := storetest.Sheet(2)
	run := storetest.AddRun(t, s, "badsamples", sheet)
	in := ingest.New(ingest.Config{Store: s})
	j := storetest.NewJournal(run, radio.RoleClient)
	j.Begin(sheet)
	j.Start(sheet, 0, 1)
	j.Samples(0, 1, 2)
	n := len(j.Records)
	_, err := in.Deliver(t.Context(), run, "client", batch(j, 1, n))
	require.NoError(t, err)
	before := tables(t, url)
	record := func(role string, trial int, side string, sent int) ingest.Record {
		return ingest.Record{Seq: int64(n + 1), JSON: fmt.Appendf(nil, `{"seq":%d,"run":%q,"node":"client","role":%q,"at":%q,"type":"samples","body":{"trial":%d,"attempt":1,"flow":0,"side":%q,"samples":[{"elapsed_ns":1,"sent_bytes":%d}]}}`,
			n+1, run, role, time.Unix(1e9, 0).UTC().Format(time.RFC3339), trial, side, sent)}
	}
	var foreign *ingest.RefusedError
	_, err = in.Deliver(t.Context(), run, "client", []ingest.Record{record("relay", 0, "client", 1)})
	require.ErrorAs(t, err, &foreign)
	require.ErrorContains(t, err, "it is of a relay")
	_, err = in.Deliver(t.Context(), "none-1", "client", []ingest.Record{{Seq: 1, JSON: []byte(strings.Replace(strings.Replace(string(record("client", 0, "client", 1).JSON), run, "none-1", 1), fmt.Sprintf(`"seq":%d`, n+1), `"seq":1`, 1))}})
	require.ErrorIs(t, err, ingest.ErrNotFound)
	other := storetest.NewJournal(run, radio.RoleClient)
	other.Records = append(other.Records, j.Records[:n-1]...)
	other.Samples(0, 1, 3)
	var conflict *ingest.ConflictError
	_, err = in.Deliver(t.Context(), run, "client", batch(other, n, n))
	require.ErrorAs(t, err, &conflict)
	committed, err := in.Deliver(t.Context(), run, "client", batch(j, n, n))
	require.NoError(t, err)
	require.EqualValues(t, n, committed)
	if diff := cmp.Diff(before, tables(t, url)); diff != "" {
		t.Error(diff)
	}
	for _, r := range []ingest.Record{record("client", 2, "client", 1), record("client", 0, "client", -1), record("client", 0, "sideways", 1)} {
		n++
		r.Seq, r.JSON = int64(n), bytes.Replace(r.JSON, fmt.Appendf(nil, `{"seq":%d,`, len(j.Records)+1), fmt.Appendf(nil, `{"seq":%d,`, n), 1)
		committed, err := in.Deliver(t.Context(), run, "client", []ingest.Record{r})
		require.NoError(t, err)
		require.EqualValues(t, n, committed, "the reason takes its place")
	}
	require.Equal(t, before["samples"], tables(t, url)["samples"])
	require.Equal(t, 3, strings.Count(tables(t, url)["journal"], "refused"))
}
