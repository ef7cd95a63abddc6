package server_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor/journal"
)

// A watcher that asks for the journal and the samples gets each of them once, as
// they arrive; one that does not gets neither.
func TestWatchJournalAndSamples(t *testing.T) {
	c := serve(t)
	h, started := byHand(t, c, &linktrialv1.StartPlanRequest{File: "test.yaml", Text: fmt.Appendf(nil, testPlan, "1 KiB")})
	h.begin()
	ctx, cancel := context.WithTimeout(t.Context(), 120*time.Second)
	defer cancel()
	var mu sync.Mutex
	var texts, plain []string
	var samples []*linktrialv1.LiveSamples
	seqs := map[string]int64{}
	skipped := 0
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	watch := func(journal bool, event func(*linktrialv1.WatchResponse)) {
		wg.Go(func() {
			stream, err := c.operator.Watch(ctx, connect.NewRequest(&linktrialv1.WatchRequest{CampaignId: started.CampaignId, Journal: journal, Samples: journal}))
			if err != nil {
				return
			}
			defer stream.Close()
			for stream.Receive() {
				mu.Lock()
				event(stream.Msg())
				mu.Unlock()
			}
		})
	}
	watch(true, func(ev *linktrialv1.WatchResponse) {
		switch e := ev.Event.(type) {
		case *linktrialv1.WatchResponse_Journal:
			texts = append(texts, e.Journal.Node+": "+e.Journal.Text)
			if e.Journal.Seq <= seqs[e.Journal.Node] || e.Journal.Received == nil {
				t.Errorf("line %v after record %d", e.Journal, seqs[e.Journal.Node])
			}
			seqs[e.Journal.Node] = e.Journal.Seq
		case *linktrialv1.WatchResponse_Samples:
			samples = append(samples, e.Samples)
		case *linktrialv1.WatchResponse_TrialEnded:
			if e.TrialEnded.Attempt.Attempt == 0 {
				skipped++
			}
		}
	})
	watch(false, func(ev *linktrialv1.WatchResponse) {
		if ev.GetJournal() != nil || ev.GetSamples() != nil {
			t.Errorf("nobody asked for %v", ev)
		}
		plain = append(plain, fmt.Sprintf("%T", ev.Event))
	})
	until := func(what string, f func() bool) {
		t.Helper()
		h.eventually(what, func() bool { mu.Lock(); defer mu.Unlock(); return f() })
	}
	has := func(want string) func() bool {
		return func() bool {
			for _, s := range texts {
				if strings.Contains(s, want) {
					return true
				}
			}
			return false
		}
	}
	until("what was before", has("client: host host, kernel kernel"))
	until("the other watcher", func() bool { return len(plain) > 0 })
	h.x.j.Start(h.x.sheet, 0, 1)
	h.x.j.Samples(0, 1, 5)
	h.tell()
	until("samples", func() bool { return len(samples) == 1 })
	mu.Lock()
	m := samples[0]
	require.Equal(t, []any{h.run, int32(0), int32(1), int32(0), "one"}, []any{m.RunId, m.Trial, m.Attempt, m.Flow, m.Treatment})
	require.InDeltaSlice(t, []float64{0.1, 0.2, 0.3, 0.4, 0.5}, m.At, 1e-9)
	require.Equal(t, []float64{0, 10, 20, 30, 40}, m.Bytes)
	require.Equal(t, []float64{1.5, 1.5, 1.5, 1.5, 1.5}, m.SrttMs)
	require.True(t, len(m.CwndBytes) == 5 && math.IsNaN(m.CwndBytes[0]))
	mu.Unlock()

	// Who joins while the attempt runs gets what there is of it.
	joined := 0
	watch(true, func(ev *linktrialv1.WatchResponse) {
		if s := ev.GetSamples(); s != nil {
			joined += len(s.At)
		}
	})
	until("earlier samples", func() bool { return joined == 5 })

	h.x.j.End(h.x.sheet, 0, 1, journal.Succeeded)
	h.x.j.EndTrial(0, 1, journal.Succeeded)
	_, err := h.control.SkipTrial(ctx, skipOf(h.run, 1))
	require.NoError(t, err)
	h.answer(h.commands(1)[0], "")
	h.x.j.Add(journal.TypeTrialEnded, journal.TrialEnded{Trial: 1, Verdict: journal.Aborted, Reason: journal.ReasonSkipped})
	h.tell()
	for _, want := range []string{"client: trial 0 (one, iteration 1), attempt 1 starts", "client: trial 0 (one, iteration 1), attempt 1: succeeded after 1.200 s",
		"client: trial 0 has ended: succeeded, attempts: 1", "client: command: skip trial 1", "client: trial 1 has ended: aborted, attempts: 0: skipped",
		"server: the listener of two is ready on port", "client: clock offset before the run: +2.000 ms, within 1.000 ms", "client: takes up a sheet of 8 trials"} {
		until(want, has(want))
	}
	until("a trial that ended without an attempt", func() bool { return skipped == 1 })
	mu.Lock()
	defer mu.Unlock()
	for _, s := range texts {
		require.NotContains(t, s, "cannot be read")
	}
	require.NotContains(t, plain, "*linktrialv1.WatchResponse_Journal")
}

