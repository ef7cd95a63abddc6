package silence

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"linktrial/executor"
	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
)

// A relay that nothing tells when trials run ends its part with its preparation. Its first
// window comes when the sheet must be over, and the others at shorter and shorter
// intervals. Where what it asks does not answer, it calls at the same times, and its part
// lasts as long as the run.
func TestRelayCallsAfterTheLongestRun(t *testing.T) {
	for name, busy := range map[string]Busy{"nothing tells": nil, "no answer": func() (bool, bool) { return false, false }} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testLongestRun(t, busy) })
		})
	}
}

func testLongestRun(t *testing.T, busy Busy) {
	s := newSession(20 * time.Millisecond)
	sheet, encoded := testSheet(t, 100)
	ctx, cancel := context.WithCancelCause(t.Context())
	var running sync.WaitGroup
	pctx, end := context.WithCancel(t.Context())
	running.Go(func() { s.run(pctx) })
	done := make(chan error, 1)
	go func() {
		done <- NewRelay(s.gate, s, s.journal, sheet, func() {}).Attend(ctx, s.config(encoded, radio.RoleRelay, nil), busy)
	}()
	recorded := func() string {
		var types []string
		_ = s.journal.Records(func(r journal.Record) error { types = append(types, string(r.Type)); return nil })
		return fmt.Sprint(types)
	}
	time.Sleep(time.Second)
	if !s.gate.Suspended() {
		t.Fatal("calls are not suspended when the preparation is delivered")
	}
	if ended := recorded() == "[run-started run-ended]"; ended != (busy == nil) {
		t.Errorf("the relay recorded %s", recorded())
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
	cancel(executor.ErrFinish)
	if err := <-done; err != nil {
		t.Error(err)
	}
	end()
	running.Wait()
	if !s.gate.Unrestricted() {
		t.Error("calls are not resumed at the end")
	}
	if got := recorded(); got != "[run-started run-ended]" {
		t.Errorf("the relay recorded %s", got)
	}
}

// What a relay takes for a trial's traffic on a slow radio is less than one of its packets,
// and control packets are none of it.
func TestTrialTrafficAtTheRelay(t *testing.T) {
	for rate, want := range map[float64]int64{75: 200, 4800: 200, 64_000: 400, 1_300_000: 1500} {
		if got := trafficFrom(&radio.Profile{Emulation: &radio.Emulation{RateBitsPerSecond: rate}}); got != want {
			t.Errorf("%g bit/s: %d B, expected %d", rate, got, want)
		}
	}
	if got := trafficFrom(&radio.Profile{}); got != leastTraffic {
		t.Errorf("a radio whose rate is not known: %d B", got)
	}
	sheet, _ := testSheet(t, 1)
	sheet.Radio.Emulation = nil
	sent, control, fails := int64(0), int64(0), error(nil)
	look := Forwarding(sheet, func() (int64, error) { return sent, fails }, func() int64 { return control })
	step := func(s, c int64, err error, busy, known bool) {
		t.Helper()
		sent, control, fails = sent+s, control+c, err
		if b, k := look(); b != busy && k || k != known {
			t.Errorf("%d B sent, %d B of control: busy %t, known %t", s, c, b, k)
		}
	}
	step(90_000, 0, nil, true, false) // of the time before
	step(0, 0, nil, false, true)
	step(leastTraffic, 0, nil, true, true)
	step(4000, 4000, nil, false, true)
	step(4000, 8000, nil, false, true) // in and out
	step(0, 0, fmt.Errorf("no interface"), false, false)
	step(0, 0, nil, false, false)
	step(0, 0, nil, false, true)
}

// A relay calls when its radio's interface has been idle, and not while it carries a trial.
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
			r.whileRelaying(ctx, Forwarding(sheet, func() (int64, error) { return 10_000 * int64(min(time.Since(began), traffic)/time.Second), nil }, func() int64 { return 0 }))
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
