package silence

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"linktrial/executor"
	"linktrial/executor/journal"
	"linktrial/internal/backoff"
	"linktrial/internal/service"
)

// How a node that does not lead counts control traffic.
const (
	countStep = 100 * time.Millisecond // how closely in time a packet is known
	countSpan = 10 * time.Second       // a record without packets is at most so long
)

// Count is the count of a node that does not lead, which does not know when trials run:
// it is by time. Its records are not synced, else each delivery of one would be the
// traffic that the next one tells; before a window they are ([Count.Flush]).
type Count struct {
	counter Counter
	record  func(journal.ControlCounted) error
	log     *slog.Logger
	stop    func()

	mu  sync.Mutex
	at  journal.ControlCounted // the present record
	all atomic.Int64           // bytes since the count began
}

// Counter is a [Proof].
type Counter interface {
	executor.ControlCounter
	io.Closer
}

// StartCount counts until [Count.Stop], which closes the counter.
func StartCount(ctx context.Context, counter Counter, log *slog.Logger, record func(journal.ControlCounted) error) *Count {
	c := &Count{counter: counter, record: record, log: log}
	_, _ = counter.Take() // of the time before; the next error is reported
	c.at.Since = time.Now()
	c.at.Until = c.at.Since
	c.stop = service.Go(context.WithoutCancel(ctx), func(ctx context.Context) {
		for backoff.Sleep(ctx, countStep) && c.look() {
		}
	})
	return c
}

// Stop ends the count, and writes what was counted last.
func (c *Count) Stop() {
	c.stop()
	if c.look() {
		c.Flush()
	}
	_ = c.counter.Close() // nothing was written
}

// Flush writes what was counted until now.
func (c *Count) Flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.write()
	c.at = journal.ControlCounted{Since: c.at.Until, Until: c.at.Until}
}

// look adds what passed since the last look; false: it cannot be counted any more.
func (c *Count) look() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	passed, err := c.counter.Take()
	if err != nil {
		c.log.Warn("control packets are no longer counted", "error", err)
		c.write()
		c.at.Since = c.at.Until
		return false
	}
	// Time with packets and time without are apart, so that a record tells when some passed.
	if (passed.Packets > 0) != (c.at.Packets > 0) || c.at.Until.Sub(c.at.Since) >= countSpan {
		c.write()
		c.at = journal.ControlCounted{Since: c.at.Until}
	}
	c.at.Until = now
	c.at.Add(passed)
	c.all.Add(passed.Bytes)
	return true
}

// Bytes is how many bytes of control packets have passed so far, as of the last look.
func (c *Count) Bytes() int64 { return c.all.Load() }

func (c *Count) write() {
	if !c.at.Until.After(c.at.Since) {
		return
	}
	r := c.at
	r.Since, r.Until = r.Since.UTC(), r.Until.UTC()
	if err := c.record(r); err != nil { // the executor meets the same fault, and acts on it
		c.log.Debug("a count of control packets was not taken by the journal", "error", err)
	}
}
