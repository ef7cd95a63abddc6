package executor

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol"
)

// loud is radios that are quiet once answered is true; each question takes a second.
type loud struct {
	asked    []radiocontrol.Quiet
	answered func(flush bool) (bool, error)
}

func (*loud) Configure(context.Context, *radio.Network) error { return nil }
func (*loud) Begin(context.Context, radiocontrol.Begin) error { return nil }
func (*loud) End(context.Context, string) (*radiocontrol.Report, error) {
	return &radiocontrol.Report{}, nil
}

func (l *loud) Quiet(ctx context.Context, q radiocontrol.Quiet) (bool, error) {
	l.asked = append(l.asked, q)
	select {
	case <-time.After(time.Second):
		return l.answered(q.Flush)
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// A trial waits for quiet radios; after 20 s their queues are emptied, once; after five
// minutes, where they do not answer, and where the run is aborted, it waits no longer.
func TestQuietBeforeATrial(t *testing.T) {
	never := func(bool) (bool, error) { return false, nil }
	for name, c := range map[string]struct {
		answered func(flush bool) (bool, error)
		abort    time.Duration
		waits    time.Duration
		emptied  int
	}{
		"quiet at once":   {func(bool) (bool, error) { return true, nil }, 0, time.Second, 0},
		"queues emptied":  {func(flush bool) (bool, error) { return flush, nil }, 0, 21 * time.Second, 1},
		"never":           {never, 0, 5*time.Minute + time.Second, 1},
		"no answer":       {func(bool) (bool, error) { return false, errors.New("it has ended") }, 0, time.Second, 0},
		"the run's abort": {never, 2500 * time.Millisecond, 2500 * time.Millisecond, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.abort > 0 {
					time.AfterFunc(c.abort, cancel)
				}
				r := &loud{answered: c.answered}
				e := &emulator{newNode(Config{Radio: r}, &runsheet.Sheet{})}
				began := time.Now()
				e.quiet(ctx, false)
				emptied := 0
				for _, q := range r.asked {
					if q.Flush {
						emptied++
					}
					if q.For != quietAfter {
						t.Errorf("asked for %s, expected %s: nothing ended in order before", q.For, quietAfter)
					}
				}
				if waited := time.Since(began); waited != c.waits || emptied != c.emptied {
					t.Errorf("it waited %s and emptied the queues %d times, expected %s and %d", waited, emptied, c.waits, c.emptied)
				}
			})
		})
	}
}
