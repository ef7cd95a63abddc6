// Package notify tells any number of goroutines that something has changed.
package notify

import "sync"

// Notifier announces changes of a state that somebody else guards. The zero
// value is ready; a Notifier must not be copied after its first use.
//
// A goroutine that waits for a state first takes the channel, then looks at the
// state, then waits for the channel: a change between the two is not missed.
// Whoever changes the state changes it first and calls Notify afterwards.
type Notifier struct {
	mu sync.Mutex
	c  chan struct{} // nil: nobody waits
}

// Changed returns a channel that the next Notify closes.
func (n *Notifier) Changed() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.c == nil {
		n.c = make(chan struct{})
	}
	return n.c
}

// Notify wakes all goroutines that wait. It does not block.
func (n *Notifier) Notify() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.c != nil {
		close(n.c)
		n.c = nil
	}
}