// A late watcher of a long journal begins with its newest lines.
func TestWatchNewestLines(t *testing.T) {
	c := serve(t)
	h, started := byHand(t, c, &linktrialv1.StartPlanRequest{File: "test.yaml", Text: fmt.Appendf(nil, testPlan, "1 KiB")})
	h.begin()
	for i := range 700 {
		h.x.j.Add(journal.TypeDriverMisbehaved, journal.Misbehaviour{Treatment: "one", Message: fmt.Sprint("number\n", i)})
	}
	for h.x.delivered < len(h.x.j.Records) {
		req := &linktrialv1.DeliverRequest{Name: "client", RunId: h.run}
		for k := h.x.delivered; k < len(h.x.j.Records); k++ {
			req.Records = append(req.Records, &linktrialv1.JournalRecord{Seq: int64(k + 1), Json: h.x.j.Records[k]})
		}
		res, err := c.agent.Deliver(t.Context(), connect.NewRequest(req))
		require.NoError(t, err)
		h.x.delivered = int(res.Msg.CommittedSeq)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	stream, err := c.operator.Watch(ctx, connect.NewRequest(&linktrialv1.WatchRequest{CampaignId: started.CampaignId, Journal: true}))
	require.NoError(t, err)
	defer stream.Close()
	var lines []string
	for len(lines) == 0 || !strings.HasSuffix(lines[len(lines)-1], "number 699") {
		require.True(t, stream.Receive(), stream.Err())
		if l := stream.Msg().GetJournal(); l != nil {
			lines = append(lines, l.Text)
		}
	}
	require.GreaterOrEqual(t, len(lines), 250)
	require.LessOrEqual(t, len(lines), 300)
}

// A transfer that the server will not report is announced while the trial can
// still be repeated, and afterwards.
func TestTransferWithoutTheServersReport(t *testing.T) {
	t.Parallel()
	c := serve(t)
	h, started := byHand(t, c, &linktrialv1.StartPlanRequest{File: "test.yaml", Text: fmt.Appendf(nil, testPlan, "1 KiB")})
	h.begin()
	ctx, cancel := context.WithTimeout(t.Context(), 120*time.Second)
	defer cancel()
	var mu sync.Mutex
	var notes []string
	watched := make(chan error, 1)
	go func() {
		watched <- c.watch(ctx, started.CampaignId, func(ev *linktrialv1.WatchResponse) {
			if n := ev.GetNote(); n != nil {
				mu.Lock()
				notes = append(notes, n.Kind.String()+" "+n.Text)
				mu.Unlock()
			}
		})
	}()
	h.attempt(0, 1)
	h.attempt(1, 1)
	h.tell()
	h.server.mu.Lock()
	x := h.server.parts[h.run]
	x.j.Received("two", 1, 1)
	require.NoError(t, h.server.deliver(ctx, x))
	h.server.mu.Unlock()
	h.attempt(2, 1) // what comes next makes the watcher look
	h.tell()
	said := func() string {
		mu.Lock()
		defer mu.Unlock()
		return strings.Join(notes, "\n")
	}
	for i := 3; !strings.Contains(said(), "linktrial run repeat "+h.run+" --trial 0"); i++ {
		require.Less(t, i, len(h.x.sheet.Trials), "no note: %s", said())
		h.attempt(i, 1)
		h.tell()
		time.Sleep(time.Second)
	}
	require.NotContains(t, said(), "--trial 1", "the server has spoken of it")
	for i := len(h.state().Trials) - 1; i > 2; i-- {
		if h.state().Trials[i].Verdict == "" {
			h.attempt(i, 1)
		}
	}
	h.x.j.Finish(journal.RunCompleted, "")
	h.tell()
	require.NoError(t, <-watched)
	// The server of this test has a record of a second attempt of trial 2, which there was not.
	require.Contains(t, said(), "KIND_UNCONFIRMED trial 2 (one, iteration 2) succeeded for the client, but the server never confirmed it, so it counts as failed; the run's trials are over")
	require.Equal(t, 2, strings.Count(said(), "never confirmed"), said())
}
