package store_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol"
	"linktrial/orchestrator/campaign/campaigndb"
	"linktrial/orchestrator/ingest"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/storetest"
	"linktrial/protocols/contract"
)

func deliver(t testing.TB, s *store.Store, j *storetest.Journal) {
	t.Helper()
	var records []ingest.Record
	for i, r := range j.Records {
		records = append(records, ingest.Record{Seq: int64(i + 1), JSON: r})
	}
	_, err := ingest.New(ingest.Config{Store: s}).Deliver(t.Context(), j.Run, string(j.Role), records)
	require.NoError(t, err)
}

// A data set holds what the journals said, nothing else.
func TestDataset(t *testing.T) {
	s := storetest.Open(t)
	sheet := storetest.Sheet(4)
	run := storetest.AddRun(t, s, "data", sheet)
	deliver(t, s, storetest.Lead(run, sheet, 3))

	var told []string
	ds, err := s.Dataset(t.Context(), store.Scope{Campaign: "data"}, func(read, of int) { told = append(told, fmt.Sprint(read, "/", of)) })
	require.NoError(t, err)
	require.Equal(t, []string{"1/1"}, told)
	require.False(t, ds.Complete, "the run has not ended")
	require.False(t, ds.Runs[0].Trials[1].Attempts[0].Verified, "the server has said nothing yet")

	deliver(t, s, storetest.Serve(run, sheet))
	n, err := campaigndb.New(s).SetEnded(t.Context(), campaigndb.SetEndedParams{ID: run, State: "completed"})
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
	ds, err = s.Dataset(t.Context(), store.Scope{Campaign: "data", Run: run}, nil)
	require.NoError(t, err)
	require.True(t, ds.Complete)
	require.Equal(t, "test", ds.Plan)
	require.Len(t, ds.Runs, 1)
	r := ds.Runs[0]
	require.Equal(t, "completed", r.State)
	require.Equal(t, "emulated, real time", r.Place)
	require.Equal(t, sheet, r.Sheet)
	require.Equal(t, "kernel", r.Provenance["server"].Kernel)
	require.Equal(t, []journal.ClockOffset{{When: "before", Offset: 2 * time.Millisecond, Error: time.Millisecond}}, r.Clocks["client"])
	require.Len(t, r.Trials, 4)

	first := r.Trials[0]
	require.Equal(t, journal.Succeeded, first.Verdict)
	require.Len(t, first.Attempts, 2)
	failed, good := first.Attempts[0], first.Attempts[1]
	require.Equal(t, journal.Failed, failed.Verdict)
	require.Equal(t, "reset", failed.Reason)
	require.Equal(t, "log\uFFFDwith a zero byte", failed.Log)
	require.False(t, failed.Verified)
	require.Zero(t, failed.ThroughputBytesPerSecond())
	require.Equal(t, journal.Succeeded, good.Verdict)
	require.True(t, good.Verified)
	require.Equal(t, storetest.Digest, good.Digest)
	require.InDelta(t, 1000, good.ThroughputBytesPerSecond(), 1e-9)
	require.Equal(t, time.Second, good.Elapsed)
	require.Equal(t, 50*time.Millisecond, good.Connect)
	require.Equal(t, 1200*time.Millisecond, good.Duration)
	require.EqualValues(t, 3, *good.Retransmits)
	require.Nil(t, good.Timeouts, "absent is not zero")
	require.EqualValues(t, 1400, *good.TransmittedBytes)
	require.EqualValues(t, 376, *good.RetransmittedBytes)
	require.InDelta(t, 2500.5, *good.RTTMeanUS, 0)
	require.EqualValues(t, 1000, *good.RTTLeastUS)
	require.Nil(t, failed.TransmittedBytes)
	require.Nil(t, failed.RTTMeanUS)
	require.Nil(t, good.Radio)

	_, err = s.Dataset(t.Context(), store.Scope{Campaign: "none"}, nil)
	require.ErrorIs(t, err, store.ErrNotFound)
}

