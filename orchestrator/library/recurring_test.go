package library

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/orchestrator/campaign/campaigndb"
	"linktrial/orchestrator/launch"
	"linktrial/orchestrator/store/storetest"
)

// to moves the clock to a moment, and makes the library check its schedules.
func (r *rig) to(text string) {
	r.t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	require.NoError(r.t, err)
	r.move(at.Sub(r.clock.now()))
}

func (r *rig) recurrence(id string) Recurrence {
	r.t.Helper()
	all, err := r.Recurrences(r.t.Context())
	require.NoError(r.t, err)
	for _, x := range all {
		if x.ID == id {
			return x
		}
	}
	r.t.Fatalf("recurrence %s is not listed", id)
	return Recurrence{}
}

// ended waits until a rule's start has ended, and returns it.
func (r *rig) ended(id string, number int) Scheduled {
	r.t.Helper()
	var got Scheduled
	require.Eventually(r.t, func() bool {
		last := r.recurrence(id).Last
		if len(last) == 0 {
			return false
		}
		got = last[0]
		return got.Number == number
	}, 20*time.Second, 10*time.Millisecond, "start %d of %s does not end", number, id)
	return got
}

// waits waits until the next start of a rule is entered, and returns it.
func (r *rig) waits(id string) Scheduled {
	r.t.Helper()
	var got Scheduled
	require.Eventually(r.t, func() bool {
		all, err := r.Schedules(r.t.Context())
		require.NoError(r.t, err)
		for _, s := range all {
			if s.Recurrence == id && s.State == Waiting {
				got = s
				return true
			}
		}
		return false
	}, 20*time.Second, 10*time.Millisecond, "no start of %s waits", id)
	return got
}

// Starts follow the clock on the wall over the change to summer time, each with the
// seed that follows on the one before, and the skipped hour starts at its end.
func TestRecurrenceOverSummerTime(t *testing.T) {
	r, ctx := newRig(t, storetest.Open(t)), t.Context()
	r.restart(-35*24*time.Hour + 4*time.Hour) // 27 March, noon
	x, err := r.Recur(ctx, "daily 02:30 Europe/Berlin", Order{Plan: "demo", Name: "night", By: "director"})
	require.NoError(t, err)
	require.Equal(t, "daily 02:30 Europe/Berlin", x.Rule)
	require.Equal(t, []time.Time{time.Date(2026, 3, 28, 1, 30, 0, 0, time.UTC), time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC), time.Date(2026, 3, 30, 0, 30, 0, 0, time.UTC)}, x.Next)
	require.ErrorIs(t, r.Cancel(ctx, x.ID), ErrNotFound, "a rule is no single start")

	for i, at := range []string{"2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"} {
		require.Equal(t, at, r.waits(x.ID).At.Format(time.RFC3339))
		r.to(at)
		got := r.ended(x.ID, i+1)
		require.Equal(t, Started, got.State, got.Message)
	}
	require.Equal(t, "2026-03-31T00:30:00Z", r.waits(x.ID).At.Format(time.RFC3339))
	require.Equal(t, []string{
		"demo.yaml night, 2026-03-28 01:30:00 UTC " + good,
		"demo.yaml night, 2026-03-29 01:00:00 UTC " + strings.Replace(good, "seed: 1", "seed: 2", 1),
		"demo.yaml night, 2026-03-30 00:30:00 UTC " + strings.Replace(good, "seed: 1", "seed: 3", 1),
	}, r.starts())
	r.restart(0)
	require.Len(t, r.starts(), 3, "started again")
}

// A doubled hour has one start.
func TestRecurrenceInTheDoubledHour(t *testing.T) {
	r, ctx := newRig(t, storetest.Open(t)), t.Context()
	r.to("2026-10-24T12:00:00Z")
	x, err := r.Recur(ctx, "daily 02:30 Europe/Berlin until 2026-10-25", Order{Plan: "demo"})
	require.NoError(t, err)
	require.Len(t, x.Next, 1)
	r.waits(x.ID)
	r.to("2026-10-25T00:30:00Z")
	require.Equal(t, Started, r.ended(x.ID, 1).State)
	r.to("2026-10-25T01:30:00Z") // half past two for the second time
	require.Eventually(t, func() bool { return r.recurrence(x.ID).State == Ended }, 20*time.Second, 10*time.Millisecond)
	require.Len(t, r.starts(), 1)
	require.Contains(t, r.starts()[0], "demo.yaml short, 2026-10-25 00:30:00 UTC ")
	require.Empty(t, r.recurrence(x.ID).Next)
	require.NoError(t, r.Remove(ctx, x.ID))
}

