package harness

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// errIdle ends a connection that nothing moves on any more.
var errIdle = errors.New("no byte moved within limits.transfer_ms")

// carry carries bytes between two streams, those of one of the buffers at most in
// each direction, until both directions have ended, or one stream fails, or no byte
// has moved for idle (0: no limit), or ctx ends, which cancel does. Where not both
// directions have ended in order, both streams are reset. It owns the streams.
func carry(ctx context.Context, cancel context.CancelCauseFunc, a, b Stream, buffers *sync.Pool, idle time.Duration) error {
	reset := make(chan struct{})
	release := context.AfterFunc(ctx, func() {
		defer close(reset)
		a.Abort()
		b.Abort()
	})
	var moved atomic.Int64 // times that bytes moved
	stop := watchIdle(&moved, idle, func() { cancel(errIdle) })
	defer stop()

	var both sync.WaitGroup
	each := func(f func() error) {
		both.Go(func() {
			if err := f(); err != nil {
				cancel(err)
			}
		})
	}
	each(func() error { return oneWay(b, a, buffers, &moved) })
	each(func() error { return oneWay(a, b, buffers, &moved) })
	both.Wait()
	if ctx.Err() == nil {
		each(a.Close)
		each(b.Close)
		both.Wait()
	}
	if !release() {
		<-reset
		return context.Cause(ctx)
	}
	return nil
}

// buffersOf are of a size in bytes, and kept between connections.
func buffersOf(size int) *sync.Pool {
	return &sync.Pool{New: func() any { b := make([]byte, size); return &b }}
}

// oneWay carries one direction, to its end.
func oneWay(to, from Stream, buffers *sync.Pool, moved *atomic.Int64) error {
	p := buffers.Get().(*[]byte)
	defer buffers.Put(p)
	b := *p
	for {
		n, err := from.Read(b)
		if n > 0 {
			moved.Add(1)
			if _, err := to.Write(b[:n]); err != nil {
				return err
			}
			moved.Add(1)
		}
		switch {
		case errors.Is(err, io.EOF):
			return to.CloseWrite()
		case err != nil:
			return err
		}
	}
}

// watchIdle calls late once when moved has stood still for a time, until stop is
// called. It wakes once in that time and costs those who move bytes no clock.
func watchIdle(moved *atomic.Int64, idle time.Duration, late func()) (stop func()) {
	if idle <= 0 {
		return func() {}
	}
	var mu sync.Mutex
	var timer *time.Timer
	stopped, seen := false, int64(0)
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(idle, func() {
		mu.Lock()
		defer mu.Unlock()
		switch now := moved.Load(); {
		case stopped:
		case now == seen:
			late()
		default:
			seen = now
			timer.Reset(idle)
		}
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		stopped = true
		timer.Stop()
	}
}
