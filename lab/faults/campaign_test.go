package faults

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/internal/faultlog"
	"linktrial/internal/radio"
)

// stage is an injector that injects nothing and keeps what it was asked for.
type stage struct {
	mu      sync.Mutex
	began   time.Time
	faults  []string // with the time
	ended   []string
	working time.Duration // how long what was hit takes to work again
	fails   error
}

func (s *stage) Inject(_ context.Context, i Injection) (Injected, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails != nil {
		return Injected{}, s.fails
	}
	now := time.Now()
	s.faults = append(s.faults, now.Sub(s.began).String()+" "+i.String())
	works := now.Add(i.For + s.working)
	return Injected{Touches: true, Detail: "x",
		End: func() error {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.ended = append(s.ended, time.Since(s.began).String())
			return nil
		},
		Working: func(context.Context) bool { return !time.Now().Before(works) },
	}, nil
}

// inject runs a campaign for a time, and returns the list of its faults.
func inject(t *testing.T, s *stage, sch *Schedule, length time.Duration) []faultlog.Fault {
	t.Helper()
	s.began = time.Now()
	var list bytes.Buffer
	c := &Campaign{Schedule: sch, Injector: s, Log: &list, Show: func(faultlog.Fault) {}}
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	require.NoError(t, c.Run(ctx))
	got, err := faultlog.Read(&list)
	require.NoError(t, err)
	return got
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

func TestCampaign(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{working: seconds(2)}
		agent := func(at float64, kind faultlog.Kind, length float64) Injection {
			return Injection{At: seconds(at), Kind: kind, Target: faultlog.Agent, Node: radio.RoleServer, For: seconds(length)}
		}
		got := inject(t, s, &Schedule{Faults: []Injection{
			agent(1, faultlog.Stop, 3), // works again at 6 s
			agent(2, faultlog.Kill, 0), // waits for that
			{At: seconds(3), Kind: faultlog.Kill, Target: faultlog.Database},
			agent(20, faultlog.Stop, 60),  // the campaign ends meanwhile
			agent(40, faultlog.Kill, 0),   // never
			agent(100, faultlog.Kill, 60), // never
		}}, seconds(30))
		require.Equal(t, []string{"1s stop agent of server for 3s", "3s kill database", "6s kill agent of server", "20s stop agent of server for 1m0s"}, s.faults)
		require.Contains(t, s.ended, "30s", "what lasts is ended with the campaign")
		require.Len(t, got, 4)
		var spans []string
		for _, f := range got {
			spans = append(spans, f.From.Sub(s.began).String()+" to "+f.To.Sub(s.began).String())
		}
		require.Equal(t, []string{"1s to 6s", "3s to 5s", "6s to 8s", "20s to 30s"}, spans)
	})
}

// What does not come back, and what cannot be injected, is in the list.
func TestCampaignWithoutRecovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := &Schedule{Faults: []Injection{{Kind: faultlog.Kill, Target: faultlog.Database}}}
		got := inject(t, &stage{working: time.Hour}, one, 30*time.Minute)
		require.True(t, got[0].To.IsZero())
		require.Equal(t, "x; not seen working again within 2m0s", got[0].Detail)

		got = inject(t, &stage{fails: errors.New("no such thing")}, one, time.Minute)
		require.Equal(t, "no such thing", got[0].Error)
	})
}

// Faults from a seed go on until the campaign is ended.
func TestCampaignFromASeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{working: seconds(1)}
		got := inject(t, s, &Schedule{Random: NewRandom(42, 5*time.Second, nil, threeNodes)}, 10*time.Minute)
		require.InDelta(t, 120, len(got), 40)
		for _, f := range got {
			require.False(t, f.To.IsZero())
		}
	})
}

type brokenDisk struct{}

func (brokenDisk) Write([]byte) (int, error) { return 0, errors.New("disk full") }

// A list that cannot be written is an error, once.
func TestCampaignCannotWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Campaign{Schedule: &Schedule{Faults: []Injection{{Kind: faultlog.Kill, Target: faultlog.Database}}}, Injector: &stage{}, Log: brokenDisk{}, Show: func(faultlog.Fault) {}}
		require.EqualError(t, c.Run(t.Context()), "list of injected faults: fault 1: disk full")
	})
}