// A start that finds the run of an earlier one under way is skipped with the reason,
// and the one after that run's end starts.
func TestRecurrenceSkips(t *testing.T) {
	s := storetest.Open(t)
	r, ctx := newRig(t, s), t.Context()
	r.Stop()
	n := 0
	r.cfg.Launcher = launcher(func(context.Context, launch.Request) (launch.Started, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.refused != nil {
			return launch.Started{}, r.refused
		}
		id := fmt.Sprintf("camp%d", n)
		n++
		storetest.AddRun(t, s, id, storetest.Sheet(1))
		return launch.Started{Campaign: id}, nil
	})
	end := func(run string) {
		t.Helper()
		ended, err := campaigndb.New(s).SetEnded(ctx, campaigndb.SetEndedParams{ID: run, State: "completed"})
		require.NoError(t, err)
		require.EqualValues(t, 1, ended)
	}
	r.start()
	x, err := r.Recur(ctx, "every 6h", Order{Plan: "demo"})
	require.NoError(t, err)
	single, err := r.Schedule(ctx, Order{Plan: "demo", At: r.clock.now().Add(13 * time.Hour)})
	require.NoError(t, err)
	r.waits(x.ID)
	r.move(6 * time.Hour)
	require.Equal(t, Started, r.ended(x.ID, 1).State)
	r.waits(x.ID)
	r.move(6 * time.Hour)
	skipped := r.ended(x.ID, 2)
	require.Equal(t, Skipped, skipped.State)
	require.Equal(t, "run camp0-1 of an earlier start had not ended", skipped.Message)
	r.waits(x.ID)
	r.move(time.Hour)
	r.becomes(single.ID, Started) // a single start queues up as ever
	end("camp0-1")
	r.move(5 * time.Hour)
	require.Equal(t, Started, r.ended(x.ID, 3).State)

	// For nodes that are away a start is as patient as any; the next one is tried at its time.
	r.refuse(launch.Missing{"no server node is connected"})
	end("camp2-1")
	next := r.waits(x.ID)
	r.move(6 * time.Hour)
	require.Eventually(t, func() bool { return strings.Contains(r.schedule(next.ID).Message, "is tried until") }, 20*time.Second, 10*time.Millisecond)
	r.move(DefaultPatience)
	failed := r.ended(x.ID, 4)
	require.Equal(t, Failed, failed.State)
	require.Contains(t, failed.Message, "no server node")
	r.refuse(nil)
	r.waits(x.ID)
	r.move(6*time.Hour - DefaultPatience)
	require.Equal(t, Started, r.ended(x.ID, 5).State)
}

// Starts that passed while the orchestrator was down are one missed start that says
// for how many it stands; one that has just passed is made up.
func TestRecurrenceMissed(t *testing.T) {
	r, ctx := newRig(t, storetest.Open(t)), t.Context()
	x, err := r.Recur(ctx, "every 6h", Order{Plan: "demo"})
	require.NoError(t, err)
	require.Equal(t, "2026-05-01T14:00:00Z", r.waits(x.ID).At.Format(time.RFC3339))
	r.restart(3 * 24 * time.Hour)
	r.move(time.Second)
	first := r.ended(x.ID, 2)
	require.Equal(t, Missed, r.recurrence(x.ID).Last[1].State)
	require.Equal(t, "2026-05-01T14:00:00Z", r.recurrence(x.ID).Last[1].At.Format(time.RFC3339))
	require.Equal(t, Started, first.State, "the start of a second ago")
	require.Equal(t, "10 earlier starts since 2026-05-01 20:00:00 UTC were missed as well", first.Message)
	require.Len(t, r.starts(), 1)

	require.Equal(t, "2026-05-04T14:00:00Z", r.waits(x.ID).At.Format(time.RFC3339))
	r.restart(24*time.Hour + time.Hour - time.Second)
	missed := r.ended(x.ID, 4)
	require.Equal(t, Missed, missed.State)
	require.Contains(t, missed.Message, "found 1h0m0s later")
	require.Contains(t, missed.Message, "2 earlier starts since 2026-05-04 20:00:00 UTC were missed as well")
	require.Equal(t, "2026-05-05T14:00:00Z", r.waits(x.ID).At.Format(time.RFC3339))
	require.Len(t, r.starts(), 1)
}

