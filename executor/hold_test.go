package executor

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"linktrial/executor/journal"
	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol"
)

// Every client reports 1000 bytes in 100 ms. Each rule that this breaks makes the
// attempt invalid, what was reported stays in the journal, and no other attempt
// follows although the sheet allows three.
func TestFiguresAreHeldAgainstWhatWasSeen(t *testing.T) {
	counter := func(readings ...int64) func() (int64, error) {
		return func() (int64, error) {
			b := readings[0]
			if len(readings) > 1 {
				readings = readings[1:]
			}
			if b < 0 {
				return 0, errors.New("no such device")
			}
			return b, nil
		}
	}
	hops := func(bytes int64) []radiocontrol.Hop {
		return []radiocontrol.Hop{{From: radio.RoleClient, To: radio.RoleRelay, DeliveredBytes: bytes}, {From: radio.RoleRelay, To: radio.RoleServer, DeliveredBytes: 5000}}
	}
	for name, c := range map[string]struct {
		sent   func() (int64, error)
		radio  *fakeRadio
		reason string
		words  []string
	}{
		"all true":                         {counter(500, 1600), &fakeRadio{hops: hops(1200), ideal: []time.Duration{90 * time.Millisecond}}, "", nil},
		"nothing known":                    {nil, &fakeRadio{}, "", nil},
		"more than the interface sent":     {counter(500, 1499), &fakeRadio{}, journal.ReasonMoreThanSent, []string{"1000 bytes", "999 bytes"}},
		"a counter that is updated late":   {counter(500, 500, 600, 1600), &fakeRadio{}, "", nil},
		"a counter that cannot be read":    {counter(500, -1), &fakeRadio{}, "", nil},
		"a counter of another device":      {counter(5000, 10), &fakeRadio{}, "", nil},
		"more than the radio delivered":    {nil, &fakeRadio{hops: hops(990)}, journal.ReasonMoreThanSent, []string{"1000 bytes", "990 bytes", "client to relay"}},
		"faster than Ideal":                {nil, &fakeRadio{ideal: []time.Duration{2 * time.Second}}, journal.ReasonFasterThanIdeal, []string{"2.000 s"}},
		"an Ideal that is of other flows":  {nil, &fakeRadio{ideal: []time.Duration{2 * time.Second, time.Second}}, "", nil},
		"the radio's Ideal does not exist": {nil, &fakeRadio{ideal: []time.Duration{0}}, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := openJournal(t, filepath.Join(t.TempDir(), "j"), journal.Options{})
				defer j.Close()
				cfg := config(testSheet(t, 1, 3), j, &scripted{}, c.radio)
				cfg.Sent = c.sent
				if err := Lead(context.Background(), cfg); err != nil {
					t.Fatal(err)
				}
				var ended []journal.AttemptEnded
				for _, r := range read(t, j) {
					if r.Type == journal.TypeAttemptEnded {
						ended = append(ended, body[journal.AttemptEnded](t, r))
					}
				}
				if len(ended) != 1 {
					t.Fatalf("%d attempts, expected 1", len(ended))
				}
				verdict := journal.Succeeded
				if c.reason != "" {
					verdict = journal.Invalid
				}
				e := ended[0]
				if e.Verdict != verdict || e.Reason != c.reason || e.Flows[0].Verdict != verdict || e.Flows[0].Result == nil || e.Flows[0].Result.SizeBytes != 1000 {
					t.Errorf("attempt %+v, expected %s (%s) with the result", e, verdict, c.reason)
				}
				for _, w := range c.words {
					if !strings.Contains(e.Message, w) {
						t.Errorf("message %q does not have %q", e.Message, w)
					}
				}
			})
		})
	}
}
