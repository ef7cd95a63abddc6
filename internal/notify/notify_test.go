package notify_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"linktrial/internal/notify"
)

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestNotifyWakesAllWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n notify.Notifier
		var woken atomic.Int32
		for range 3 {
			c := n.Changed()
			go func() {
				<-c
				woken.Add(1)
			}()
		}
		synctest.Wait()
		if woken.Load() != 0 {
			t.Fatalf("%d waiters returned before Notify", woken.Load())
		}
		n.Notify()
		synctest.Wait()
		if woken.Load() != 3 {
			t.Errorf("%d of 3 waiters returned after Notify", woken.Load())
		}
	})
}

func TestChangedIsOpenAfterNotify(t *testing.T) {
	var n notify.Notifier
	n.Notify() // nobody waits
	before := n.Changed()
	if before != n.Changed() {
		t.Error("two callers of Changed without a Notify between them have different channels")
	}
	n.Notify()
	if after := n.Changed(); !closed(before) || closed(after) {
		t.Errorf("after Notify the old channel is closed: %t, the new one: %t; want true and false", closed(before), closed(after))
	}
}

// A waiter that takes the channel before it looks at the state sees every change.
func TestNoChangeIsMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const last = 1000
		var n notify.Notifier
		var state atomic.Int64
		var waiters sync.WaitGroup
		for range 4 {
			waiters.Go(func() {
				for {
					changed := n.Changed()
					if state.Load() == last {
						return
					}
					<-changed
				}
			})
		}
		for range last {
			state.Add(1)
			n.Notify()
		}
		waiters.Wait() // a missed change would be a deadlock, which synctest reports
	})
}