// Values of several flows come together as the data set says.
func TestBuildAttempt(t *testing.T) {
	final := func(retransmits, timeouts *int64) json.RawMessage {
		b, err := json.Marshal(contract.Sample{Retransmits: retransmits, Timeouts: timeouts})
		require.NoError(t, err)
		return b
	}
	num := func(n int64) *int64 { return &n }
	text := func(s string) *string { return &s }
	rep, err := json.Marshal(radiocontrol.Report{Ideal: []time.Duration{time.Second}, CodedBound: []time.Duration{2 * time.Second}, BusyShare: 0.5,
		Hops: []radiocontrol.Hop{{From: radio.RoleClient, SentPackets: 5, LostPackets: 1}, {SentPackets: 4, DroppedPackets: 2}}})
	require.NoError(t, err)
	flow := func(i int32, elapsed, connect int64, digest, received string, last json.RawMessage) store.Flow {
		return store.Flow{Flow: store.FlowRow{Flow: i, ElapsedNs: num(elapsed), ConnectNs: num(connect), Digest: text(digest), LastSample: last}, ReceivedDigest: received}
	}
	one := &runsheet.Trial{Flows: []runsheet.Flow{{SizeBytes: 10}}}
	two := &runsheet.Trial{Flows: []runsheet.Flow{{SizeBytes: 10}, {SizeBytes: 32}}}
	row := &store.Attempt{Attempt: 3, Verdict: text("succeeded"), Radio: rep}

	a, err := store.BuildAttempt(row, []store.Flow{flow(0, 2, 1, "d", "d", final(num(1), nil))}, one, nil)
	require.NoError(t, err)
	require.Equal(t, time.Second, a.Ideal)
	require.Equal(t, 2*time.Second, a.CodedBound)
	require.Equal(t, "d", a.Digest)
	require.True(t, a.Verified)
	require.EqualValues(t, 9, a.Radio.SentPackets)
	require.EqualValues(t, 1, a.Radio.LostPackets)
	require.EqualValues(t, 2, a.Radio.DroppedPackets)
	require.InDelta(t, 0.5, a.Radio.BusyShare, 0)

	a, err = store.BuildAttempt(row, []store.Flow{flow(0, 2, 9, "d", "d", final(num(1), num(4))), flow(1, 7, 1, "e", "x", final(num(2), nil))}, two, nil)
	require.NoError(t, err)
	require.EqualValues(t, 42, a.SizeBytes)
	require.EqualValues(t, 10, a.Elapsed, "from 1, the earlier start of a clock, to 11, the later end")
	require.EqualValues(t, 9, a.Connect)
	require.Len(t, a.Flows, 2)
	require.EqualValues(t, 7, a.Flows[1].Elapsed)
	require.EqualValues(t, 2, *a.Flows[1].Retransmits)
	require.Nil(t, a.Flows[1].Timeouts)
	require.False(t, a.Verified, "one of the digests differs")
	require.Empty(t, a.Digest)
	require.Zero(t, a.Ideal, "of one flow alone")
	require.Zero(t, a.CodedBound, "of one flow alone")
	require.EqualValues(t, 3, *a.Retransmits)
	require.EqualValues(t, 4, *a.Timeouts)

	// Bytes are a sum where every flow tells them; round-trip times are of one flow.
	sent := func(all, again *int64) json.RawMessage {
		b, err := json.Marshal(store.LastState{Sample: contract.Sample{TransmittedBytes: all, RetransmittedBytes: again}, RTT: &journal.RoundTrips{MeanUS: 7, LeastUS: num(5)}})
		require.NoError(t, err)
		return b
	}
	a, err = store.BuildAttempt(row, []store.Flow{flow(0, 2, 9, "d", "d", sent(num(100), num(10))), flow(1, 7, 1, "e", "e", sent(num(50), nil))}, two, nil)
	require.NoError(t, err)
	require.EqualValues(t, 150, *a.TransmittedBytes)
	require.Nil(t, a.RetransmittedBytes)
	require.Nil(t, a.RTTMeanUS)
	require.InDelta(t, 7, *a.Flows[1].RTTMeanUS, 0)
	require.EqualValues(t, 5, *a.Flows[1].RTTLeastUS)
	a, err = store.BuildAttempt(row, []store.Flow{flow(0, 2, 9, "d", "d", sent(num(100), num(10)))}, two, nil)
	require.NoError(t, err)
	require.Nil(t, a.TransmittedBytes, "the other flow's are not known")

	// A time bounds the flow: what counts is what was delivered.
	bounded := &runsheet.Trial{Flows: []runsheet.Flow{{Treatment: "x", SizeBytes: 1000, Duration: time.Minute, Start: 3, Session: 1}}}
	done := flow(0, 50, 4, "d", "d", nil)
	done.SizeBytes = num(400)
	a, err = store.BuildAttempt(row, []store.Flow{done}, bounded, nil)
	require.NoError(t, err)
	require.EqualValues(t, 400, a.SizeBytes)
	require.EqualValues(t, 50, a.Elapsed)
	require.Zero(t, a.Ideal, "of a size nobody meant")
	require.Zero(t, a.CodedBound, "of a size nobody meant")
	require.Equal(t, []report.Flow{{Treatment: "x", Session: 1, Start: 3, Bound: time.Minute, Connect: 4, Elapsed: 50, SizeBytes: 400}}, a.Flows)

	// Of one that did not succeed, the last sample tells what was delivered: of a success the result does.
	for verdict, want := range map[string]report.Flow{"timed-out": {LastBytes: 300, LastAt: 70}, "succeeded": {}} {
		ended := flow(0, 0, 4, "", "", json.RawMessage(`{"elapsed_ns":70,"sent_bytes":900,"acked_bytes":300}`))
		ended.Verdict = text(verdict)
		a, err = store.BuildAttempt(row, []store.Flow{ended}, bounded, nil)
		require.NoError(t, err)
		require.Equal(t, want.LastBytes, a.Flows[0].LastBytes, verdict)
		require.Equal(t, want.LastAt, a.Flows[0].LastAt, verdict)
	}
	unread := flow(0, 0, 4, "", "", json.RawMessage(`{"elapsed_ns":70,"sent_bytes":900}`))
	unread.Verdict = text("timed-out")
	a, err = store.BuildAttempt(row, []store.Flow{unread}, bounded, nil)
	require.NoError(t, err)
	require.EqualValues(t, 900, a.Flows[0].LastBytes, "at most what was sent")

	// Older journals have no coded bound.
	a, err = store.BuildAttempt(&store.Attempt{Attempt: 1, Radio: []byte(`{"ideal_ns":[5]}`)}, nil, one, nil)
	require.NoError(t, err)
	require.EqualValues(t, 5, a.Ideal)
	require.Zero(t, a.CodedBound)

	a, err = store.BuildAttempt(&store.Attempt{Attempt: 1}, nil, one, nil)
	require.NoError(t, err)
	require.Empty(t, a.Verdict)
	require.False(t, a.Verified)
	for _, bad := range []*store.Attempt{{Radio: json.RawMessage("[")}} {
		_, err = store.BuildAttempt(bad, nil, one, nil)
		require.Error(t, err)
	}
}
