package silence

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
)

// The relay's part ends with its preparation. Its first window comes when the
// sheet must be over, and the others at shorter and shorter intervals.
func TestRelayCallsAfterTheLongestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSession(20 * time.Millisecond)
		sheet, encoded := testSheet(t, 100)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { s.run(ctx) })
		done := make(chan error, 1)
		go func() {
			done <- NewRelay(s.gate, s, s.journal, sheet, func() {}).Attend(ctx, s.config(encoded, radio.RoleRelay, nil))
		}()
		time.Sleep(time.Second)
		if !s.gate.Suspended() {
			t.Fatal("calls are not suspended when the preparation is delivered")
		}
		var types []string
		_ = s.journal.Records(func(r journal.Record) error { types = append(types, string(r.Type)); return nil })
		if got := fmt.Sprint(types); got != "[run-started run-ended]" {
			t.Errorf("the relay recorded %s", got)
		}
		began := time.Now()
		time.Sleep(2 * longest(sheet))
		var pauses []time.Duration
		last := began
		for _, c := range s.during(began, time.Now()) {
			if d := c.from.Sub(last); d > time.Second {
				pauses = append(pauses, d.Round(time.Minute))
			}
			last = c.to
		}
		first := longest(sheet)
		if len(pauses) < 5 || pauses[0] != first.Round(time.Minute) || pauses[1] != (first/4).Round(time.Minute) || pauses[2] != (first/16).Round(time.Minute) {
			t.Errorf("calls after %v, expected the first after %s", pauses, first)
		}
		for _, p := range pauses[4:] {
			if p != minRelayPause {
				t.Errorf("a pause of %s, expected %s", p, minRelayPause)
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		running.Wait()
		if !s.gate.Unrestricted() {
			t.Error("calls are not resumed at the end")
		}
	})
}

// A relay with relay processes calls when its radio's interface has been idle, and
// not while it carries a trial.
func TestRelayingNodeCallsWhenItsRadioIsIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSession(20 * time.Millisecond)
		sheet, _ := testSheet(t, 100)
		sheet.Treatments[0].Via = []runsheet.Via{{At: radio.RoleRelay, Protocol: "split", Port: 5201}}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { s.run(ctx) })
		_, _ = s.journal.Append(journal.TypeListenerReady, journal.Listener{Treatment: sheet.Treatments[0].Name, At: radio.RoleRelay})
		began := time.Now()
		traffic := 10 * time.Minute
		r := NewRelay(s.gate, s, s.journal, sheet, func() {})
		running.Go(func() {
			r.whileRelaying(ctx, func() (int64, error) { return 10_000 * int64(min(time.Since(began), traffic)/time.Second), nil })
		})
		time.Sleep(time.Second)
		if !s.gate.Suspended() {
			t.Fatal("calls are not suspended when the preparation is delivered")
		}
		time.Sleep(traffic)
		if calls := s.during(began.Add(time.Second), time.Now()); len(calls) > 0 {
			t.Errorf("%d calls while a trial's traffic passed", len(calls))
		}
		time.Sleep(sheet.IdleBeforeControl() + 5*time.Second)
		if calls := s.during(began.Add(traffic), time.Now()); len(calls) == 0 {
			t.Errorf("no call after the radio has been idle for %s", sheet.IdleBeforeControl())
		}
		cancel()
		running.Wait()
		if !s.gate.Unrestricted() {
			t.Error("calls are not resumed at the end")
		}
	})
}
