package server_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
)

// A mark changes at once what is shown and counted, in the tables too, and
// nothing that was measured.
func TestMarkedAttempt(t *testing.T) {
	c := serve(t)
	h, started := byHand(t, c, &linktrialv1.StartPlanRequest{File: "test.yaml", Text: fmt.Appendf(nil, testPlan, "1 KiB")})
	h.begin()
	ctx, cancel := context.WithTimeout(t.Context(), 120*time.Second)
	defer cancel()
	h.attempt(0, 1)
	h.x.j.Start(h.x.sheet, 1, 1)
	h.tell()
	refused[linktrialv1.ExcludeAttemptResponse](t, connect.CodeInvalidArgument, "a mark needs a reason")(h.control.ExcludeAttempt(ctx, exclude(h.run, 0, 1, "")))
	refused[linktrialv1.ExcludeAttemptResponse](t, connect.CodeNotFound, "it has no attempt 2 of trial 0")(h.control.ExcludeAttempt(ctx, exclude(h.run, 0, 2, "x")))
	refused[linktrialv1.ExcludeAttemptResponse](t, connect.CodeFailedPrecondition, "has not ended yet")(h.control.ExcludeAttempt(ctx, exclude(h.run, 1, 1, "x")))
	refused[linktrialv1.IncludeAttemptResponse](t, connect.CodeFailedPrecondition, "is not marked")(h.control.IncludeAttempt(ctx, include(h.run, 0, 1)))

	refused[linktrialv1.ExcludeAttemptResponse](t, connect.CodeInvalidArgument, "reason has the control character U+0000 at byte 1")(h.control.ExcludeAttempt(ctx, exclude(h.run, 0, 1, "a\x00b")))
	refused[linktrialv1.ExcludeAttemptResponse](t, connect.CodeInvalidArgument, "a reason of 1001 bytes")(h.control.ExcludeAttempt(ctx, exclude(h.run, 0, 1, strings.Repeat("x", 1001))))

	// A watcher that was there before hears of the mark, and of its end.
	type seen struct{ verdict, reason string }
	events := make(chan seen, 100)
	wctx, end := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer end()
	wg.Go(func() {
		_ = c.watch(wctx, started.CampaignId, func(ev *linktrialv1.WatchResponse) {
			if e := ev.GetTrialEnded(); e != nil && e.Trial == 0 {
				events <- seen{e.Attempt.Verdict, e.Attempt.Reason}
			}
			if o := ev.GetCommand(); o != nil {
				events <- seen{"command", o.Kind + " " + o.Reason}
			}
		})
	})
	next := func() seen {
		select {
		case s := <-events:
			return s
		case <-ctx.Done():
			t.Fatal("the watcher was not told")
			return seen{}
		}
	}
	require.Equal(t, seen{"succeeded", ""}, next())
	_, err := h.control.ExcludeAttempt(ctx, exclude(h.run, 0, 1, "a lorry"))
	require.NoError(t, err)
	require.Equal(t, seen{"invalid", "marked: a lorry"}, next())
	require.Equal(t, seen{"command", "exclude a lorry"}, next())
	row := h.state().Trials[0]
	require.Equal(t, "invalid", row.Verdict)
	require.Equal(t, "invalid", row.Attempts[0].Verdict)
	require.Contains(t, row.Attempts[0].Message, "the journal says: succeeded")
	require.Equal(t, "a lorry", row.Attempts[0].GetMark().GetReason())
	require.Equal(t, "succeeded", row.Attempts[0].GetMark().GetJournalVerdict())
	require.Positive(t, row.Attempts[0].MeasuredBytesPerSecond)
	require.Zero(t, row.Attempts[0].ThroughputBytesPerSecond)
	_, err = h.control.IncludeAttempt(ctx, include(h.run, 0, 1))
	require.NoError(t, err)
	require.Equal(t, seen{"succeeded", ""}, next())
	require.Equal(t, seen{"command", "include "}, next())
	row = h.state().Trials[0]
	require.Equal(t, "succeeded", row.Verdict)
	require.Nil(t, row.Attempts[0].Mark)
	require.Equal(t, row.Attempts[0].ThroughputBytesPerSecond, row.Attempts[0].MeasuredBytesPerSecond)
}