func TestRecurrencePausedAndRemoved(t *testing.T) {
	r, ctx := newRig(t, storetest.Open(t)), t.Context()
	_, err := r.Save(ctx, "mine", []byte(good), 0)
	require.NoError(t, err)
	x, err := r.Recur(ctx, "daily 08:30 UTC", Order{Plan: "mine"})
	require.NoError(t, err)
	first := r.waits(x.ID)
	require.NoError(t, r.Pause(ctx, x.ID))
	require.ErrorIs(t, r.Pause(ctx, x.ID), ErrState)
	require.ErrorIs(t, r.Delete(ctx, "mine"), ErrInUse)
	all, err := r.Schedules(ctx)
	require.NoError(t, err)
	require.Empty(t, all)
	// Resumed in time, the same start comes after all.
	r.move(10 * time.Minute)
	require.NoError(t, r.Resume(ctx, x.ID))
	require.ErrorIs(t, r.Resume(ctx, x.ID), ErrState)
	require.Equal(t, first.At, r.waits(x.ID).At)
	// Resumed after it, it is not made up.
	require.NoError(t, r.Pause(ctx, x.ID))
	require.Empty(t, r.recurrence(x.ID).Next)
	r.move(20*time.Minute + time.Second)
	require.NoError(t, r.Resume(ctx, x.ID))
	next := r.waits(x.ID)
	require.Equal(t, first.At.AddDate(0, 0, 1), next.At)
	require.Equal(t, 1, next.Number)
	// A single one of its starts can be cancelled.
	require.NoError(t, r.Cancel(ctx, next.ID))
	r.look()
	require.Eventually(t, func() bool { return r.waits(x.ID).Number == 2 }, 20*time.Second, 10*time.Millisecond)
	require.Equal(t, first.At.AddDate(0, 0, 2), r.waits(x.ID).At)
	require.Equal(t, Cancelled, r.ended(x.ID, 1).State)

	require.NoError(t, r.Remove(ctx, x.ID))
	require.ErrorIs(t, r.Remove(ctx, x.ID), ErrNotFound)
	require.ErrorIs(t, r.Resume(ctx, "none"), ErrNotFound)
	require.NoError(t, r.Delete(ctx, "mine"))
	rules, err := r.Recurrences(ctx)
	require.NoError(t, err)
	require.Empty(t, rules)
	require.Empty(t, r.starts())
}

func TestRecurrenceRefusals(t *testing.T) {
	r, ctx := newRig(t, storetest.Open(t)), t.Context()
	for name, text := range map[string]string{"draft": "name: later\nradio: nowhere\n", "alias": strings.Replace(good, "seed: 1", "seed: !!int 1", 1)} {
		_, err := r.Save(ctx, name, []byte(text), 0)
		require.NoError(t, err)
	}
	for _, c := range []struct {
		plan, rule string
		is         error
		word       string
	}{
		{"draft", "every 6h", ErrRefused, "draft.yaml:2:"},
		{"none", "every 6h", ErrNotFound, "none"},
		{"alias", "every 6h", ErrRefused, "plain number"},
		{"demo", "hourly", ErrRefused, "expected a rule like"},
		{"demo", "daily 08:00 until 2026-05-01", ErrRefused, "no start after 2026-05-01 08:00:00 UTC"},
		{"demo", "every 6h from 2028-01-01 08:00", ErrRefused, "more than a year away"},
	} {
		_, err := r.Recur(ctx, c.rule, Order{Plan: c.plan})
		require.ErrorIs(t, err, c.is)
		require.ErrorContains(t, err, c.word)
	}
	_, err := r.Recur(ctx, "every 6h", Order{Plan: "demo", Name: strings.Repeat("x", maxName+1), By: ""})
	require.ErrorIs(t, err, ErrRefused)
	_, err = r.Recur(ctx, "every 5m", Order{Plan: "demo", Patience: 10 * time.Minute})
	require.ErrorContains(t, err, "only 5m0s between two starts")
	long, err := r.Recur(ctx, "every 5m", Order{Plan: "demo"})
	require.NoError(t, err)
	require.Equal(t, long.Message, r.recurrence(long.ID).Message)
	for range maxRecurrences - 1 {
		_, err := r.Recur(ctx, "every 6h", Order{Plan: "demo"})
		require.NoError(t, err)
	}
	_, err = r.Recur(ctx, "every 6h", Order{Plan: "demo"})
	require.ErrorContains(t, err, "remove one first")
}
