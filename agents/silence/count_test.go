package silence

import (
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
)

// passed is a counter to which a test adds packets.
type passed struct {
	mu     sync.Mutex
	c      journal.ControlTraffic
	closed bool
}

func (p *passed) add(packets int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.c.Packets, p.c.Bytes = p.c.Packets+packets, p.c.Bytes+52*packets
}

func (p *passed) Take() (journal.ControlTraffic, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.c
	p.c = journal.ControlTraffic{}
	return c, nil
}

func (p *passed) Close() error {
	p.closed = true
	return nil
}

// The records of a node that does not lead follow each other without gaps, have every
// packet once, and tell to a step of the count when it passed.
func TestCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &passed{}
		p.add(3) // before the count begins
		var records []journal.ControlCounted
		began := time.Now()
		c := StartCount(t.Context(), p, slog.New(slog.DiscardHandler), func(r journal.ControlCounted) error {
			records = append(records, r)
			return nil
		})
		time.Sleep(14950 * time.Millisecond)
		p.add(2)
		time.Sleep(countStep)
		p.add(1)
		time.Sleep(2 * time.Second)
		c.Flush()
		require.WithinDuration(t, time.Now(), records[len(records)-1].Until, countStep)
		time.Sleep(3 * time.Second)
		p.add(4)
		c.Stop()
		require.True(t, p.closed)
		at, sum := began.UTC(), int64(0)
		for _, r := range records {
			require.Equal(t, at, r.Since)
			require.LessOrEqual(t, r.Until.Sub(r.Since), countSpan+countStep)
			at, sum = r.Until, sum+r.Packets
			if r.Packets == 3 {
				require.Equal(t, began.Add(14900*time.Millisecond).UTC(), r.Since)
				require.Equal(t, began.Add(15100*time.Millisecond).UTC(), r.Until)
				require.Equal(t, int64(156), r.Bytes)
			}
		}
		require.Equal(t, time.Now().UTC(), at)
		require.Equal(t, int64(7), sum)
		require.Len(t, records, 6) // 10 s, 4.9 s, the burst, 1.9 s until the flush, 3 s, the rest
	})
}
